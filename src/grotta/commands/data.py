"""``grotta data``: what is available, how to get the rest, and corruptions of your own pictures."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from grotta.commands.options import DataRoot, Json, comma_separated

if TYPE_CHECKING:
    from grotta.data.corruptions import Scale
    from grotta.data.entry import Entry

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.command("list")
def list_data(data_root: DataRoot = None, as_json: Json = False) -> None:
    """List the data sets: what is present and where, and how to get the rest.

    Example: `grotta data list --data-root /data`
    """
    from grotta.data.registry import ENTRIES
    from grotta.data.roots import data_roots

    roots = data_roots(data_root)
    problems = {root: problem for root in roots if (problem := _problem(root))}
    readable = tuple(root for root in roots if root not in problems)
    facts = {name: describe(name, entry, readable) for name, entry in ENTRIES.items()}
    if as_json:
        unread = {str(root): problem for root, problem in problems.items()}
        content = {"roots": [str(root) for root in roots], "not_read": unread, "datasets": facts}
        typer.echo(json.dumps(content, indent=1))
        return
    typer.echo("Looked in (first match wins):")
    for root in roots:
        typer.echo(f"  {root}{f'  ({problems[root]})' if root in problems else ''}")
    for name, fact in facts.items():
        typer.echo(f"\n{name}: {fact['title']}")
        for part, place in fact["here"].items():
            typer.echo(f"  here: {part}, {place}")
        if fact["missing"]:
            typer.echo(f"  missing: {', '.join(fact['missing'])}")
        if fact["problem"]:
            typer.echo(f"  cannot tell: {fact['problem']}")
        elif not fact["here"]:
            typer.echo(f"  not here; looked for {fact['looked_for']}")
        typer.echo(f"  get:  {fact['get']}")
    typer.echo("\nYour own images: --dataset folder:PATH with PATH/<domain>/<class>/<image>")


def describe(name: str, entry: "Entry", roots: tuple[Path, ...]) -> dict[str, Any]:
    """A data set's entry in the list, as plain values."""
    from grotta.data.entry import Holding

    holding, problem = Holding(), ""
    try:
        holding = entry.find(roots)
    except OSError as error:
        problem = str(error)
    return {
        "title": entry.title,
        "here": {part: str(place) for part, place in holding.here},
        "missing": list(holding.missing),
        "problem": problem,
        "looked_for": entry.looks_for,
        "get": f"grotta data get {name} ({entry.size})" if entry.get else entry.size,
        "benchmark": entry.listed,
    }


def _problem(root: Path) -> str:
    """Why a data root cannot be searched; empty if it can."""
    try:
        next(root.iterdir(), None)
    except FileNotFoundError:
        return "does not exist"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


@app.command("get")
def get_data(
    name: Annotated[str, typer.Argument(help="A name from `grotta data list`.")],
    data_root: Annotated[
        Path | None,
        typer.Option("--data-root", help="Where to put it; by default the cache. Created if it does not exist."),
    ] = None,
) -> None:
    """Download a data set, check it, and put it where it will be found.

    An interrupted download is resumed. Some data sets are only available from their authors: for those, it explains
    what to do.

    Example: `grotta data get cifar10-c`
    """
    from grotta.data.errors import DataNotFoundError
    from grotta.data.registry import ENTRIES
    from grotta.data.roots import download_dir

    obtainable = [known for known, entry in ENTRIES.items() if entry.get]
    entry = ENTRIES.get(name)
    if entry is None or entry.get is None:
        raise ValueError(f"name must be one of {', '.join(obtainable)}, got {name!r}")
    root = download_dir() if data_root is None else data_root.expanduser()
    root.mkdir(parents=True, exist_ok=True)
    entry.get(root)
    holding = entry.find((root,))
    if not holding.here or holding.missing:
        lacking = ", ".join(holding.missing) or entry.looks_for
        raise DataNotFoundError(f"{name}: {root} still lacks {lacking}; is it a different data set?")
    for part, place in holding.here:
        typer.echo(f"{name}: {part}, {place}")


@app.command("corrupt")
def corrupt_data(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="Your images, in class folders or not.")],
    out: Annotated[Path, typer.Option(help="Where to put the corrupted copies.")],
    severity: Annotated[str, typer.Option(help="1 to 5; several are comma-separated.")] = "5",
    corruptions: Annotated[
        str, typer.Option(help="Corruptions, comma-separated; by default the fifteen of the benchmark.")
    ] = "",
    scale: Annotated[str, typer.Option(help="Constants for imagenet (224 pixels) or cifar (32).")] = "imagenet",
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    keep_size: Annotated[bool, typer.Option("--keep-size", help="Do not resize and crop to 224 or 32.")] = False,
    as_json: Json = False,
) -> None:
    """Corrupt your own images into the layout of ImageNet-C: `<corruption>/<severity>/<class>/<name>.JPEG`.

    The originals are only read. A second call with the same settings only makes the files that are missing or
    older than their originals.

    Example: `grotta data corrupt photos --out photos-c --severity 3,5 --corruptions fog,snow`
    """
    from grotta.data.corrupt_folder import Corruptor, corrupt_folder
    from grotta.data.corruptions import CORRUPTIONS

    corruptor = Corruptor(
        corruptions=comma_separated(corruptions) or CORRUPTIONS,
        severities=[_whole_number("severity", part) for part in comma_separated(severity) or []],
        scale=cast("Scale", scale),
        seed=seed,
        keep_size=keep_size,
    )
    outcome = corrupt_folder(source.expanduser(), out.expanduser(), corruptor)
    if as_json:
        typer.echo(json.dumps(asdict(outcome), indent=1))
    else:
        typer.echo(f"{out}: {outcome.made} files made, {outcome.kept} kept")
        for reason in outcome.damaged:
            typer.echo(f"left out: {reason}", err=True)
    if outcome.damaged:
        raise typer.Exit(1)


@app.command("record")
def record_data(
    source: Annotated[str, typer.Argument(help="A camera's address or device, or a video file.")],
    out: Annotated[Path, typer.Option(help="A new folder for the pictures.")],
    images: Annotated[int, typer.Option(help="Stop after this many; 0 films until the end, or Ctrl-C.")] = 0,
) -> None:
    """Film a running camera into a folder: one picture per frame, named after the time at which it was taken.

    `--stream recorded --dataset folder:PATH` then runs methods on it. Needs the extra `video` (PyAV).

    Example: `grotta data record rtsp://camera/gate --out filmed/gate --images 5000`
    """
    from grotta._check import check_whole
    from grotta.commands.camera import film

    film(source, out.expanduser(), check_whole("images", images, at_least=0))


def _whole_number(argument: str, text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{argument} must be whole numbers separated by commas, got {text!r}")
    return int(text)
