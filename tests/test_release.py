"""What is handed out: the notebook, the source distribution and the wheel."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import grotta

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "tour.ipynb"


def notebook_code():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_the_citation_names_the_version_of_the_package():
    assert re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == grotta.__version__


def test_the_notebook_is_stored_without_outputs():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in cells)
    for cell in notebook_code():
        compile(cell, "tour.ipynb", "exec")


@pytest.mark.slow
def test_the_notebook_runs_top_to_bottom_and_draws(tmp_path):
    pytest.importorskip("matplotlib")
    last = """
import matplotlib.pyplot as plt
for number in plt.get_fignums():
    plt.figure(number).savefig(f"figure-{number}.png")
assert same and errors["grotta"] < errors["bn"] < errors["source"]
"""
    script = tmp_path / "tour.py"
    script.write_text("\n\n".join([*notebook_code(), last]), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=os.environ | {"MPLBACKEND": "Agg"}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert len(list(tmp_path.glob("figure-*.png"))) == 3


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The source distribution and the wheel, made from a copy of the sources."""
    pytest.importorskip("build")
    out, copy = (tmp_path_factory.mktemp(name) for name in ("dist", "copy"))
    left_out = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "runs")
    shutil.copytree(ROOT, copy, ignore=left_out, dirs_exist_ok=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


def test_the_source_distribution_has_tests_docs_and_what_they_need(distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    needed = {"Makefile", "constraints.txt", "CITATION.cff", "tests/test_cli.py", "docs/tour.ipynb", ".ci/run"}
    assert needed | {name for name in tracked if name != ".gitignore" and (ROOT / name).exists()} <= names


def test_the_wheel_has_the_package_and_its_assets_alone(distributions):
    with zipfile.ZipFile(distributions[1]) as wheel:
        names = wheel.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"grotta"}
    source = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("grotta/**/*") if path.is_file()
    }
    assert {name for name in source if "__pycache__" not in name} <= set(names)


@pytest.mark.slow
def test_the_wheel_in_a_new_environment_runs_the_example_of_the_readme(distributions, tmp_path):
    """torch and numpy are those of this environment: they are gigabytes, and not what is tested."""
    venv.create(tmp_path / "env", with_pip=True, system_site_packages=False)
    python = tmp_path / "env" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", distributions[1]]
    subprocess.run(install, check=True, env=environment, cwd=tmp_path)
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    here = Path(next(path for path in sys.path if path.endswith("site-packages")))
    (site / "shared.pth").write_text(f"{here}\n")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = readme.partition("A whole example")[2].partition("```python\n")[2].partition("```")[0]
    printed = re.search(r"It prints `(\{.+\})`", readme)[1]
    script = tmp_path / "example.py"
    script.write_text(f"{example}\nprint(grotta.__file__)\n", encoding="utf-8")
    run = subprocess.run([python, script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == printed
    assert lines[1].startswith(str(site))


@pytest.mark.slow
def test_the_source_distribution_passes_its_own_tests(distributions, tmp_path):
    with tarfile.open(distributions[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    [root] = tmp_path.iterdir()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-5000:]
