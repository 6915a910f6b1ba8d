"""What ``bench`` and ``reproduce`` have in common: run a plan behind a board, write the report, tell the outcome."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from grotta.bench import CellResult, CellSpec, Event, Failure
from grotta.bench.events import Finished
from grotta.bench.plan import Plan
from grotta.bench.run import run_plan
from grotta.bench.store.results import result_values
from grotta.commands.options import RunOptions, WorkerOptions
from grotta.paper.directory import directory_report
from grotta.report.document import Report
from grotta.report.labels import mean_error
from grotta.report.live.board import make_board
from grotta.report.live.tracker import duration
from grotta.report.write import write_report


@dataclass
class Outcome:
    """The outcome of a plan: results and failures in its order, and the seconds of the cells that ran."""

    results: list[CellResult] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def make_plan(specs: Sequence[CellSpec], options: RunOptions, workers: WorkerOptions) -> Plan:
    """The plan for cells under a command's options; a mistake in them is a ``ValueError``."""
    return Plan(
        specs=tuple(specs),
        out=options.out,
        executor=workers.executor,
        workers=workers.workers,
        address=workers.address,
        data_root=options.data_root,
        device=options.device,
        checkpoint_seconds=options.checkpoint_seconds,
    )


def run_with_board(plan: Plan) -> Outcome:
    """Run the cells behind a live board; on Ctrl-C, say how to resume."""
    outcome = Outcome()
    try:
        with make_board(plan.specs) as board:

            def see(event: Event) -> None:
                if isinstance(event, Finished) and not event.reused:
                    method = event.spec.method
                    outcome.seconds[method] = outcome.seconds.get(method, 0.0) + event.result.seconds
                board(event)

            ends = run_plan(plan, see)
    except KeyboardInterrupt:
        typer.echo(f"grotta: stopped; run the same command again to resume (results so far: {plan.out})", err=True)
        raise typer.Exit(130) from None
    outcome.results = [end for end in ends if isinstance(end, CellResult)]
    outcome.failures = [end for end in ends if isinstance(end, Failure)]
    return outcome


def report_and_tell(out: Path, outcome: Outcome, tell: Callable[[Report, Path | None], None]) -> None:
    """Write the report, then ``tell`` it with its page, or None if it could not be written; fail if anything failed.

    The outcome is told even if the disk is full, and the report written even if the terminal cannot show it.
    """
    page, problem = out / "report.html", None
    report = directory_report(out, failures=outcome.failures, known=outcome.results)
    try:
        write_report(report, page)
    except OSError as error:
        problem = error
    tell(report, page if problem is None else None)
    if problem is not None:
        raise problem
    if outcome.failures:
        raise typer.Exit(1)


def time_spent(outcome: Outcome, at_most: int = 4) -> str:
    """Where the time of the cells that were run went, in a few words; ``""`` if none was run.

    >>> time_spent(Outcome(seconds={"bn": 10.0, "cotta": 90.0}))
    'Cells took 1:40 in total on all workers: cotta 90 %, bn 10 %.'
    """
    total = sum(outcome.seconds.values())
    if not total > 0:
        return ""
    ranked = sorted(outcome.seconds.items(), key=lambda item: -item[1])
    words = [f"{method} {seconds / total:.0%}".replace("%", " %") for method, seconds in ranked[:at_most]]
    words += ["the others " + f"{sum(s for _, s in ranked[at_most:]) / total:.0%}".replace("%", " %")] * (
        len(ranked) > at_most
    )
    return f"Cells took {duration(total)} in total on all workers: {', '.join(words)}."


def cell_json(result: CellResult) -> dict[str, Any]:
    """A finished cell as JSON values."""
    timing = {name: getattr(result, name) for name in ("seconds", "images_per_second", "peak_memory_mb")}
    known = {name: value if value == value else None for name, value in timing.items()}
    names = {"id": result.spec.id, "label": result.spec.label, "directory": str(result.directory)}
    mean = mean_error(result)
    return {**names, **result_values(result), **known, "error_mean_over_domains": mean if mean == mean else None}


def failures_json(page: Path | None, failures: Sequence[Failure]) -> dict[str, Any]:
    """What failed and where the report is, as JSON values."""
    failed = [{"spec": failure.spec.to_dict(), "message": failure.message} for failure in failures]
    return {"failed": failed, "report": None if page is None else str(page)}


def echo_json(values: dict[str, Any]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(values, allow_nan=False))
