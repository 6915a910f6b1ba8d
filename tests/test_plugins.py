"""Plug-ins: what other installed packages announce is imported once; one that fails is named."""

import sys
from pathlib import Path

import pytest

from grotta import _plugins


def install(folder: Path, package: str, entry_points: str, modules: dict[str, str]) -> None:
    """What an installer leaves of a package: its modules, and a dist-info with the entry points."""
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages, and a process that has not asked for plug-ins yet."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_plugins, "_loaded", set())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("plugged"):
            del sys.modules[name]


def test_a_group_is_imported_once(site):
    install(site, "plugged-in", "[grotta.test]\none = plugged_one\n", {"plugged_one": "import builtins\nloads = [1]\n"})
    _plugins.load_plugins("grotta.other")
    assert "plugged_one" not in sys.modules
    _plugins.load_plugins("grotta.test")
    sys.modules["plugged_one"].loads.clear()
    _plugins.load_plugins("grotta.test")
    assert sys.modules["plugged_one"].loads == []


def test_one_that_fails_is_named_and_the_others_are_there(site):
    entries = "[grotta.test]\nbroken = plugged_broken\nwell = plugged_well\n"
    install(site, "plugged-in", entries, {"plugged_broken": "raise OSError('no such device')\n", "plugged_well": ""})
    with pytest.warns(
        UserWarning, match=r"grotta.test plug-in 'broken' \(plugged_broken\) of plugged-in .* OSError: no"
    ):
        _plugins.load_plugins("grotta.test")
    assert "plugged_well" in sys.modules


def test_a_plugin_may_ask_for_plugins_while_it_is_imported(site):
    source = "from grotta._plugins import load_plugins\nload_plugins('grotta.test')\n"
    install(site, "plugged-in", "[grotta.test]\neager = plugged_eager\n", {"plugged_eager": source})
    _plugins.load_plugins("grotta.test")
    assert "plugged_eager" in sys.modules
