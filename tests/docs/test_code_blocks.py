"""The Python of README and guides runs as printed; that of every other page is at least Python."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import grotta
from grotta.methods import registry

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are not installed

from benchmarks.serve.harness import serving

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNING = [
    *(f"docs/{page}.md" for page in ("getting-started", "which-method", "outputs")),
    *("docs/guides/engineer.md", "docs/guides/researcher.md"),
]
SERVED = ["docs/guides/operator.md", "docs/serve.md"]


def blocks(page: Path) -> list[str]:
    """The page's Python blocks, each with its line numbers."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return ["\n" * text[: block.start(1)].count("\n") + block[1] for block in found]


def run(page: Path, namespace: dict[str, Any], skip: str = "never") -> None:
    """Run the page's blocks one after the other, as a reader would who pastes them."""
    for block in blocks(page):
        if not block.lstrip().startswith(skip):
            exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_is_python(page: Path) -> None:
    for block in blocks(page):
        compile(block, str(page), "exec")


@pytest.mark.parametrize("page", RUNNING)
def test_a_page_runs_from_top_to_bottom(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))  # what a page registers stays on the page
    known = grotta.list_methods()
    assert blocks(ROOT / page)
    run(ROOT / page, {"__name__": "page"})
    for name in set(grotta.list_methods()) - set(known):
        grotta.checks.check_method(name)


def test_the_readme_runs_given_a_model_and_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = grotta.models.create_model("fashion_resnet8", weights="bundled")
    images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
    state = grotta.create("grotta+", model).state_dict()
    # the whole example, which begins with an import, takes a minute: tests/test_readme.py
    run(ROOT / "README.md", {"grotta": grotta, "model": model, "images": images, "state": state}, skip="import grotta")


def test_what_clients_are_told_works_with_a_server(tmp_path: Path) -> None:
    with serving(tmp_path / "state", model="clothes=fashion_resnet8") as server:
        for page in SERVED:
            for block in blocks(ROOT / page):
                exec(
                    compile(block.replace("127.0.0.1:8000", server.url.removeprefix("http://")), page, "exec"),
                    {"__name__": "page"},
                )
