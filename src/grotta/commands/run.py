"""``grotta run``: one cell of the benchmark, with live progress."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grotta.commands.options import RunOptions, StreamOptions, WorkerOptions, with_options

if TYPE_CHECKING:
    from grotta.bench import CellResult


@dataclass(frozen=True, kw_only=True)
class CellOptions(StreamOptions):
    """Which cell is run."""

    method: Annotated[
        str,
        typer.Option(help="Method, such as grotta+, grotta, rotta, tent or source; an unknown name prints the list."),
    ]
    gamma: Annotated[
        float, typer.Option(help="Label shift: the smaller, the fewer classes at a time; iid streams ignore it.")
    ] = 0.1
    option: Annotated[
        list[str] | None, typer.Option(help="One setting of the method, KEY=VALUE (VALUE as JSON); may be repeated.")
    ] = None
    stream_seed: Annotated[int, typer.Option(help="Seed of the order of the images.")] = 0
    seed: Annotated[int, typer.Option(help="Seed of everything random in the method.")] = 0
    resume: Annotated[bool, typer.Option("--resume", help="Resume a run that was stopped.")] = False

    def choices(self) -> dict[str, Any]:
        """The arguments for :func:`grotta.bench.grid.make_grid`: a grid of one cell."""
        values = super().choices() | {"methods": [self.method], "gammas": [self.gamma], "full": True}
        for name in ("method", "gamma", "option", "stream_seed", "seed", "resume"):
            del values[name]
        return values


@with_options
def run(cell: CellOptions, options: RunOptions) -> None:
    """Run one method on one stream; a finished run is shown, not repeated.

    Example: `grotta run --method grotta --gamma 1e-4 --domains fog,snow --option k=10`
    """
    from grotta.bench import CellSpec, Event, Failure
    from grotta.bench.cell import checkpoint
    from grotta.bench.cell.adapter import check_options
    from grotta.bench.events import Progressed, Warned
    from grotta.bench.grid import make_grid
    from grotta.bench.process import tune_allocator
    from grotta.bench.run import run_plan
    from grotta.bench.store.results import RESULT, cell_directory
    from grotta.commands.camera import filmed
    from grotta.commands.running import cell_json, echo_json, make_plan
    from grotta.report.live.line import ProgressLine

    tune_allocator()
    dataset = filmed(cell.dataset, cell.stream, cell.images or 0, options.out)
    [plain] = make_grid(**{**cell.choices(), "dataset": dataset}, data_root=options.data_root)
    own = {"options": parse_options(cell.option or []), "stream_seed": cell.stream_seed, "seed": cell.seed, "label": ""}
    spec = CellSpec.from_dict({**plain.to_dict(), **own})
    plan = make_plan([spec], options, WorkerOptions(executor="inline"))
    directory = cell_directory(options.out, spec)
    if checkpoint.exists(directory) and not (directory / RESULT).exists() and not cell.resume:
        raise ValueError(f"this run was stopped before (see {directory}): resume it with --resume, or change --out")
    if not directory.exists():
        check_options(spec, options.data_root)  # so that a mistyped option leaves no cell behind
    with ProgressLine(spec.label) as line:

        def see(event: Event) -> None:
            if isinstance(event, Progressed):
                line(event.progress)
            elif isinstance(event, Warned):
                typer.echo(f"grotta: {event.message}", err=True)

        [outcome] = run_plan(plan, see)
    if isinstance(outcome, Failure):
        raise OSError(outcome.message)
    if options.json_output:
        echo_json(cell_json(outcome))
    else:
        typer.echo(to_text(outcome))


def parse_options(words: list[str]) -> dict[str, Any]:
    """``KEY=VALUE`` words as a mapping; a value that is not JSON is a string.

    >>> parse_options(["k=10", "affinity=rbf", "output=null"])
    {'k': 10, 'affinity': 'rbf', 'output': None}
    """
    options: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals or key in options:
            raise ValueError(f"option must be KEY=VALUE, each key once, got {word!r}")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


def to_text(result: "CellResult") -> str:
    """A finished cell as text."""
    from grotta.report.labels import data_name, stream_name

    spec = result.spec
    width = max(map(len, result.domain_errors))
    errors = {} if result.measures else result.domain_errors
    return "\n".join(
        [
            f"{spec.label} on {data_name(spec.dataset)}, {stream_name(spec)}: {_named_errors(result)}",
            *(f"  {domain:{width}}  {error:5.2f} %" for domain, error in errors.items()),
            f"{result.images:,} images, {result.seconds:.1f} s, {result.images_per_second:.0f} images/s, "
            f"{result.peak_memory_mb:.0f} MB; stream {result.stream_hash[:12]}; {result.directory}",
            *(f"Note: {warning}" for warning in result.warnings),
        ]
    )


def _named_errors(result: "CellResult") -> str:
    from grotta.report.labels import mean_error

    if result.measures:
        named = {name.removeprefix("class "): share for name, share in result.measures.items() if "class " in name}
        mix = ", ".join(f"{name} {100 * share:.1f} %" for name, share in named.items())
        agreement, entropy = (result.measures[name] for name in ("agreement", "entropy"))
        estimate = result.measures.get("estimated_accuracy")
        sure = f", confidence {100 * result.measures['confidence']:.1f} %" if "confidence" in result.measures else ""
        own = "" if estimate is None else f", accuracy {100 * estimate:.1f} % by its own estimate"
        return (
            f"no labels; agreement {100 * agreement:.1f} % with the source network, entropy {entropy:.3f} nats"
            f"{sure}{own}, predicted {mix}"
        )
    of_all, mean = f"{result.error:.2f} %", f"{mean_error(result):.2f} %"
    if of_all == mean:  # one domain, or all of one length
        return f"error {of_all} of all images and mean over domains"
    return f"error {of_all} of all images, {mean} mean over domains"
