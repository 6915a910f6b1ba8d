"""Speed and memory of grotta, as ratios measured by turns in one run; never absolute numbers.

Examples:
    python -m benchmarks                          everything but ResNet-50 steps and compilation
    python -m benchmarks steps --big              also ResNet-50 at 224 x 224, batches of 16 and 64
    python -m benchmarks parts --json parts.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from benchmarks import growth, memory, parts, steps
from benchmarks.report import Row, show, write_json
from grotta.bench.process import tune_allocator


def main(arguments: list[str] | None = None) -> int:
    args = _parse(arguments)
    tune_allocator()
    torch.set_num_threads(args.threads)
    suites: dict[str, Callable[[], Iterator[Row]]] = {
        "steps": lambda: steps.measure(args.rounds, args.big, args.compile),
        "parts": lambda: parts.measure(args.rounds, args.big),
        "memory": lambda: memory.measure(args.rounds, args.big),
        "growth": lambda: growth.measure(args.rounds),
    }
    rows: list[Row] = []
    for name in suites if args.suite == "all" else [args.suite]:
        measured = []
        for row in suites[name]():
            print(f"  {row.group}: {row.name}: {row.value.median:.3g} {row.unit}", file=sys.stderr, flush=True)
            measured.append(row)
            if args.json:
                write_json([*rows, *measured], args.json)  # what was measured outlives a run that is stopped
        show(measured)
        rows += measured
    failed = sum(row.passed is False for row in rows)
    print(f"{sum(row.passed is not None for row in rows)} bars, {failed} missed")
    return 1 if failed else 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    summary, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description=summary, epilog=examples, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("suite", nargs="?", default="all", choices=("steps", "parts", "memory", "growth", "all"))
    parser.add_argument("--big", action="store_true", help="ResNet-50 too; takes long")
    parser.add_argument("--compile", action="store_true", help="compiled steps too; compiling takes minutes")
    parser.add_argument("--rounds", type=int, default=12, help="turns of each contender (default 12)")
    parser.add_argument("--threads", type=int, default=1, help="threads; with one, CPU time is measured (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the ratios to FILE")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
