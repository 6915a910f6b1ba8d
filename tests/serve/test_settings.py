"""Flags, environment and file, in that order."""

from pathlib import Path

import pytest

from grotta.serve.settings import gather


def written(folder: Path, text: str) -> Path:
    file = folder / "serve.toml"
    file.write_text(text)
    return file


def test_flags_come_before_the_environment_and_that_before_the_file(tmp_path):
    file = written(tmp_path, "port = 1\nqueue = 1\nmax_live = 1\n")
    environment = {"GROTTA_SERVE_PORT": "2", "GROTTA_SERVE_QUEUE": "2", "UNRELATED": "x"}
    settings = gather({"port": 3, "queue": None}, environment, file)
    assert (settings.port, settings.queue, settings.max_live) == (3, 2, 1)
    assert settings.host == "127.0.0.1"


def test_models_have_methods_of_their_own_or_the_common_one(tmp_path):
    file = written(
        tmp_path,
        'method = "tent"\n[models.a]\npath = "fashion_resnet8"\n'
        '[models.b]\npath = "x"\nmethod = "source"\noptions = {k = 3}\n',
    )
    a, b = gather({}, {}, file).models
    assert (a.method, b.method, dict(b.options)) == ("tent", "source", {"k": 3})
    [one] = gather({"models": ["c=fashion_resnet8"], "preset": "fast"}, {}, file).models
    assert (one.name, one.method, one.preset) == ("c", "tent", "fast")


def test_the_environment_is_converted_to_the_settings_type():
    environment = {
        "GROTTA_SERVE_SHARED": "true",
        "GROTTA_SERVE_IDLE_SECONDS": "2.5",
        "GROTTA_SERVE_MODELS": "a=x b=y",
        "GROTTA_SERVE_OPTIONS": "k=3;lr=0.1",
    }
    settings = gather({}, environment, None)
    assert (settings.shared, settings.idle_seconds) == (True, 2.5)
    assert [(m.name, m.path, dict(m.options)) for m in settings.models] == [
        ("a", "x", {"k": 3, "lr": 0.1}),
        ("b", "y", {"k": 3, "lr": 0.1}),
    ]


def test_a_token_may_be_in_a_file(tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef\n")
    file = str(tmp_path / "token")
    assert gather({"token_file": file}, {}, None).token == "0123456789abcdef"
    environment = {"GROTTA_SERVE_TOKEN": "from the environment"}
    assert gather({"token_file": file}, environment, None).token == "0123456789abcdef"
    assert gather({}, environment, written(tmp_path, f'token_file = "{file}"')).token == "from the environment"


@pytest.mark.parametrize(
    ("flags", "environment", "text", "reason"),
    [
        ({"port": 70000}, {}, "", "port must be in"),
        ({"models": ["nopath"]}, {}, "", "NAME=PATH"),
        ({"models": ["a=x", "a=y"]}, {}, "", "a name of its own"),
        ({}, {"GROTTA_SERVE_PORT": "many"}, "", "GROTTA_SERVE_PORT"),
        ({}, {"GROTTA_SERVE_TOKEN": "short"}, "", "at least 16"),
        ({}, {}, "prot = 1", "unknown setting 'prot'"),
        ({}, {}, 'port = "1"', "port must be a int"),
        ({}, {}, "port = ", "not TOML"),
        ({}, {}, "[models.a]\nfile = 1", "expected path"),
        ({"log_format": "xml"}, {}, "", "log_format"),
        ({"shared": True, "port": 0}, {}, "", "advertise must be the URL"),
        ({"shared": True, "host": "0.0.0.0"}, {"GROTTA_SERVE_TOKEN": "0" * 16}, "", "advertise must be the URL"),
        ({"shared": True, "host": "10.0.0.7"}, {}, "", "need a token"),
    ],
)
def test_mistakes_are_named(tmp_path, flags, environment, text, reason):
    with pytest.raises((ValueError, TypeError), match=reason):
        gather(flags, environment, written(tmp_path, text))
