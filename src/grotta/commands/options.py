"""Options that several commands share, and how their values are read."""

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option(help="Where results are kept; finished ones are not run again.")]
DataRoot = Annotated[Path | None, typer.Option(help="Where to look for data first, before GROTTA_DATA and the cache.")]
Device = Annotated[str, typer.Option(help="Where networks run: cpu, cuda, cuda:1, ...")]
Gammas = Annotated[
    str | None, typer.Option(help="Label shifts, comma-separated; 1e-1,1e-4 by default, and one for an iid stream.")
]
Preset = Annotated[
    str,
    typer.Option(
        help="Settings of the methods: paper or official, which every method has; some also have fast, "
        "official-cifar100, official-imagenet or official-vit."
    ),
]
Stream = Annotated[str, typer.Option(help="Kind of stream: ptta, rotta, exhaustive or iid (no label shift).")]
Json = Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")]


def comma_separated(text: str | None) -> list[str] | None:
    """The words of ``a,b,c``; None stays None.

    >>> comma_separated("source, bn"), comma_separated(None)
    (['source', 'bn'], None)
    """
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def comma_separated_numbers(name: str, text: str | None) -> list[float] | None:
    """The numbers of ``1e-1,1e-4``; an error names the option.

    >>> comma_separated_numbers("gammas", "1e-1,1e-4")
    [0.1, 0.0001]
    """
    words = comma_separated(text)
    try:
        return None if words is None else [float(word) for word in words]
    except ValueError:
        raise ValueError(f"{name}: expected numbers separated by commas, got {text!r}") from None
