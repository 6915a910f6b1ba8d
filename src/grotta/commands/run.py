"""``grotta run``: one cell of the benchmark, with live progress."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from safetensors import SafetensorError

from grotta.bench import CellSpec, run_cell
from grotta.bench.cell import checkpoint
from grotta.bench.cell.inputs import check_device, check_options
from grotta.bench.execute.task import one_line
from grotta.bench.grid import make_grid
from grotta.bench.run import require_writable
from grotta.bench.store.results import RESULT, CellResult, cell_directory, result_values
from grotta.commands.options import DataRoot, Device, Json, Out, Preset, Stream, comma_separated
from grotta.report.labels import mean_error
from grotta.report.live.line import ProgressLine


def run(
    method: Annotated[str, typer.Option(help="Method: source, bn, pl, tent, lame, cotta, ods, note, rotta, grotta.")],
    dataset: Annotated[str, typer.Option(help="A data set's name (grotta data list) or folder:PATH.")] = "fashion-c",
    gamma: Annotated[
        float, typer.Option(help="Label shift: the smaller, the fewer classes at a time; not for iid.")
    ] = 0.1,
    domains: Annotated[
        str | None,
        typer.Option("--domains", "--corruptions", help="Domains in stream order, comma-separated; all by default."),
    ] = None,
    model: Annotated[str, typer.Option(help="Network NAME (bundled) or NAME@WEIGHTS; the data set's own.")] = "",
    preset: Preset = "paper",
    option: Annotated[
        list[str] | None, typer.Option(help="One setting of the method, KEY=VALUE (VALUE as JSON); may be repeated.")
    ] = None,
    stream: Stream = "ptta",
    period: Annotated[int, typer.Option(help="Images that share a label distribution.")] = 100,
    batch_size: Annotated[int, typer.Option(help="Images in a step.")] = 64,
    image_size: Annotated[int, typer.Option(help="Side of pictures read from files.")] = 224,
    stream_seed: Annotated[int, typer.Option(help="Of the order of the images.")] = 0,
    seed: Annotated[int, typer.Option(help="Of everything random in the method.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    out: Out = Path("runs"),
    device: Device = "cpu",
    data_root: DataRoot = None,
    json_output: Json = False,
) -> None:
    """Run one method on one stream; a finished run is shown, not repeated.

    Example: `grotta run --method grotta --gamma 1e-4 --domains fog,snow --option k=10`
    """
    [plain] = make_grid(
        dataset,
        methods=[method],
        gammas=[gamma],
        domains=comma_separated(domains),
        model=model,
        preset=preset,
        stream=stream,
        period=period,
        batch_size=batch_size,
        image_size=image_size,
        full=True,
        data_root=data_root,
    )
    changes = {"options": parse_options(option or []), "stream_seed": stream_seed, "seed": seed, "label": ""}
    spec = CellSpec.from_dict({**plain.to_dict(), **changes})
    directory = cell_directory(out, spec)
    if checkpoint.exists(directory) and not (directory / RESULT).exists() and not resume:
        raise ValueError(f"this run was stopped before (see {directory}): go on with --resume, or choose another --out")
    if not directory.exists():
        check_device(device)
        check_options(spec, data_root)  # a slip of the pen leaves no cell behind
    require_writable(out)
    with ProgressLine(spec.label) as line:
        try:
            result = run_cell(spec, out, data_root=data_root, device=device, on_progress=line)
        except (OSError, SafetensorError) as error:  # a full disk, mostly
            raise OSError(one_line(error, directory)) from error
    typer.echo(json.dumps(to_json(result), allow_nan=False) if json_output else to_text(result))


def parse_options(words: list[str]) -> dict[str, Any]:
    """``KEY=VALUE`` words as a mapping; a value that is no JSON is a string.

    >>> parse_options(["k=10", "affinity=rbf", "output=null"])
    {'k': 10, 'affinity': 'rbf', 'output': None}
    """
    options: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals or key in options:
            raise ValueError(f"option: expected KEY=VALUE, each key once; got {word!r}")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


def to_json(result: CellResult) -> dict[str, Any]:
    """A finished cell for programs."""
    timing = {name: getattr(result, name) for name in ("seconds", "images_per_second", "peak_memory_mb")}
    known = {name: value if value == value else None for name, value in timing.items()}
    names = {"id": result.spec.id, "label": result.spec.label, "directory": str(result.directory)}
    return {**names, **result_values(result), **known, "error_mean_over_domains": mean_error(result)}


def to_text(result: CellResult) -> str:
    """A finished cell for readers."""
    spec = result.spec
    width = max(map(len, result.domain_errors))
    shift = "iid stream" if spec.stream == "iid" else f"gamma {spec.gamma:g}"
    return "\n".join(
        [
            f"{spec.label} on {spec.dataset}, {shift}: error {_named_errors(result)}",
            *(f"  {domain:{width}}  {error:5.2f} %" for domain, error in result.domain_errors.items()),
            f"{result.images:,} images, {result.seconds:.1f} s, {result.images_per_second:.0f} images/s, "
            f"{result.peak_memory_mb:.0f} MB; stream {result.stream_hash[:12]}; {result.directory}",
            *(f"Note: {warning}" for warning in result.warnings),
        ]
    )


def _named_errors(result: CellResult) -> str:
    of_all, mean = f"{result.error:.2f} %", f"{mean_error(result):.2f} %"
    if of_all == mean:  # one domain, or all of one length
        return f"{of_all} of all images and mean over domains"
    return f"{of_all} of all images, {mean} mean over domains"
