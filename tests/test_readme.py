"""The README is true: its Python runs as printed and prints what it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_every_example_is_python() -> None:
    for example in examples():
        compile(example, "README.md", "exec")


@pytest.mark.slow
def test_the_whole_example_prints_what_it_says() -> None:
    example = next(e for e in examples() if e.startswith("import grotta"))
    said = re.search(r"It prints `(.*?)`", README)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example, {})
    assert said is not None
    assert printed.getvalue().strip().endswith(said.group(1))
