"""Draw docs/images/example.svg: the example of the README, image by image.

python scripts/example_picture.py
"""

import tempfile
from pathlib import Path

from grotta import _files
from grotta.bench import CellResult, CellSpec, run_grid
from grotta.report.figure import Figure
from grotta.report.render.svg import figure_svg
from grotta.report.sections.figures import accuracy_panel

TARGET = Path(__file__).parents[1] / "docs" / "images" / "example.svg"


def draw(results: list[CellResult]) -> Figure:
    """The accuracy of each method on all images so far."""
    named = {f"{result.spec.method} (error {result.error:.1f} %)": result for result in results}
    title = "Clothes under low contrast, a few kinds at a time"
    return Figure("example", "The example of the README", "", (accuracy_panel(named, title),), tuple(results))


def main() -> None:
    """Run the cells and draw them."""
    specs = [
        CellSpec(method=method, dataset="fashion-c", domains=("contrast",), gamma=0.01, model="fashion_resnet8")
        for method in ("source", "grotta", "grotta+")
    ]
    with tempfile.TemporaryDirectory() as out:
        outcomes = run_grid(specs, out, executor="inline")
        results = [outcome for outcome in outcomes if isinstance(outcome, CellResult)]
        if len(results) < len(specs):
            raise RuntimeError(f"a cell failed: {[outcome for outcome in outcomes if outcome not in results]}")
        _files.write(TARGET, figure_svg(draw(results)).encode())
    print({result.spec.method: f"{result.error:.1f} %" for result in results})


if __name__ == "__main__":
    main()
