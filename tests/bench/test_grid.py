from pathlib import Path

import pytest
from PIL import Image
from safetensors.torch import save_file

from grotta import models
from grotta.bench.grid import make_grid
from grotta.data.corruptions import CORRUPTIONS
from grotta.methods import list_methods
from grotta.methods.registry import PAPER_METHODS


def test_the_default_is_the_papers_ten_methods_at_two_gammas_on_a_few_whole_corruptions() -> None:
    grid = make_grid()
    assert [(spec.gamma, spec.method) for spec in grid] == [(g, m) for g in (1e-1, 1e-4) for m in PAPER_METHODS]
    assert set(PAPER_METHODS) <= set(list_methods())
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
        ({"methods": []}, "methods must be one or more different values, got"),
        ({"methods": ["tent", "tent"]}, "methods must be one or more different values"),
        ({"gammas": [0.1, 0.0]}, "gamma must be positive, got 0.0"),
        ({"gammas": [-1.0]}, "gamma must be positive, got -1.0"),
        ({"dataset": "magic"}, "dataset must be folder:PATH"),
        ({"domains": ["magic"]}, "domains"),
        ({"stream": "iid", "gammas": [0.1, 0.01]}, r"gammas must be at most one for an iid stream.* got \[0.1, 0.01\]"),
        ({"seeds": 0}, r"seeds must be in \[1, 10001\), got 0"),
        ({"seeds": 1_000_000_000}, r"seeds must be in \[1, 10001\), got 1000000000"),
        ({"period": 0}, "period must be at least 1, got 0"),
        ({"preset": "magic", "methods": ["tent"]}, "preset must be one of paper, .* for method 'tent', got 'magic'"),
        (
            {"preset": "magic"},
            r"of paper, official for method 'source', got 'magic' \(no method has it\)",
        ),
        ({"preset": "fast", "methods": ["grotta", "bn"]}, r"for method 'bn', got 'fast' \(only grotta"),
        ({"model": "magic"}, "model must be one of .*wrn28_10.*, got 'magic'"),
        ({"model": "magic@file.pt"}, "model must be one of .*, got 'magic'"),
        ({"model": "wrn28_10"}, "model must be wrn28_10@WEIGHTS, got 'wrn28_10'"),
        ({"model": "wrn28_10@nowhere/file.pt"}, "model must name an existing file of weights, got nowhere/file.pt"),
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
    with pytest.raises(ValueError, match="model must be given, .* comes with no network: NAME@WEIGHTS"):
        make_grid(f"folder:{tmp_path}")


def test_a_network_for_other_classes_is_refused_with_what_to_do(tmp_path: Path) -> None:
    write_pictures(tmp_path, classes=11)
    weights = tmp_path / "net.safetensors"
    save_file(models.create_model("fashion_resnet8", num_classes=3).state_dict(), weights)
    for network, classes in (("fashion_resnet8", 10), (f"fashion_resnet8@{weights}", 3)):
        with pytest.raises(ValueError, match="model must have the 11 classes of") as caught:
            make_grid(f"folder:{tmp_path}", model=network)
        assert f"got {network}, which was trained for {classes};" in str(caught.value)
        assert "`grotta train`" in str(caught.value)
        assert "num_classes" not in str(caught.value)
    save_file(models.create_model("fashion_resnet8", num_classes=11).state_dict(), weights)
    assert make_grid(f"folder:{tmp_path}", model=f"fashion_resnet8@{weights}")


def test_a_bundled_network_is_refused_on_its_classes_in_another_order(tmp_path: Path) -> None:
    for name in ("Bag", "Coat", "Dress", "Pullover", "Sandal", "Shirt", "Sneaker", "T-shirt", "Trouser", "boot"):
        (tmp_path / "day" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "day" / name / "0.png")
    with pytest.raises(ValueError, match=r"Bag, Coat, .* in this order; got fashion_resnet8, which .* T-shirt/top, Tr"):
        make_grid(f"folder:{tmp_path}", model="fashion_resnet8", methods=["source"])
