from pathlib import Path

import pytest
from safetensors.torch import save_file

from grotta import models
from grotta.bench.grid import TEN_METHODS, make_grid
from grotta.data.corruptions import CORRUPTIONS
from grotta.methods import list_methods


def test_the_default_is_the_papers_ten_methods_at_two_gammas_on_a_few_whole_corruptions() -> None:
    grid = make_grid()
    assert [(spec.gamma, spec.method) for spec in grid] == [(g, m) for g in (1e-1, 1e-4) for m in TEN_METHODS]
    assert set(TEN_METHODS) <= set(list_methods())
    assert {spec.domains for spec in grid} == {CORRUPTIONS[: len(grid[0].domains)]}
    assert {(spec.dataset, spec.model) for spec in grid} == {("fashion-c", "fashion_resnet8")}
    assert 2 <= len(grid[0].domains) < 15


def test_full_is_every_corruption_at_four_gammas() -> None:
    grid = make_grid(full=True, methods=["source"])
    assert [spec.gamma for spec in grid] == [1e-1, 1e-2, 1e-3, 1e-4]
    assert {spec.domains for spec in grid} == {CORRUPTIONS}


def test_a_seed_is_that_of_the_stream_and_of_the_method() -> None:
    grid = make_grid(methods=["source"], gammas=[1.0], seeds=3)
    assert [(spec.stream_seed, spec.seed) for spec in grid] == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("full", [False, True])
def test_an_iid_stream_has_one_gamma(full: bool) -> None:
    grid = make_grid(methods=["source", "bn"], stream="iid", full=full)
    assert len(grid) == 2
    assert len({spec.gamma for spec in grid}) == 1
    assert make_grid(methods=["source"], stream="iid", gammas=[0.01])[0].gamma == 0.01


def test_domains_keep_the_order_that_they_are_given_in(data_root: Path) -> None:
    grid = make_grid("cifar10-c", domains=["snow", "fog"], data_root=data_root)
    assert grid[0].domains == ("snow", "fog")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"methods": ["tent", "magic"]}, "unknown method 'magic'"),
        ({"methods": []}, "methods: expected different values, at least one"),
        ({"methods": ["tent", "tent"]}, "methods: expected different values"),
        ({"gammas": [0.1, 0.0]}, "gamma: expected a positive number, got 0.0"),
        ({"gammas": [-1.0]}, "gamma: expected a positive number, got -1.0"),
        ({"dataset": "magic"}, "dataset must be folder:PATH or one of"),
        ({"domains": ["magic"]}, "domains must be different ones of"),
        ({"stream": "iid", "gammas": [0.1, 0.01]}, r"gammas: they mean nothing to an iid stream.* got \[0.1, 0.01\]"),
        ({"seeds": 0}, "seeds: expected at least 1, got 0"),
        ({"period": 0}, "period: expected"),
        ({"preset": "magic", "methods": ["tent"]}, "preset: method 'tent' has no 'magic'"),
        ({"preset": "magic"}, "preset: method 'source' has no 'magic', but paper, official; none has it"),
        ({"preset": "fast", "methods": ["grotta", "bn"]}, "method 'bn' has no 'fast', .*; grotta alone has it"),
        ({"model": "magic"}, "model: no network 'magic'; there are: .*wrn28_10"),
        ({"model": "magic@file.pt"}, "model: no network 'magic'"),
        ({"model": "wrn28_10"}, "model: no weights come with wrn28_10; give a file of them as wrn28_10@WEIGHTS"),
        ({"model": "wrn28_10@nowhere/file.pt"}, "model: no file of weights at nowhere/file.pt"),
    ],
)
def test_what_is_wrong_is_named_before_anything_runs(choice: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_grid(**choice)  # type: ignore[arg-type]


def write_pictures(root: Path, classes: int) -> None:
    from PIL import Image

    for number in range(classes):
        picture = root / "night" / f"class{number:02}" / "1.png"
        picture.parent.mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(picture)


def test_a_data_set_without_a_network_asks_for_one(tmp_path: Path) -> None:
    write_pictures(tmp_path, classes=1)
    with pytest.raises(ValueError, match="model: no network comes with .* give one as NAME@WEIGHTS"):
        make_grid(f"folder:{tmp_path}")


def test_a_network_for_other_classes_is_refused_with_what_to_do(tmp_path: Path) -> None:
    write_pictures(tmp_path, classes=11)
    weights = tmp_path / "net.safetensors"
    save_file(models.create_model("fashion_resnet8", num_classes=3).state_dict(), weights)
    for network, classes in (("fashion_resnet8", 10), (f"fashion_resnet8@{weights}", 3)):
        with pytest.raises(ValueError, match="has 11 classes, but the network") as caught:
            make_grid(f"folder:{tmp_path}", model=network)
        assert f"{network} was trained for {classes};" in str(caught.value)
        assert "`grotta train`" in str(caught.value)
        assert "num_classes" not in str(caught.value)
    save_file(models.create_model("fashion_resnet8", num_classes=11).state_dict(), weights)
    assert make_grid(f"folder:{tmp_path}", model=f"fashion_resnet8@{weights}")
