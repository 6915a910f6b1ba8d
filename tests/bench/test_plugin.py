"""A package of somebody else, installed from its folder: worker processes and cluster nodes know what it brings."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grotta.bench import CellResult, load_results

PACKAGE = Path(__file__).parent / "plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages, with the package in it."""
    source, site = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, source)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--target", site, source], check=True, capture_output=True)
    return site


def rows_of_bench(site: Path, out: Path, *words: str) -> dict[str, CellResult]:
    """The finished cells of a benchmark of the package's method on its corruption, by method."""
    call = [sys.executable, "-m", "grotta", "bench", "--methods", "bn,sharp_bn", "--domains", "posterise"]
    call += ["--gammas", "1e-1", "--images", "200", "--out", str(out), *words]
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    environment = os.environ | {"PYTHONPATH": path, "GROTTA_CACHE": str(out / "cache"), "COLUMNS": "120"}
    done = subprocess.run(call, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Sharp BN" in done.stdout
    return {result.spec.method: result for result in load_results(out)}


def test_its_row_is_in_the_table_of_two_workers(site: Path, tmp_path: Path) -> None:
    rows = rows_of_bench(site, tmp_path, "--workers", "2")
    assert rows.keys() == {"bn", "sharp_bn"}
    assert rows["sharp_bn"].stream_hash == rows["bn"].stream_hash
    # sharpening does not change which class is the most likely
    assert rows["sharp_bn"].error == rows["bn"].error


@pytest.mark.distributed
def test_its_row_is_in_the_table_of_a_cluster(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs grotta[ray]")
    assert rows_of_bench(site, tmp_path, "--executor", "ray", "--workers", "2").keys() == {"bn", "sharp_bn"}
