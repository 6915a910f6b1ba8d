"""What was measured, beside the bar it is held to: a table for people, JSON for programs."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.timing import Spread


@dataclass(frozen=True)
class Row:
    """One ratio. ``at_most`` or ``at_least`` is its bar, if it has one."""

    group: str
    name: str
    value: Spread
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the median is on the right side of the bar; None without a bar."""
        if self.at_most is not None:
            return self.value.median <= self.at_most
        return None if self.at_least is None else self.value.median >= self.at_least

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "passed": self.passed}


def show(rows: Iterable[Row], console: Console | None = None) -> None:
    """Print one table a group."""
    console = console or Console()
    if not console.is_terminal:
        console.width = 140
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    for group, members in groups.items():
        table = Table(title=group, title_justify="left")
        for header, justify in (("what", "left"), ("median", "right"), ("quartiles", "right"), ("unit", "left")):
            table.add_column(header, justify=justify)  # type: ignore[arg-type]
        table.add_column("bar", justify="right")
        table.add_column("")
        for row in members:
            quartiles = f"{_number(row.value.low)} .. {_number(row.value.high)}"
            table.add_row(row.name, _number(row.value.median), quartiles, row.unit, _bar(row), _verdict(row))
        console.print(table)


def write_json(rows: Iterable[Row], path: Path) -> None:
    """Write all rows, and what they were measured with."""
    content = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "rows": [row.as_dict() for row in rows],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def _number(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _bar(row: Row) -> str:
    if row.at_most is not None:
        return f"<= {row.at_most:g}"
    return "" if row.at_least is None else f">= {row.at_least:g}"


def _verdict(row: Row) -> str:
    return {True: "pass", False: "FAIL", None: ""}[row.passed]
