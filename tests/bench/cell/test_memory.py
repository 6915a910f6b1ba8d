import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from grotta.bench import CellSpec, CellTask, Event, run_cell
from grotta.bench.events import Progressed
from grotta.data.corruptions import CORRUPTIONS

LENGTH, DOMAINS = 10_000, 10


def own_memory_mb() -> float:
    """Without the pages of the data files, which belong to the system's cache."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


@pytest.fixture
def hundred_thousand(tmp_path: Path) -> Path:
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    random = np.random.default_rng(0)
    np.save(folder / "labels.npy", np.tile(random.integers(0, 10, LENGTH), 5))
    first = folder / f"{CORRUPTIONS[0]}.npy"
    images = np.lib.format.open_memmap(first, "w+", np.uint8, (5 * LENGTH, 32, 32, 3))
    images[-LENGTH:] = random.integers(0, 256, (LENGTH, 32, 32, 3), np.uint8)  # the other severities stay holes
    images.flush()
    for domain in CORRUPTIONS[1:DOMAINS]:
        os.link(first, folder / f"{domain}.npy")
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's account of memory")
@pytest.mark.parametrize("method", ["tent", "grotta"])
def test_memory_is_flat_over_a_hundred_thousand_images(
    tmp_path: Path, hundred_thousand: Path, make_spec: Callable[..., CellSpec], method: str
) -> None:
    samples: list[float] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Progressed) and event.progress.domain_images == LENGTH:
            samples.append(own_memory_mb())

    spec = make_spec(method, domains=CORRUPTIONS[:DOMAINS], period=100)
    result = run_cell(CellTask(spec, tmp_path / "out", hundred_thousand, checkpoint_seconds=5), on_event)
    assert result.images == LENGTH * DOMAINS
    assert max(samples[2:]) - samples[1] < 4, f"MB at the end of each domain: {samples}"
