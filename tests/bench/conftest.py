"""A small data set in the published layout of CIFAR-10-C, so that every process finds it by its data root."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from grotta.bench import CellSpec

collect_ignore = ["plugin"]  # a package that a test installs
DOMAINS = ("fog", "snow")
LENGTH = 140


@pytest.fixture(scope="session")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_published(root, DOMAINS, LENGTH)
    return root


@pytest.fixture(scope="session")
def make_spec() -> Callable[..., CellSpec]:
    def make(method: str = "tent", **changes: object) -> CellSpec:
        values = {"dataset": "cifar10-c", "domains": DOMAINS, "gamma": 0.1, "model": "fashion_resnet8", "period": 50}
        return CellSpec(method=method, **{**values, **changes})  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[str, bytes]]:
    """The files of finished cells that may not depend on how, when or where they ran."""

    def read(out: Path) -> dict[str, bytes]:
        paths = [path for name in ("result.json", "records.npz") for path in out.glob(f"cells/*/{name}")]
        return {str(path.relative_to(out)): path.read_bytes() for path in paths}

    return read


def write_published(root: Path, domains: tuple[str, ...], length: int) -> None:
    folder = root / "CIFAR-10-C"
    folder.mkdir()
    random = np.random.default_rng(0)
    labels = random.integers(0, 10, length)
    np.save(folder / "labels.npy", np.tile(labels, 5))
    patterns = random.integers(0, 256, (10, 32, 32, 3))
    for domain in domains:
        noise = random.normal(0, 60, (length, 32, 32, 3))
        images = np.clip(patterns[labels] + noise, 0, 255).astype(np.uint8)
        np.save(folder / f"{domain}.npy", np.concatenate([images] * 5))
