"""Domains by name: severities, classes, domains that come back, the clean pictures and garbage."""

import pickle

import numpy as np
import pytest
import torch

from grotta.data import corrupt, load, load_clean
from grotta.data.variants import Variant, has_variants

ROWS = range(40)


def test_a_severity_is_that_of_the_corruption():
    data = load("fashion-c", domains=["pixelate@1", "pixelate", "pixelate@3"])
    clean = load_clean("fashion")[0].permute(0, 2, 3, 1).numpy()[:40]
    for domain, severity in (("pixelate@1", 1), ("pixelate", 5), ("pixelate@3", 3)):
        made = torch.from_numpy(corrupt(clean, "pixelate", severity)).permute(0, 3, 1, 2)
        assert torch.equal(data.images(domain, ROWS), made)
    assert len({data.identity(domain) for domain in data.domains}) == 3


def test_a_domain_that_comes_back_shows_the_same_pictures():
    data = load("fashion-c", domains=["pixelate", "clean", "pixelate#2"])
    plain = load("fashion-c", domains=["pixelate"])
    assert torch.equal(data.images("pixelate#2", ROWS), plain.images("pixelate", ROWS))
    assert data.identity("pixelate#2") == data.identity("pixelate") == plain.identity("pixelate")
    assert data.domains == ("pixelate", "clean", "pixelate#2")


def test_some_classes_are_the_pictures_with_these_labels():
    data, whole = load("fashion-c", domains=["clean:Bag+Coat"]), load("fashion-c", domains=["clean"])
    wanted = [whole.class_names.index(name) for name in ("Bag", "Coat")]
    rows = np.flatnonzero(np.isin(whole.labels("clean"), wanted))
    np.testing.assert_array_equal(data.labels("clean:Bag+Coat"), whole.labels("clean")[rows])
    assert torch.equal(data.images("clean:Bag+Coat", ROWS), whole.images("clean", rows[:40]))
    assert data.identity("clean:Bag+Coat") != whole.identity("clean")
    assert data.num_classes == 10


def test_clean_pictures_are_clean_and_garbage_has_nothing_of_them():
    data = load("fashion-c", domains=["clean", "blank", "noise"])
    clean = load_clean("fashion")[0][:40]
    assert torch.equal(data.images("clean", ROWS), clean)
    assert data.images("blank", ROWS).unique().tolist() == [127]
    noise = data.images("noise", ROWS).float()
    assert 125 < noise.mean() < 130
    assert 70 < noise.std() < 78  # 73.9 for a uniform byte
    assert abs(np.corrcoef(noise.flatten(), clean.float().flatten())[0, 1]) < 0.02


def test_variants_can_be_sent_to_another_process():
    data = load("fashion-c", domains=["clean:Bag", "clean#2"])
    sent = pickle.loads(pickle.dumps(data))
    assert torch.equal(sent.images("clean:Bag", ROWS), data.images("clean:Bag", ROWS))


def test_a_folder_with_marks_in_its_name_is_still_found(tmp_path):
    from PIL import Image

    for domain in ("gate#2", "gate"):
        for label in ("car", "no"):
            (tmp_path / domain / label).mkdir(parents=True)
            Image.new("RGB", (8, 8), "red" if domain == "gate" else "blue").save(tmp_path / domain / label / "a.png")
    data = load(f"folder:{tmp_path}", domains=["gate", "gate#2", "gate#3"], image_size=8)
    red, blue = [255, 0, 0], [0, 0, 255]
    assert [data.images(domain, [0])[0, :, 0, 0].tolist() for domain in data.domains] == [red, blue, red]


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        (["fog", "fog#2", "fog#2"], "domains must differ: one that comes back is NAME#2"),
        (["fog:Car"], "domains must have classes of T-shirt/top, .*; got 'fog:Car'"),
        (["fogg@3"], "domains must be different ones of motion_blur, .*; got .*fogg"),
        (["fog@9"], "domains must be different ones of motion_blur"),
    ],
)
def test_names_that_mean_nothing_are_refused(domains, message):
    with pytest.raises(ValueError, match=message):
        load("fashion-c", domains=domains)


def test_only_corruptions_have_severities(tmp_path):
    (tmp_path / "a" / "x").mkdir(parents=True)
    with pytest.raises(ValueError, match="only corruptions have severities, got 'a@3'"):
        load(f"folder:{tmp_path}", domains=["a@3"])


@pytest.mark.parametrize("name", ["art_painting", "Real World", "motion_blur"])
def test_usual_names_are_no_variants(name):
    assert Variant.parse(name) == Variant(name)
    assert not has_variants([name])
