"""A small data set in the published layout of CIFAR-10-C, and calls of the command line on it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from grotta.cli import main

LENGTH = 70


@pytest.fixture(scope="session")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    folder = root / "CIFAR-10-C"
    folder.mkdir()
    random = np.random.default_rng(0)
    np.save(folder / "labels.npy", random.integers(0, 10, 5 * LENGTH))
    for domain in ("fog", "snow"):
        np.save(folder / f"{domain}.npy", random.integers(0, 256, (5 * LENGTH, 32, 32, 3), np.uint8))
    return root


@pytest.fixture
def command_line() -> Callable[..., int]:
    """Call ``grotta COMMAND`` with words and options; gives the exit code."""

    def call(command: str, *words: str, **options: str) -> int:
        with pytest.raises(SystemExit) as stop:
            main([command, *words, *(word for key, value in options.items() for word in (f"--{key}", value))])
        assert isinstance(stop.value.code, int)
        return stop.value.code

    return call
