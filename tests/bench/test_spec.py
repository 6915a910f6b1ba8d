import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.bench import CellSpec

FOG = {"method": "grotta", "dataset": "fashion-c", "domains": ("fog", "snow"), "gamma": 0.1}
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def test_the_id_never_changes_between_versions() -> None:
    # Finished cells of users are found by it.
    assert CellSpec(**FOG).id == "d7818be7ddc8e928"


def test_the_label_and_the_order_of_options_do_not_count() -> None:
    a = CellSpec(**FOG, options={"k": 5, "alpha": 0.1}, label="ours")
    b = CellSpec(**FOG, options=(("alpha", 0.1), ("k", 5)))
    assert a == b
    assert a.id == b.id
    assert (a.label, b.label) == ("ours", "grotta alpha=0.1 k=5")


@pytest.mark.parametrize(
    "change",
    [
        {"method": "tent"},
        {"dataset": "cifar10-c"},
        {"domains": ("snow", "fog")},
        {"gamma": 0.2},
        {"model": "resnet20"},
        {"options": {"k": 1}},
        {"preset": "official"},
        {"period": 50},
        {"stream": "iid"},
        {"stream_seed": 1},
        {"seed": 1},
        {"batch_size": 32},
        {"image_size": 64},
        {"images": 100},
    ],
)
def test_everything_else_counts(change: dict[str, object]) -> None:
    spec = CellSpec(**FOG)
    other = dataclasses.replace(spec, **change)  # type: ignore[arg-type]
    assert other != spec
    assert other.id != spec.id


@settings(max_examples=50, deadline=None)
@given(options=st.dictionaries(st.text(), VALUES | st.lists(VALUES), max_size=4), gamma=st.floats(1e-6, 1e6))
def test_a_spec_survives_json(options: dict[str, object], gamma: float) -> None:
    spec = CellSpec(**{**FOG, "gamma": gamma}, options=options)  # type: ignore[arg-type]
    again = CellSpec.from_json(spec.to_json())
    assert again == spec
    assert again.to_json() == spec.to_json()
    assert again.label == spec.label
    assert hash(again) == hash(spec)


@pytest.mark.parametrize("gamma", [0, -0.1, float("nan"), float("inf"), True, "0.1"])
def test_a_gamma_that_is_not_positive_is_refused(gamma: object) -> None:
    with pytest.raises((TypeError, ValueError), match="gamma must be"):
        CellSpec(**{**FOG, "gamma": gamma})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domains": ()}, "domains must name at least one"),
        ({"period": 0}, "period must be at least 1, got 0"),
        ({"batch_size": 1.5}, "batch_size must be a whole number"),
        ({"images": -1}, "images must be at least 0"),
        ({"seed": -1}, "seed must be in"),
        ({"options": {"lr": float("nan")}}, "option lr must be a finite number"),
        ({"options": {"model": object()}}, "option model"),
    ],
)
def test_bad_fields_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        CellSpec(**{**FOG, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["[]", "{", json.dumps({**FOG, "colour": "red"})])
def test_json_that_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        CellSpec.from_json(text)
