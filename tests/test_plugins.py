"""Plug-ins: what other installed packages announce is imported once; one that fails is named."""

import sys

import pytest

from grotta import _plugins


def test_a_group_is_imported_once(site, install):
    install(site, "plugged-in", "[grotta.test]\none = plugged_one\n", {"plugged_one": "import builtins\nloads = [1]\n"})
    _plugins.load_plugins("grotta.other")
    assert "plugged_one" not in sys.modules
    _plugins.load_plugins("grotta.test")
    sys.modules["plugged_one"].loads.clear()
    _plugins.load_plugins("grotta.test")
    assert sys.modules["plugged_one"].loads == []


def test_one_that_fails_is_named_and_the_others_are_there(site, install):
    entries = "[grotta.test]\nbroken = plugged_broken\nwell = plugged_well\n"
    install(site, "plugged-in", entries, {"plugged_broken": "raise OSError('no such device')\n", "plugged_well": ""})
    with pytest.warns(
        UserWarning, match=r"grotta.test plug-in 'broken' \(plugged_broken\) of plugged-in .* OSError: no"
    ):
        _plugins.load_plugins("grotta.test")
    assert "plugged_well" in sys.modules


def test_a_plugin_may_ask_for_plugins_while_it_is_imported(site, install):
    source = "from grotta._plugins import load_plugins\nload_plugins('grotta.test')\n"
    install(site, "plugged-in", "[grotta.test]\neager = plugged_eager\n", {"plugged_eager": source})
    _plugins.load_plugins("grotta.test")
    assert "plugged_eager" in sys.modules
