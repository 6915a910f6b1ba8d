"""ImageNet-C as published, ImageNet's validation pictures in two layouts, and corruptions made from them."""

import json
import pickle
import re

import numpy as np
import pytest
import torch

import grotta.data
from grotta.data import CORRUPTIONS, DamagedDataError, DataNotFoundError, corrupt
from grotta.data.decode import open_picture, resize_and_crop

WNIDS = [f"n{number:08d}" for number in range(1000, 2000)]


@pytest.fixture
def write_classes(make_picture):
    """A folder of all 1000 class folders, with a picture in a few of them."""

    def write(folder, classes=(0, 7, 999), size=(20, 16), suffix=".JPEG"):
        for wnid in WNIDS:
            (folder / wnid).mkdir(parents=True)
        for label in classes:
            make_picture(folder / WNIDS[label] / f"ILSVRC2012_val_{label:08d}{suffix}", label, size)

    return write


@pytest.fixture
def write_flat(make_picture):
    """Pictures beside each other with a labels.json."""

    def write(folder, labels=(3, 5, 3), size=(24, 16)):
        for number, _ in enumerate(labels):
            make_picture(folder / f"{number:04d}.png", number, size)
        entries = {f"{number:04d}.png": label for number, label in enumerate(labels)}
        (folder / "labels.json").write_text(json.dumps(entries))

    return write


def test_imagenet_c_in_its_published_layout(tmp_path, write_classes):
    for name in ("fog", "snow"):
        write_classes(tmp_path / "ImageNet-C" / name / "5", size=(16, 16))
    data = grotta.data.load("imagenet-c", root=tmp_path, domains=["snow", "fog"], image_size=16)
    assert (data.provenance, data.domains) == ("published", ("snow", "fog"))
    assert data.class_names == tuple(WNIDS)
    assert data.labels("fog").tolist() == [0, 7, 999]
    path = tmp_path / "ImageNet-C" / "fog" / "5" / WNIDS[7] / "ILSVRC2012_val_00000007.JPEG"
    assert np.array_equal(data.images("fog", [1])[0].permute(1, 2, 0).numpy(), np.asarray(open_picture(path)))


def test_a_missing_corruption_is_named(tmp_path, write_classes):
    write_classes(tmp_path / "ImageNet-C" / "fog" / "5", classes=())
    with pytest.raises(DataNotFoundError, match="has no motion_blur/5; it has fog"):
        grotta.data.load("imagenet-c", root=tmp_path)


def test_a_subset_of_the_classes_is_refused_since_labels_would_be_wrong(tmp_path, make_picture):
    make_picture(tmp_path / "ImageNet-C" / "fog" / "5" / "n01440764" / "a.JPEG")
    with pytest.raises(DamagedDataError, match="has 1 class folders; .* among all 1000"):
        grotta.data.load("imagenet-c", root=tmp_path, domains=["fog"])


def test_published_pictures_of_other_severities_are_named_not_replaced_by_regenerated_ones(
    tmp_path, write_classes, write_flat
):
    write_classes(tmp_path / "ImageNet-C" / "fog" / "3", classes=())
    (tmp_path / "ImageNet-C" / "snow" / "1").mkdir(parents=True)
    write_flat(tmp_path / "imagenet-val-1k")
    with pytest.raises(DataNotFoundError, match=r"ImageNet-C has no severity 5; it has 1, 3$"):
        grotta.data.load("imagenet-c", root=tmp_path, severity=5)


@pytest.mark.parametrize(
    ("paths", "named"),
    [
        (["fog/n01440764", "snow/n01440764"], "found fog/n01440764, snow/n01440764"),
        (["fog"], "found fog"),
        (["blur/defocus_blur/5", "noise/shot_noise/5"], "found blur/defocus_blur, noise/shot_noise"),
        (["a", "b", "c", "d", "e", "f"], "found a, b, c, d, e"),
    ],
)
@pytest.mark.parametrize("place", ["ImageNet-C", "imagenet-c"])
def test_another_layout_is_named_not_replaced_by_regenerated_pictures(tmp_path, write_flat, place, paths, named):
    for path in paths:
        (tmp_path / place / path).mkdir(parents=True)
    write_flat(tmp_path / "imagenet-val-1k")
    expected = f"{tmp_path / place} has no fog/5: expected <corruption>/<severity>/<class>/*.JPEG, {named}"
    with pytest.raises(DataNotFoundError, match=f"^{re.escape(expected)}$"):
        grotta.data.load("imagenet-c", root=tmp_path, domains=["fog"])


def test_the_folder_itself_as_the_root_is_named_as_well(tmp_path, monkeypatch, write_flat):
    (tmp_path / "ImageNet-C" / "fog" / "n01440764").mkdir(parents=True)
    write_flat(tmp_path / "b" / "imagenet-val-1k")
    monkeypatch.setenv("GROTTA_DATA", str(tmp_path / "b"))
    with pytest.raises(DataNotFoundError, match=r"ImageNet-C has no fog/5: .* found fog/n01440764$"):
        grotta.data.load("imagenet-c", root=tmp_path / "ImageNet-C", domains=["fog"])


def test_some_of_the_corruptions_are_named_not_made_up_for_by_regenerated_ones(tmp_path, write_classes, write_flat):
    write_classes(tmp_path / "ImageNet-C" / "fog" / "5")
    (tmp_path / "ImageNet-C" / "snow" / "3").mkdir(parents=True)
    write_flat(tmp_path / "imagenet-val-1k")
    with pytest.raises(DataNotFoundError, match=r"ImageNet-C has no snow/5; it has fog/5$"):
        grotta.data.load("imagenet-c", root=tmp_path, domains=["fog", "snow"])
    assert grotta.data.load("imagenet-c", root=tmp_path, domains=["fog"]).provenance == "published"


def test_an_empty_folder_and_a_root_of_that_name_with_other_data_do_not_count(tmp_path, write_flat):
    root = tmp_path / "imagenet-c"
    (root / "ImageNet-C").mkdir(parents=True)
    (root / "ImageNet-C" / ".blur.tar.unpacking").touch()
    write_flat(root / "imagenet-val-1k")
    assert grotta.data.load("imagenet-c", root=root, image_size=16).provenance == "regenerated"


def test_the_first_copy_with_all_that_is_wanted_is_taken(tmp_path, monkeypatch, write_classes):
    write_classes(tmp_path / "a" / "ImageNet-C" / "fog" / "5", classes=(1,))
    for name in ("fog", "snow"):
        write_classes(tmp_path / "b" / "ImageNet-C" / name / "5", classes=(2,))
    monkeypatch.setenv("GROTTA_DATA", str(tmp_path / "b"))
    for domains, label in ((["fog"], 1), (["fog", "snow"], 2)):
        data = grotta.data.load("imagenet-c", root=tmp_path / "a", domains=domains)
        assert data.labels("fog").tolist() == [label]


@pytest.mark.parametrize("place", ["imagenet/val", "val", "ILSVRC2012/val"])
def test_clean_pictures_in_class_folders(tmp_path, write_classes, place):
    write_classes(tmp_path / place)
    data = grotta.data.load("imagenet", root=tmp_path, image_size=14)
    assert (data.domains, data.num_classes, data.provenance) == (("val",), 1000, "original")
    assert data.labels("val").tolist() == [0, 7, 999]
    assert data.images("val", [2]).shape == (1, 3, 14, 14)


def test_clean_pictures_beside_a_list_of_labels(tmp_path, write_flat):
    write_flat(tmp_path / "imagenet-val-1k")
    data = grotta.data.load("imagenet", root=tmp_path, image_size=14)
    assert data.labels("val").tolist() == [3, 5, 3]
    assert data.class_names[:2] == ("0", "1")


def test_without_the_published_pictures_the_clean_ones_are_corrupted(tmp_path, write_flat):
    write_flat(tmp_path / "imagenet-val-1k")
    data = grotta.data.load("imagenet-c", root=tmp_path, image_size=28, severity=3, seed=2)
    assert (data.provenance, data.domains, data.image_shape) == ("regenerated", CORRUPTIONS, (3, 28, 28))
    files = sorted((tmp_path / "imagenet-val-1k").glob("*.png"))
    clean = np.stack([np.asarray(resize_and_crop(open_picture(path), 32, 28)) for path in files])
    for name in ("gaussian_noise", "contrast"):
        expected = corrupt(clean, name, 3, scale="imagenet", seed=2).transpose(0, 3, 1, 2)
        assert np.array_equal(data.images(name, range(3)).numpy(), expected)
    assert data.labels("fog").tolist() == [3, 5, 3]
    assert len(pickle.dumps(data)) < 50_000
    assert torch.equal(pickle.loads(pickle.dumps(data)).images("contrast", [1]), data.images("contrast", [1]))


def test_a_replaced_picture_is_not_answered_from_the_cache(tmp_path, write_flat, make_picture):
    write_flat(tmp_path / "imagenet-val-1k")
    before = grotta.data.load("imagenet-c", root=tmp_path, image_size=14).images("contrast", [0])
    make_picture(tmp_path / "imagenet-val-1k" / "0000.png", 55, (30, 30))
    after = grotta.data.load("imagenet-c", root=tmp_path, image_size=14).images("contrast", [0])
    assert not torch.equal(before, after)


@pytest.mark.parametrize("content", ["[1, 2", "[1, 2]", '{"0000.png": "x"}', '{"0000.png": 1000}', "{}"])
def test_a_damaged_list_of_labels_is_a_clear_error(tmp_path, write_flat, content):
    write_flat(tmp_path / "imagenet-val-1k")
    (tmp_path / "imagenet-val-1k" / "labels.json").write_text(content)
    with pytest.raises(DamagedDataError, match=r"labels\.json"):
        grotta.data.load("imagenet-c", root=tmp_path)


def test_a_missing_imagenet_says_what_was_looked_for(tmp_path):
    with pytest.raises(DataNotFoundError) as caught:
        grotta.data.load("imagenet-c", root=tmp_path)
    for part in (str(tmp_path), "imagenet/val", "grotta data get imagenet"):
        assert part in str(caught.value)
