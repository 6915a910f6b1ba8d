"""Every method has a page, and what is generated on it is what the class says."""

import sys
from pathlib import Path

import pytest

import grotta
from grotta.methods import GRoTTA, PeTTA, RDumb, method_class

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

import method_facts

DOCS = Path(__file__).parents[2] / "docs"
METHODS = [name for name in grotta.list_methods() if method_class(name).__module__.startswith("grotta.")]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_a_page_with_every_part(name: str) -> None:
    page = (DOCS / "methods" / f"{name.replace('+', '-plus')}.md").read_text()
    headings = ["## Equations", "## A step", "## Settings and cost", "## When to use it", "## When not"]
    assert [line for line in page.splitlines() if line in headings] == headings
    assert page.startswith(f"# {method_class(name).title}\n")
    assert f"{{method-step}} {name}\n" in page
    assert f"{{method-facts}} {name}\n" in page


@pytest.mark.parametrize("name", METHODS)
def test_every_option_has_a_meaning(name: str) -> None:
    for line in method_facts.options(method_class(name)).splitlines()[2:]:
        assert len(line.split(" | ")[2].strip(" |")) > 5, line


def test_defaults_are_those_of_the_signature() -> None:
    options = method_facts.options(GRoTTA)
    assert "| `capacity` | `1024` | images in the bank, N; every class has room for ceil(N / classes). |" in options
    assert "| `k` | `5` | of the output adaptation, see `grotta.functional.bias_guided_refine`. |" in options


def test_options_of_a_base_class_are_there_and_can_be_hidden() -> None:
    assert "`capacity`" in method_facts.options(PeTTA)
    assert "`margin`" in method_facts.options(RDumb)
    assert "`beta`" not in method_facts.options(RDumb, hidden=["beta"])


def test_presets_name_what_they_set() -> None:
    assert "| `fast` | `lambda_batch=0.0`, `bank_batch=16` |" in method_facts.presets(GRoTTA)


def test_the_step_ends_where_options_begin() -> None:
    step = method_facts.step(GRoTTA)
    assert "4. T's affine parameters follow" in step
    assert "Args:" not in step
    assert ">>>" not in step
