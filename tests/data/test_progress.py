"""Progress goes to stderr: a bar on a terminal, one plain line elsewhere."""

import io

import pytest

from grotta.data.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("total", "unit", "line"),
    [(3, "images", "Making (3 images)\n"), (2_500_000, "bytes", "Making (2.5 MB)\n"), (None, "bytes", "Making\n")],
)
def test_a_pipe_gets_one_line(capsys, total, unit, line):
    with progress("Making", total, unit=unit) as advance:
        advance(1)
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize(("total", "unit"), [(3, "images"), (2_500_000, "bytes"), (None, "bytes")])
def test_a_terminal_gets_a_bar(monkeypatch, capsys, total, unit):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress("Making", total, unit=unit) as advance:
        advance(1)
    assert "Making" in terminal.getvalue()
    assert capsys.readouterr().out == ""
