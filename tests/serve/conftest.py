"""A real server for each file of tests."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are not installed

from benchmarks.serve.harness import LIGHT, Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    """One server for all tests of a file; its flags are the file's ``FLAGS``."""
    flags: Sequence[str] = getattr(request.module, "FLAGS", LIGHT)
    with serving(tmp_path_factory.mktemp("serve") / "state", *flags) as running:
        yield running
