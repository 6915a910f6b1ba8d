import pytest

from grotta._version import __version__
from grotta.cli import main

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
