"""The error/cost curve of GRoTTA: what cheaper settings cost in passes of the network, and in per cent of error.

Example:
    python -m benchmarks.curve --dataset cifar10-c --domains fog,snow,contrast --gammas 1e-1,1e-4 --out runs/curve

Cells that have run are read from ``--out``; the cost is measured on the CIFAR ResNet-20 with batches of 64.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.subjects import resnet20
from benchmarks.timing import Spread, faster, ratio, take_turns
from grotta.bench import CellResult, CellSpec, Failure, run_grid
from grotta.bench.grid import make_grid
from grotta.bench.process import tune_allocator

# Two batches of statistics in one update: 1 - (1 - alpha)^2 with the paper's alpha, and twice its nu.
_TWICE = {"alpha": 0.0975, "nu": 0.002}

SETTINGS: dict[str, dict[str, Any]] = {
    "full": {},
    "no current batch": {"lambda_batch": 0.0},
    "no current batch, 32 from the bank": {"lambda_batch": 0.0, "bank_batch": 32},
    "no current batch, every 2nd, twice as far": {"lambda_batch": 0.0, "update_every": 2, **_TWICE},
    "no current batch, 16 from the bank": {"lambda_batch": 0.0, "bank_batch": 16},
    "every 4th": {"update_every": 4},
    "no current batch, no source, 32 from the bank": {"lambda_batch": 0.0, "lambda_re": 0.0, "bank_batch": 32},
}


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parse(arguments)
    tune_allocator()
    torch.set_num_threads(1)
    grid = make_grid(
        args.dataset,
        methods=["grotta"],
        gammas=args.gammas,
        seeds=args.seeds,
        domains=args.domains,
        model=args.model,
        full=args.full,
        data_root=args.data_root,
    )
    errors, costs = run_cells(grid, args), measure_costs(args.rounds)
    _show(errors, costs)
    if args.json:
        content = {name: {"cost": vars(costs[name]), "errors": errors[name]} for name in SETTINGS}
        args.json.write_text(json.dumps(content, indent=1) + "\n")
    return 0


def run_cells(grid: Sequence[CellSpec], args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The mean error over the seeds, in per cent, of each setting at each gamma."""
    cells = [replace(spec, options=options, label="") for options in SETTINGS.values() for spec in grid]
    outcomes = run_grid(cells, args.out, workers=args.workers, data_root=args.data_root)
    results: list[CellResult] = []
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            raise SystemExit(f"{outcome.spec.label}: {outcome.message}")
        results.append(outcome)
    errors: dict[str, dict[str, float]] = {}
    for number, name in enumerate(SETTINGS):
        mine = results[number * len(grid) : (number + 1) * len(grid)]
        gammas = dict.fromkeys(result.spec.gamma for result in mine)
        errors[name] = {f"{g:g}": statistics.mean(r.error for r in mine if r.spec.gamma == g) for g in gammas}
    return errors


def measure_costs(rounds: int) -> dict[str, Spread]:
    """The mean cost of a batch under each setting, in source forwards."""
    subject = resnet20()
    contenders: dict[str, Callable[[], object]] = {
        "channels last": subject.forward(torch.channels_last),
        "contiguous": subject.forward(torch.contiguous_format),
    }
    lengths: dict[str, int] = {}
    for name, options in SETTINGS.items():
        contenders[name], lengths[name] = subject.period("grotta", **options)
    times = take_turns(contenders, rounds, warmup=2)
    unit = faster(times, "channels last", "contiguous")
    return {name: ratio(times, name, unit) * (1 / length) for name, length in lengths.items()}


def _show(errors: Mapping[str, Mapping[str, float]], costs: Mapping[str, Spread]) -> None:
    gammas = list(errors["full"])
    table = Table("setting", "source forwards", *(f"error, gamma {gamma}" for gamma in gammas), "against full")
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].median):
        worse = statistics.mean(errors[name][gamma] - errors["full"][gamma] for gamma in gammas)
        table.add_row(name, f"{cost.median:.1f}", *(f"{errors[name][g]:.2f}" for g in gammas), f"{worse:+.2f}")
    console = Console()
    console.width = max(console.width, 120)
    console.print(table)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.curve", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="fashion-c")
    parser.add_argument("--model", default="", help="NAME or NAME@WEIGHTS; the data set's own by default")
    parser.add_argument("--gammas", type=_numbers, default=[1e-1, 1e-4], help="comma-separated (1e-1,1e-4)")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--domains", type=lambda text: text.split(","), help="in stream order, comma-separated")
    parser.add_argument("--full", action="store_true", help="all domains, not just the first three")
    parser.add_argument("--out", type=Path, default=Path("runs/curve"))
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--rounds", type=int, default=12, help="of the measurement of cost (12)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args(arguments)


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
