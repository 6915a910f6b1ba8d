import io
import math
from dataclasses import replace

import pytest
from rich.console import Console

from grotta.bench import CellResult, CellSpec, Failure, Progress
from grotta.bench.events import Event, Finished, Preparing, Progressed, Retried, Started, Waiting, Warned
from grotta.report.live.board import LiveBoard, PlainBoard, make_board, name, running, so_far
from grotta.report.live.line import ProgressLine
from grotta.report.live.tracker import Tracker


def spec(method: str, gamma: float = 0.1, seed: int = 0) -> CellSpec:
    return CellSpec(method=method, dataset="fashion-c", domains=("fog",), gamma=gamma, seed=seed)


def result(of: CellSpec, error: float, *warnings: str) -> CellResult:
    return CellResult(
        spec=of,
        model="net",
        model_fingerprint="f",
        stream_hash="h",
        error=error,
        domain_errors={"fog": error},
        images=1000,
        classes=10,
        provenance="original",
        versions={},
        warnings=warnings,
        seconds=2.0,
        images_per_second=500.0,
    )


def progressed(of: CellSpec, images: int, wrong: int) -> Progressed:
    return Progressed(of, Progress(images, wrong, 1000, "fog", images, wrong))


SOURCE, TENT, TENT_4 = spec("source"), spec("tent"), spec("tent", 1e-4)
STORY: list[Event] = [
    Preparing("fashion-c fog", 1, 1),
    Started(TENT, "process 1"),
    progressed(TENT, 250, 100),
    Retried(TENT, "its process ended with signal 9"),
    Started(TENT_4, "process 2"),
    Waiting(TENT_4),
    Finished(TENT, result(TENT, 41.5)),
    Warned(SOURCE, "the checkpoint cannot be used"),
    Failure(SOURCE, "the disk is full", "Traceback"),
]


def drawn(board: LiveBoard) -> str:
    console = Console(file=io.StringIO(), width=100, height=40)
    console.print(board.render())
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_board_fits_where_it_is_shown() -> None:
    assert isinstance(make_board([TENT], Console(file=io.StringIO(), force_terminal=True)), LiveBoard)
    assert isinstance(make_board([TENT], Console(file=io.StringIO())), PlainBoard)


def test_plain_lines_say_what_ends_and_what_goes_wrong() -> None:
    console = Console(file=io.StringIO(), width=40)
    with make_board([SOURCE, TENT, TENT_4], console) as board:
        for event in STORY:
            board(event)
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "data: fashion-c fog (1 of 1)",
        "[0/3] tent on fashion-c, gamma 0.1, seed 0: its process ended with signal 9; it is retried",
        "[1/3] tent on fashion-c, gamma 0.1, seed 0: error 41.50 % mean over domains, 41.50 % of all images "
        "(2.0 s, 500 images/s)",
        "[1/3] source on fashion-c, gamma 0.1, seed 0: the checkpoint cannot be used",
        "[2/3] source on fashion-c, gamma 0.1, seed 0: failed: the disk is full",
    ]


def test_plain_lines_tell_now_and_then_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=200)
    monkeypatch.setattr("grotta.report.live.board.PLAIN_SECONDS", 0.0)
    board = make_board([TENT, TENT_4], console)
    board(Started(TENT_4, "process 1"))
    board(progressed(TENT, 500, 100))
    first, second = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first == "0%, 0 of 2 cells, -:-- left"
    assert second.startswith("25%, 0 of 2 cells, ")
    assert second.endswith(" left; tent gamma 0.1 20.0 % at 50%")


def test_the_live_board_shows_the_error_so_far_of_each_cell() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=40)
    board = LiveBoard(Tracker([SOURCE, TENT, TENT_4]), console)
    with board:
        for event in STORY[:3]:
            board(event)
        picture = drawn(board)
        assert "γ 0.1" in picture
        assert "γ 0.0001" in picture
        assert "40.00 ━━" in picture
        assert "0 of 3 cells" in picture
        for event in STORY[3:]:
            board(event)
    picture = drawn(board)
    assert "41.50" in picture
    assert "elsewhere" in picture
    assert "failed" in picture
    assert "2 of 3 cells, 1 failed" in picture
    assert "the disk is full" in console.file.getvalue()  # type: ignore[attr-defined]


def test_seeds_share_a_place_and_show_their_mean() -> None:
    specs = [spec("tent", seed=seed) for seed in range(2)]
    board = LiveBoard(Tracker(specs), Console(file=io.StringIO()))
    for of, error in zip(specs, (40.0, 50.0)):
        board(Finished(of, result(of, error)))
    assert "45.00" in drawn(board)


def test_rows_that_do_not_fit_are_counted() -> None:
    specs = [spec(f"method-{number}") for number in range(60)]
    board = LiveBoard(Tracker(specs), Console(file=io.StringIO(), height=20))
    board(progressed(specs[55], 500, 100))
    picture = drawn(board)
    assert "method-55" in picture
    assert "and 48 more rows" in picture


def test_time_left_counts_only_what_this_run_did() -> None:
    now = [0.0]
    tracker = Tracker([spec("tent", seed=seed) for seed in range(4)], clock=lambda: now[0])
    assert math.isnan(tracker.seconds_left)
    first, second, third, _ = tracker.specs
    tracker.see(Finished(first, result(first, 10.0), reused=True))
    tracker.see(progressed(second, 500, 0))  # half of it was done before
    now[0] = 10.0
    tracker.see(progressed(second, 1000, 0))
    tracker.see(Finished(second, result(second, 10.0)))
    tracker.see(Started(third, ""))
    assert tracker.share_done == 0.5
    assert tracker.seconds_left == pytest.approx(40.0)  # half a cell took ten seconds, two are left


@pytest.mark.parametrize("terminal", [False, True])
def test_warnings_of_results_are_shown_once(terminal: bool) -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=terminal)
    board = make_board([SOURCE, TENT], console)
    for of in (SOURCE, TENT):
        board(Finished(of, result(of, 1.0, "short domains")))
    shown = drawn(board) if isinstance(board, LiveBoard) else console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.count("note: short domains") == 1


def test_the_progress_of_a_cell_is_a_line_a_domain_where_nothing_moves() -> None:
    console = Console(file=io.StringIO(), width=40)
    with ProgressLine("tent", console) as line:
        line(Progress(100, 50, 300, "fog", 100, 50))
        line(Progress(200, 80, 300, "snow", 100, 30))
        line(Progress(300, 90, 300, "snow", 200, 40))
    fog, snow = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert fog.startswith("tent error 50.00 % of all images so far, fog 50.00 %, ")
    assert snow.startswith("tent error 30.00 % of all images so far, snow 20.00 %, ")


def test_without_labels_no_error_is_shown_on_the_way() -> None:
    console = Console(file=io.StringIO(), width=100)
    with ProgressLine("tent", console) as line:
        line(Progress(100, 0, 300, "gate", 100, 0, unknown=100, domain_unknown=100))
    assert console.file.getvalue().startswith("tent 100 of 300 images without labels, gate, ")  # type: ignore[attr-defined]
    gate = replace(TENT, stream="recorded")
    tracker = Tracker([gate])
    tracker.see(Progressed(gate, Progress(250, 0, 1000, "gate", 250, 0, unknown=250, domain_unknown=250)))
    assert [so_far(cell) for cell in running(tracker)] == ["tent recorded stream at 25%"]
    assert name(gate) == "tent on fashion-c, recorded stream, seed 0"
    tracker.see(Progressed(gate, Progress(500, 30, 1000, "gate", 500, 30, unknown=400, domain_unknown=400)))
    assert [so_far(cell) for cell in running(tracker)] == ["tent recorded stream 30.0 % at 50%"]


def test_the_progress_of_a_cell_moves_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with ProgressLine("tent", console) as line:
        line(Progress(100, 50, 300, "fog", 100, 50))
    assert "error 50.00 % of all images so far, fog 50.00 %" in console.file.getvalue()  # type: ignore[attr-defined]


class AsciiFile(io.StringIO):
    """What a terminal without Unicode is: it refuses any other character."""

    encoding = "ascii"

    def write(self, text: str) -> int:
        text.encode("ascii")
        return super().write(text)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_terminal_without_unicode_gets_the_whole_board(terminal: bool) -> None:
    console = Console(file=AsciiFile(), width=100, height=40, force_terminal=terminal)
    with make_board([SOURCE, TENT, TENT_4], console) as board:
        for event in STORY:
            board(event)
        board(Finished(TENT_4, result(TENT_4, 1.0, "short domains: 12 × 3")))
        if isinstance(board, LiveBoard):
            console.print(board.render())
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "note: short domains: 12 x 3" in shown
    assert ("gamma 0.0001" if terminal else "41.50 % mean over domains") in shown
