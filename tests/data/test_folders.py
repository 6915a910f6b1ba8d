"""PACS, OfficeHome, DomainNet and folders of one's own, in their published layouts."""

import pickle

import numpy as np
import pytest
import torch

import grotta.data
from grotta.data import DamagedDataError, DataNotFoundError, decode
from grotta.data.corrupt_folder import Corruptor, corrupt_folder

PACS = ("art_painting", "cartoon", "photo", "sketch")
OFFICEHOME = ("Art", "Clipart", "Product", "Real World")
DOMAINNET = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")


@pytest.fixture
def write_folders(make_picture):
    def write(folder, domains, classes, per_class=2, suffix=".jpg"):
        for domain_number, domain in enumerate(domains):
            for class_number, name in enumerate(classes):
                for number in range(per_class):
                    seed = domain_number * 100 + class_number * 10 + number
                    make_picture(folder / domain / name / f"pic_{number:03d}{suffix}", seed)

    return write


@pytest.mark.parametrize("place", ["pacs", "PACS", "PACS/kfold", "."])
def test_pacs_in_its_published_layout(tmp_path, write_folders, place):
    write_folders(tmp_path / place, PACS, ["dog", "elephant", "giraffe"])
    data = grotta.data.load("pacs", root=tmp_path, image_size=28)
    assert (data.domains, data.class_names) == (PACS, ("dog", "elephant", "giraffe"))
    assert (data.image_shape, data.provenance) == ((3, 28, 28), "original")
    assert data.labels("sketch").tolist() == [0, 0, 1, 1, 2, 2]
    assert data.images("sketch", [5, 0]).shape == (2, 3, 28, 28)


def test_pictures_are_given_in_the_order_asked_for(tmp_path, write_folders):
    write_folders(tmp_path / "pacs", PACS, ["dog", "house"])
    data = grotta.data.load("pacs", root=tmp_path, image_size=14)
    everything = data.images("photo", range(4))
    assert torch.equal(data.images("photo", torch.tensor([3, 1, 3])), everything[[3, 1, 3]])
    assert torch.equal(data.images("photo", np.array([2])), everything[[2]])
    assert data.images("photo", []).shape == (0, 3, 14, 14)


@pytest.mark.parametrize("real_world", ["Real World", "RealWorld", "Real_World", "real_world"])
@pytest.mark.parametrize("place", ["OfficeHomeDataset_10072016", "office_home"])
def test_officehome_in_its_published_layout(tmp_path, write_folders, place, real_world):
    write_folders(tmp_path / place, (*OFFICEHOME[:3], real_world), ["Alarm_Clock", "Bed"])
    data = grotta.data.load("officehome", root=tmp_path, image_size=14)
    assert data.domains == OFFICEHOME
    assert data.labels("Real World").tolist() == [0, 0, 1, 1]
    assert data.images("Real World", [0]).shape == (1, 3, 14, 14)


def write_domainnet(folder, write_folders):
    write_folders(folder, DOMAINNET, ["zebra", "The_Mona_Lisa", "airplane"])
    labels = {"airplane": 0, "The_Mona_Lisa": 1, "zebra": 2}
    for domain in DOMAINNET:
        lines = [f"{domain}/{name}/pic_00{{}}.jpg {label}" for name, label in labels.items()]
        (folder / f"{domain}_train.txt").write_text("\n".join(line.format(0) for line in lines) + "\n")
        (folder / f"{domain}_test.txt").write_text("\n".join(line.format(1) for line in lines) + "\n")


def test_domainnet_takes_its_labels_from_its_lists(tmp_path, write_folders, make_picture):
    write_domainnet(tmp_path / "DomainNet", write_folders)
    make_picture(tmp_path / "DomainNet" / "real" / "zebra" / "not_listed.jpg")
    data = grotta.data.load("domainnet", root=tmp_path, image_size=14)
    assert (data.domains, data.class_names) == (DOMAINNET, ("airplane", "The_Mona_Lisa", "zebra"))
    assert data.labels("real").tolist() == [0, 1, 2, 0, 1, 2]
    folders = grotta.data.load("folder:" + str(tmp_path / "DomainNet"), domains=["real"], image_size=14)
    assert torch.equal(data.images("real", range(6)), folders.images("real", range(6)))


def test_domainnet_without_lists_is_read_by_its_folders(tmp_path, write_folders):
    write_folders(tmp_path / "domain_net", DOMAINNET, ["airplane", "zebra"])
    data = grotta.data.load("domainnet", root=tmp_path, image_size=14)
    assert data.labels("clipart").tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("real/zebra/a.jpg", "line 1: expected"),
        ("real/zebra/a.jpg x", "line 1: expected"),
        ("zebra/a.jpg 3", "line 1: expected"),
        ("real/zebra/a.jpg 7", "0 to 3"),
        ("real/zebra/a.jpg 0", "calls label 0"),
        ("", r"real_test\.txt is empty"),
        ("\n \n", r"real_test\.txt is empty"),
        (b"PK\x03\x04\xff\xfe", r"real_test\.txt is not a text file"),
    ],
)
def test_a_damaged_list_is_a_clear_error(tmp_path, write_folders, line, message):
    write_domainnet(tmp_path / "DomainNet", write_folders)
    (tmp_path / "DomainNet" / "real_test.txt").write_bytes(line if isinstance(line, bytes) else line.encode())
    with pytest.raises(DamagedDataError, match=message):
        grotta.data.load("domainnet", root=tmp_path)


def test_blank_lines_in_a_list_are_passed_over(tmp_path, write_folders):
    write_domainnet(tmp_path / "DomainNet", write_folders)
    path = tmp_path / "DomainNet" / "real_test.txt"
    path.write_text(path.read_text() + "\n\n")
    assert grotta.data.load("domainnet", root=tmp_path).labels("real").tolist() == [0, 1, 2, 0, 1, 2]


def test_a_folder_of_ones_own(tmp_path, write_folders, make_picture):
    write_folders(tmp_path / "mine", ["night", "day"], ["cat", "dog"], suffix=".png")
    make_picture(tmp_path / "mine" / "day" / "bird" / "only_by_day.PNG")
    (tmp_path / "mine" / "day" / "cat" / "notes.txt").touch()
    (tmp_path / "mine" / "day" / "cat" / ".hidden.png").touch()
    (tmp_path / "mine" / ".git").mkdir()
    data = grotta.data.load(f"folder:{tmp_path / 'mine'}", image_size=14)
    assert (data.domains, data.class_names) == (("day", "night"), ("bird", "cat", "dog"))
    assert data.labels("day").tolist() == [0, 1, 1, 2, 2]
    assert data.labels("night").tolist() == [1, 1, 2, 2]


def test_a_folder_in_the_layout_of_imagenet_c_is_read_at_its_severity(tmp_path, write_folders):
    for severity in ("1", "5"):
        write_folders(tmp_path, [f"fog/{severity}", f"snow/{severity}"], ["cat", "dog"], per_class=int(severity))
    data = grotta.data.load(f"folder:{tmp_path}", image_size=16, severity=1)
    assert (data.domains, data.class_names) == (("fog", "snow"), ("cat", "dog"))
    assert len(data.labels("fog")) == 2
    assert len(grotta.data.load(f"folder:{tmp_path}").labels("fog")) == 10


def test_a_severity_that_is_not_there_is_named_with_those_that_are(tmp_path, write_folders):
    write_folders(tmp_path, ["fog/1", "fog/3", "snow/3"], ["cat", "dog"])
    with pytest.raises(DataNotFoundError, match=r"fog has no severity 5; it has 1, 3$"):
        grotta.data.load(f"folder:{tmp_path}")
    with pytest.raises(DataNotFoundError, match=r"snow has no severity 1; it has 3$"):
        grotta.data.load(f"folder:{tmp_path}", severity=1)
    assert grotta.data.load(f"folder:{tmp_path}", severity=1, domains=["fog"]).class_names == ("cat", "dog")


def test_what_corrupt_makes_is_read_as_what_it_is(tmp_path, make_picture):
    corruptor = Corruptor(corruptions=["contrast"], severities=[3], scale="cifar")
    make_picture(tmp_path / "photos" / "dog" / "a.png")
    corrupt_folder(tmp_path / "photos", tmp_path / "out", corruptor)
    assert grotta.data.load(f"folder:{tmp_path / 'out'}", severity=3, image_size=32).class_names == ("dog",)
    make_picture(tmp_path / "flat" / "a.png")
    corrupt_folder(tmp_path / "flat", tmp_path / "without-classes", corruptor)
    with pytest.raises(DataNotFoundError, match="<domain>/<severity>/<class>/<picture>, found no class folders"):
        grotta.data.load(f"folder:{tmp_path / 'without-classes'}", severity=3)


def test_classes_may_be_called_like_severities(tmp_path, write_folders):
    write_folders(tmp_path, ["ink", "pencil"], ["1", "2", "5"])
    assert grotta.data.load(f"folder:{tmp_path}").class_names == ("1", "2", "5")


def test_domains_are_those_asked_for_in_that_order(tmp_path, write_folders):
    write_folders(tmp_path / "pacs", PACS, ["dog"])
    data = grotta.data.load("pacs", root=tmp_path, domains=["sketch", "cartoon"])
    assert data.domains == ("sketch", "cartoon")
    with pytest.raises(ValueError, match="domain must be one of sketch, cartoon, those of pacs; got 'photo'"):
        data.labels("photo")


def test_a_missing_data_set_says_where_it_was_looked_for_and_how_to_get_it(tmp_path, own_cache):
    with pytest.raises(DataNotFoundError) as caught:
        grotta.data.load("officehome", root=tmp_path)
    expected = (
        str(tmp_path),
        str(own_cache / "data"),
        "OfficeHomeDataset_10072016",
        "Real World",
        "data get officehome",
    )
    assert all(part in str(caught.value) for part in expected)


def test_a_wrongly_named_domain_says_what_is_there(tmp_path, write_folders):
    write_folders(tmp_path / "PACS", ["art_painting", "cartoons", "photo", "sketch"], ["dog"])
    with pytest.raises(DataNotFoundError, match="no folder 'cartoon'; it has art_painting, cartoons, photo, sketch"):
        grotta.data.load("pacs", root=tmp_path)
    assert grotta.data.load("pacs", root=tmp_path, domains=["photo"]).domains == ("photo",)


def test_one_data_set_is_not_taken_for_another_with_a_domain_of_the_same_name(tmp_path, write_folders):
    write_folders(tmp_path, DOMAINNET, ["zebra"])
    with pytest.raises(DataNotFoundError, match="officehome is in none of"):
        grotta.data.load("officehome", root=tmp_path)
    assert grotta.data.load("domainnet", root=tmp_path).domains == DOMAINNET


def test_an_empty_domain_is_a_clear_error(tmp_path, write_folders):
    write_folders(tmp_path / "pacs", PACS[:3], ["dog"])
    (tmp_path / "pacs" / "sketch" / "dog").mkdir(parents=True)
    with pytest.raises(DataNotFoundError, match="sketch has no pictures in class folders"):
        grotta.data.load("pacs", root=tmp_path).labels("sketch")


@pytest.mark.parametrize("path", ["missing", "flat"])
def test_a_folder_without_domains_is_a_clear_error(tmp_path, make_picture, path):
    make_picture(tmp_path / "flat" / "a.jpg")
    with pytest.raises(DataNotFoundError, match=r"no such folder|found no class folders"):
        grotta.data.load(f"folder:{tmp_path / path}")


@pytest.mark.parametrize("content", [b"", b"not a picture", None])
def test_a_damaged_picture_is_named(tmp_path, write_folders, content):
    write_folders(tmp_path / "pacs", PACS, ["dog"])
    path = tmp_path / "pacs" / "photo" / "dog" / "pic_001.jpg"
    path.write_bytes(path.read_bytes()[:300] if content is None else content)
    data = grotta.data.load("pacs", root=tmp_path, image_size=14)
    with pytest.raises(DamagedDataError, match=r"pic_001\.jpg cannot be read as a picture"):
        data.images("photo", [0, 1])
    assert data.images("photo", [0]).shape == (1, 3, 14, 14)


def test_decoded_pictures_may_be_kept(tmp_path, write_folders, monkeypatch, own_cache):
    write_folders(tmp_path / "pacs", PACS, ["dog", "house"])
    plain = grotta.data.load("pacs", root=tmp_path, image_size=14)
    kept = grotta.data.load("pacs", root=tmp_path, image_size=14, keep_decoded=True)
    assert torch.equal(kept.images("photo", [3, 0]), plain.images("photo", [3, 0]))
    assert kept.labels("photo").tolist() == plain.labels("photo").tolist()
    again = pickle.loads(pickle.dumps(kept))
    monkeypatch.setattr(decode, "open_picture", None)
    decode._decode.cache_clear()
    assert torch.equal(again.images("photo", [1, 2]), kept.images("photo", [1, 2]))
    assert len(list(own_cache.rglob("*.npy"))) == 1


def test_a_picture_that_is_shown_again_is_not_decoded_again(tmp_path, write_folders, monkeypatch):
    write_folders(tmp_path / "pacs", PACS, ["dog"])
    data = grotta.data.load("pacs", root=tmp_path, image_size=14)
    first = data.images("photo", [0])
    monkeypatch.setattr(decode, "open_picture", None)
    assert torch.equal(data.images("photo", [0, 0]), first[[0, 0]])
