"""Options that several commands share, as objects, and how their values are read.

A command takes one parameter per object; :func:`with_options` shows typer one option per field.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")]
DataRoot = Annotated[Path | None, typer.Option(help="Where to look for data first, before GROTTA_DATA and the cache.")]
Device = Annotated[str, typer.Option(help="Where networks run: cpu, cuda, cuda:1, ...")]


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """What methods are run on."""

    dataset: Annotated[
        str,
        typer.Option(
            help="A data set's name (grotta data list), folder:PATH, or, recorded, times:PATH, csv:FILE, video:FILE or "
            "a camera that is filmed first, video:ADDRESS."
        ),
    ] = "fashion-c"
    domains: Annotated[
        str | None,
        typer.Option(
            "--domains",
            "--corruptions",
            help="Domains in stream order, comma-separated. By default all, but bench and reproduce without --full "
            "run the first three of a corrupted data set. fog@3 has severity 3, fog:Bag+Coat two of the classes, fog#2 "
            "is fog again; clean, noise and blank are accepted beside the corruptions.",
        ),
    ] = None
    model: Annotated[
        str,
        typer.Option(help="Network NAME (bundled weights) or NAME@WEIGHTS; by default the data set's own."),
    ] = ""
    preset: Annotated[
        str,
        typer.Option(
            help="Settings of the methods: paper or official, which every method has; some also have fast, lite, "
            "official-cifar100, official-imagenet or official-vit."
        ),
    ] = "paper"
    stream: Annotated[
        str,
        typer.Option(help="Kind of stream: ptta, rotta, exhaustive, iid (no label shift) or recorded (as filmed)."),
    ] = "ptta"
    per_stream: Annotated[
        bool, typer.Option("--per-stream", help="Start every domain (camera) with an adapter of its own.")
    ] = False
    period: Annotated[int, typer.Option(help="Images that share a label distribution.")] = 100
    batch_size: Annotated[int, typer.Option(help="Images per step.")] = 64
    image_size: Annotated[int, typer.Option(help="Side of images read from files.")] = 224
    images: Annotated[
        int | None,
        typer.Option(
            help="At most this many images of each domain, 0 for all. By default all, but bench without --full and "
            "--domains takes 3,200 of a corrupted data set."
        ),
    ] = None

    def choices(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"domains": comma_separated(self.domains), "images": self.images or 0}


@dataclass(frozen=True, kw_only=True)
class GridOptions(StreamOptions):
    """Which cells are run."""

    methods: Annotated[str | None, typer.Option(help="Methods, comma-separated; by default the ten of the paper.")] = (
        None
    )
    gammas: Annotated[
        str | None,
        typer.Option(help="Label shifts, comma-separated; by default 1e-1,1e-4, or a single one for an iid stream."),
    ] = None
    seeds: Annotated[int, typer.Option(help="Runs of each cell, with seeds 0, 1, ...")] = 1
    full: Annotated[bool, typer.Option("--full", help="All domains, all images, and gammas 1e-1 to 1e-4.")] = False

    def choices(self) -> dict[str, Any]:
        lists = {"methods": comma_separated(self.methods), "gammas": comma_separated_numbers("gammas", self.gammas)}
        return super().choices() | lists


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where and how cells are run."""

    out: Annotated[Path, typer.Option(help="Where results are kept; finished cells are not run again.")] = Path("runs")
    checkpoint_seconds: Annotated[float, typer.Option(help="At least this long between two checkpoints of a cell.")] = (
        10.0
    )
    device: Device = "cpu"
    data_root: DataRoot = None
    json_output: Json = False


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Which workers run the cells."""

    executor: Annotated[str, typer.Option(help="local (processes of this machine) or ray (a cluster).")] = "local"
    address: Annotated[
        str | None, typer.Option(help="Address of an existing Ray cluster; without it, Ray is started on this machine.")
    ] = None
    workers: Annotated[int | None, typer.Option(help="Cells run at once; by default one per core.")] = None


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters may be dataclasses, in the form that typer wants: one option per field."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            annotations |= get_type_hints(groups[name], include_extras=True)
            defaults |= {
                field.name: inspect.Parameter.empty if field.default is MISSING else field.default
                for field in fields(groups[name])
            }
        else:
            annotations[name], defaults[name] = hints[name], parameter.default

    @functools.wraps(command)
    def call(**values: Any) -> None:
        objects = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        command(**objects, **values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, keyword, default=defaults[name], annotation=annotation)
            for name, annotation in annotations.items()
        ]
    )
    call.__annotations__ = annotations
    return call


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
        raise ValueError(f"{name} must be numbers separated by commas, got {text!r}") from None
