"""The live board of a grid on stderr: a table that updates in place on a terminal, plain lines elsewhere."""

import math
import time
from collections.abc import Sequence
from typing import Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from grotta.bench.events import Event, Failure, Finished, Retried, Warned
from grotta.bench.spec import CellSpec
from grotta.report.labels import both_errors, data_name, stream_name
from grotta.report.live.tracker import CellStatus, Tracker, duration
from grotta.report.render.plain_text import encodable
from grotta.report.render.terminal import print_lines

PLAIN_SECONDS = 30.0
_BAR = 6


def make_board(specs: Sequence[CellSpec], console: Console | None = None) -> "LiveBoard | PlainBoard":
    """The display that suits stderr: live on a terminal, plain otherwise."""
    console = console or Console(stderr=True)
    tracker = Tracker(specs)
    return LiveBoard(tracker, console) if console.is_terminal else PlainBoard(tracker, console)


class PlainBoard:
    """One line per finished cell and per problem, and every so often the overall progress."""

    def __init__(self, tracker: Tracker, console: Console) -> None:
        self.tracker = tracker
        self.console = console
        self._next = time.monotonic() + PLAIN_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """There is nothing to clean up."""

    def __call__(self, event: Event) -> None:
        """Print a line if the event is worth one."""
        preparing, warned = self.tracker.preparing, list(self.tracker.warnings)
        self.tracker.see(event)
        if self.tracker.preparing and self.tracker.preparing != preparing:
            self._say(f"data: {self.tracker.preparing}")
        for warning in list(self.tracker.warnings)[len(warned) :]:
            self._say(f"note: {warning}")
        line = describe(event)
        if line:
            done, total = self.tracker.count("finished", "failed"), len(self.tracker.cells)
            self._say(f"[{done}/{total}] {line}")
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + PLAIN_SECONDS
            self._say("; ".join([summary(self.tracker), *map(so_far, running(self.tracker))]))

    def _say(self, line: str) -> None:
        print_lines(self.console, [line])


class LiveBoard:
    """The table as it fills: one row per method, one column per stream, with bars for what is running."""

    def __init__(self, tracker: Tracker, console: Console) -> None:
        self.tracker = tracker
        self.console = console
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave the last state of the board on the screen."""
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show the event at the next refresh; problems also stay as lines above the board."""
        self.tracker.see(event)
        if isinstance(event, Failure | Retried | Warned):
            print_lines(self.console, [describe(event)], "red" if isinstance(event, Failure) else "yellow")

    def render(self) -> RenderableType:
        """The board as it is now."""
        bar = ProgressBar(total=1.0, completed=self.tracker.share_done, width=40)
        head = Table.grid(padding=(0, 1))
        head.add_row(bar, summary(self.tracker))
        preparing = [Text(f"data: {self.tracker.preparing}", style="cyan")] if self.tracker.preparing else []
        notes = [encodable(f"note: {warning}", self.console.encoding) for warning in self.tracker.warnings]
        warnings = [Text(note, style="yellow") for note in notes]
        room = self.console.height - 8 - len(warnings)
        return Group(head, *preparing, matrix(self.tracker, room, self.console.encoding), *warnings)


def matrix(tracker: Tracker, height: int, encoding: str = "utf-8") -> Table:
    """Label by data set and stream; cells that differ otherwise (seeds, orders) share a place."""
    columns = list(dict.fromkeys(_column(cell.spec) for cell in tracker.cells.values()))
    rows = list(dict.fromkeys(cell.spec.label for cell in tracker.cells.values()))
    several = len({dataset for dataset, _ in columns}) > 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("error %, all images", no_wrap=True)
    for dataset, stream in columns:
        head = f"{data_name(dataset)} {stream}" if several else stream
        table.add_column(encodable(head, encoding), justify="right", no_wrap=True)
    shown = _most_telling(tracker, rows, max(height, 3))
    for label in shown:
        places = ([c for c in tracker.cells.values() if (c.spec.label, _column(c.spec)) == (label, x)] for x in columns)
        table.add_row(label, *(_place(cells, encodable("━", encoding), encodable("·", encoding)) for cells in places))
    if len(shown) < len(rows):
        table.add_row(Text(f"and {len(rows) - len(shown)} more rows", style="dim"))
    return table


def summary(tracker: Tracker) -> str:
    """The overall progress in a few words."""
    ended, failed = tracker.count("finished", "failed"), tracker.count("failed")
    words = [f"{tracker.share_done:.0%}", f"{ended} of {len(tracker.cells)} cells"]
    words += [f"{failed} failed"] if failed else []
    words += [f"{duration(tracker.seconds_left)} left"] if ended < len(tracker.cells) else []
    return ", ".join(words)


def describe(event: Event) -> str:
    """An event as one line; ``""`` if it is not worth one."""
    if isinstance(event, Finished):
        result = event.result
        speed = (
            "finished before" if event.reused else f"{result.seconds:.1f} s, {result.images_per_second:.0f} images/s"
        )
        return f"{name(event.spec)}: error {both_errors(result)} ({speed})"
    if isinstance(event, Failure):
        return f"{name(event.spec)}: failed: {event.message}"
    if isinstance(event, Retried):
        return f"{name(event.spec)}: {event.reason}; it is retried"
    return f"{name(event.spec)}: {event.message}" if isinstance(event, Warned) else ""


def name(spec: CellSpec) -> str:
    """A cell in a few words."""
    return f"{spec.label} on {data_name(spec.dataset)}, {stream_name(spec)}, seed {spec.seed}"


def running(tracker: Tracker) -> list[CellStatus]:
    """The cells that are running and have something to show."""
    return [cell for cell in tracker.cells.values() if cell.state == "running" and cell.done > 0]


def so_far(cell: CellStatus) -> str:
    """A running cell in a few words."""
    error = "" if math.isnan(cell.error) else f" {cell.error:.1f} %"
    return f"{cell.spec.label} {stream_name(cell.spec)}{error} at {cell.done:.0%}"


def _column(spec: CellSpec) -> tuple[str, str]:
    return spec.dataset, stream_name(spec).replace("gamma", "γ")


def _most_telling(tracker: Tracker, rows: list[str], height: int) -> list[str]:
    """The rows to show if not all fit: those with running cells before the others, in the usual order."""
    if len(rows) <= height:
        return rows
    rank = {"failed": 0, "running": 1, "waiting": 1, "finished": 2, "queued": 3}
    best = {label: min(rank[c.state] for c in tracker.cells.values() if c.spec.label == label) for label in rows}
    kept = sorted(rows, key=lambda label: best[label])[:height]
    return [label for label in rows if label in kept]


def _place(cells: list[CellStatus], bar: str, nothing: str) -> Text:
    """What one place shows: the mean error so far, and a bar while some of its cells are running."""
    if not cells:
        return Text("")
    if any(cell.state == "failed" for cell in cells):
        return Text("failed", style="bold red")
    known = [cell.error for cell in cells if not math.isnan(cell.error)]
    error = f"{sum(known) / len(known):.2f}" if known else ""
    done = sum(cell.done for cell in cells) / len(cells)
    if all(cell.state == "finished" for cell in cells):
        return Text(error)
    if any(cell.state == "running" for cell in cells):
        filled = round(done * _BAR)
        return Text.assemble((f"{error} ", "cyan"), (bar * filled, "cyan"), (bar * (_BAR - filled), "bright_black"))
    return Text("elsewhere" if any(cell.state == "waiting" for cell in cells) else error or nothing, style="dim")
