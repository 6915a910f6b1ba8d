import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grotta._version import __version__
from grotta.cli import main
from grotta.methods import list_methods, method_class

COMMANDS = ["bench", "run", "reproduce", "report", "train", "data", "data list", "data get", "data corrupt"]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, *command.split(), "--help")
    assert code == 0
    if command != "data":
        assert f"grotta {command}" in out.replace("Usage: ", "", 1)


@pytest.mark.parametrize("command", ["bench", "run", "reproduce"])
def test_help_names_every_preset(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, command, "--help")
    words = " ".join(out.replace("│", " ").split())
    assert "paper or official, which every method has; some also have " in words
    for preset in {preset for name in list_methods() for preset in method_class(name).presets}:
        assert preset in words


def test_every_method_has_the_two_presets() -> None:
    assert all(method_class(name).presets.keys() >= {"paper", "official"} for name in list_methods())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["bench", "--help"], ["data", "list"]])
def test_help_and_lists_are_answered_without_torch(words: list[str], tmp_path: Path) -> None:
    code = "import sys, grotta.cli as c; c.app(sys.argv[1:], standalone_mode=False); print('torch' in sys.modules)"
    environment = os.environ | {"GROTTA_CACHE": str(tmp_path), "GROTTA_DATA": ""}
    done = subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False", done.stderr


def test_a_shell_can_complete_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_GROTTA_COMPLETE": "complete_bash"}
        code = "import sys; sys.argv[0] = 'grotta'; from grotta.cli import main; main()"
        run = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False
        )
        return run.stdout.split()

    assert sorted(completed("grotta re")) == ["report", "reproduce"]
    assert "--stream-seed" in completed("grotta run --stream")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version") == (0, f"{__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "nonsense"),
        (["bench", "--no-such-option"], "no-such-option"),
        (["run", "--method", "tnet", "--dataset", "fashion-c", "--gamma", "0.1"], "tnet"),
        (["run", "--method", "source", "--dataset", "nowhere", "--gamma", "0.1"], "nowhere"),
        (["run", "--method", "source", "--dataset", "fashion-c", "--gamma", "0"], "gamma"),
        (["bench", "--methods", "source,tnet"], "tnet"),
        (["bench", "--dataset", "nowhere"], "nowhere"),
        (["bench", "--gammas", "-1"], "gamma"),
        (["reproduce", "table-nothing"], "table-nothing"),
        (["data", "get", "nowhere"], "nowhere"),
        (["train", "nowhere"], "nowhere"),
    ],
)
def test_a_wrong_call_is_answered_in_words_with_code_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = call(capsys, *arguments)
    assert code == 2, err
    assert says in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_an_error_of_the_system_is_told_without_its_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(args: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "page.html")

    monkeypatch.setattr("grotta.cli.app", read_only)
    assert call(capsys) == (1, "", "grotta: Read-only file system: page.html\n")
