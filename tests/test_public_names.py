"""The public names, frozen: other people's code imports them."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = json.loads((Path(__file__).parent / "public_names.json").read_text())


@pytest.mark.parametrize("module", NAMES)
def test_public_names_are_as_frozen(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == NAMES[module]


def test_import_is_light() -> None:
    code = "import sys, grotta; print([m for m in ('PIL', 'rich', 'typer', 'matplotlib', 'ray') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_typed() -> None:
    import grotta

    assert (Path(grotta.__file__).parent / "py.typed").is_file()
