"""`grotta data` as a user types it."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from grotta.commands.data import app
from grotta.data import CORRUPTIONS, DataNotFoundError, DownloadError, list_datasets, registry
from grotta.data.entry import Entry

runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_list_says_of_each_what_is_here_where_it_was_looked_for_and_how_to_get_it(tmp_path, make_picture, own_cache):
    for domain in ("art_painting", "cartoon", "photo", "sketch"):
        make_picture(tmp_path / "PACS" / "kfold" / domain / "dog" / "a.jpg")
    output = run("list", "--data-root", tmp_path).output
    for name in list_datasets():
        assert f"\n{name}: " in output
    assert f"here: photo, {tmp_path / 'PACS' / 'kfold' / 'photo'}" in output
    assert "not here; looked for OfficeHomeDataset_10072016 or" in output
    assert "grotta data get cifar10-c (2.9 GB" in output
    assert f"  {tmp_path}\n" in output
    assert f"{own_cache / 'data'}  (does not exist)" in output


def test_list_as_json(tmp_path):
    (tmp_path / "CIFAR-10-C").mkdir()
    for name in ("labels", *CORRUPTIONS):
        np.save(tmp_path / "CIFAR-10-C" / f"{name}.npy", np.zeros(5))
    facts = json.loads(run("list", "--json", "--data-root", tmp_path).output)
    assert facts["roots"][0] == str(tmp_path)
    assert facts["datasets"]["cifar10-c"]["here"] == {"published": str(tmp_path / "CIFAR-10-C")}
    assert facts["datasets"]["cifar10-c"]["missing"] == []
    assert facts["datasets"]["domainnet"]["here"] == {}
    assert facts["datasets"]["fashion-c"]["get"] == "nothing to get: it is part of grotta"
    assert [name for name, fact in facts["datasets"].items() if fact["benchmark"]] == list_datasets()


def test_list_names_what_is_missing_of_what_is_here_in_part(tmp_path, make_picture):
    (tmp_path / "CIFAR-10-C").mkdir()
    np.save(tmp_path / "CIFAR-10-C" / "labels.npy", np.zeros(5))
    (tmp_path / "val").mkdir()
    make_picture(tmp_path / "cifar100" / "test.png")
    (tmp_path / "cifar100" / "test.json").write_text("[]")
    make_picture(tmp_path / "PACS" / "photo" / "dog" / "a.jpg")
    facts = json.loads(run("list", "--json", "--data-root", tmp_path).output)["datasets"]
    assert facts["cifar10-c"]["here"] == {}
    assert facts["cifar10-c"]["missing"] == [f"{name}.npy in {tmp_path / 'CIFAR-10-C'}" for name in CORRUPTIONS]
    assert facts["imagenet"]["here"] == {}
    assert (list(facts["cifar100"]["here"]), facts["cifar100"]["missing"]) == (["test"], ["train"])
    assert facts["pacs"]["missing"] == [
        f"{name} in {tmp_path / 'PACS'}" for name in ("art_painting", "cartoon", "sketch")
    ]
    assert "  missing: train\n" in run("list", "--data-root", tmp_path).output


def test_list_names_the_training_pictures_of_imagenet(tmp_path, make_picture):
    place = tmp_path / "imagenet" / "train"
    place.mkdir(parents=True)
    assert json.loads(run("list", "--json", "--data-root", tmp_path).output)["datasets"]["imagenet"]["here"] == {}
    make_picture(place / "n01440764" / "a.JPEG")
    output = run("list", "--data-root", tmp_path).output
    assert f"  here: train, {place}\n  missing: val\n" in output
    assert "training pictures for grotta train" in output


def test_imagenet_without_training_pictures_is_all_that_was_to_be_got(tmp_path, make_picture):
    make_picture(tmp_path / "imagenet" / "val" / "n01440764" / "a.JPEG")
    place = tmp_path / "imagenet" / "val"
    assert run("get", "imagenet", "--data-root", tmp_path).output == f"imagenet: val, {place}\n"
    place.rename(tmp_path / "imagenet" / "train")
    with pytest.raises(DataNotFoundError, match="ILSVRC2012_img_val"):
        run("get", "imagenet", "--data-root", tmp_path)


@pytest.mark.parametrize(("paths", "usable"), [(["fog/n01440764"], False), (["fog/5"], True), (["blur/fog/5"], False)])
def test_list_names_what_is_missing_of_imagenet_c(tmp_path, make_picture, paths, usable):
    folder = tmp_path / "ImageNet-C"
    for path in paths:
        (folder / path).mkdir(parents=True)
    make_picture(tmp_path / "imagenet" / "val" / "n01440764" / "a.JPEG")
    facts = json.loads(run("list", "--json", "--data-root", tmp_path).output)["datasets"]["imagenet-c"]
    assert facts["here"] == ({"published": str(folder)} if usable else {})
    assert facts["missing"] == [f"{name} in {folder}" for name in CORRUPTIONS if not usable or name != "fog"]


def test_list_goes_on_when_a_folder_cannot_be_read(tmp_path, make_picture, monkeypatch):
    for domain in ("art_painting", "cartoon", "photo", "sketch"):
        make_picture(tmp_path / "PACS" / domain / "dog" / "a.jpg")
    too_long = "x" * 300  # an error even for a user who may read everything
    (tmp_path / "DomainNet").mkdir()
    listed = Path.iterdir

    def iterdir(path):
        if path.name == "DomainNet":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    monkeypatch.setenv("GROTTA_DATA", f"{too_long}:{tmp_path}")
    output = run("list").output
    assert f"  {too_long}  (cannot be read: File name too long)" in output
    assert f"here: photo, {tmp_path / 'PACS' / 'photo'}" in output
    assert "cannot tell: [Errno 13] Permission denied" in output
    assert json.loads(run("list", "--json").output)["not_read"][too_long] == "cannot be read: File name too long"


@pytest.mark.parametrize(
    ("name", "domains"),
    [
        ("pacs", ("art_painting", "cartoon", "photo", "sketch")),
        ("officehome", ("Art", "Clipart", "Product", "RealWorld")),
    ],
)
def test_get_says_of_what_was_got_by_hand_that_it_is_there(tmp_path, make_picture, name, domains):
    for domain in domains:
        make_picture(tmp_path / name / domain / "dog" / "a.jpg")
    output = run("get", name, "--data-root", tmp_path).output
    assert f"{name}: {domains[0]}, {tmp_path / name / domains[0]}" in output


def test_get_fails_if_nothing_is_there_afterwards(tmp_path, monkeypatch):
    entry = registry.ENTRIES["cifar10-c"]
    monkeypatch.setitem(registry.ENTRIES, "cifar10-c", dataclasses.replace(entry, get=lambda root: None))
    with pytest.raises(DataNotFoundError, match=r"cifar10-c: .* still lacks CIFAR-10-C/\*\.npy"):
        run("get", "cifar10-c", "--data-root", tmp_path)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("pacs", ["http://www.eecs.qmul.ac.uk", "PACS/kfold/<domain>/<class>"]),
        ("officehome", ["OfficeHomeDataset_10072016.zip", "https://www.hemanthdv.org", "grotta data get officehome"]),
        ("imagenet", ["https://image-net.org", "imagenet/val/<wnid>"]),
    ],
)
def test_get_says_what_to_do_by_hand(tmp_path, name, parts):
    with pytest.raises(DataNotFoundError) as caught:
        run("get", name, "--data-root", tmp_path / "new")
    assert all(part in str(caught.value) for part in [*parts, str(tmp_path / "new")])


@pytest.mark.parametrize("name", ["mnist", "fashion-c"])
def test_get_of_what_cannot_be_got_names_what_can(name):
    with pytest.raises(ValueError, match="must be one of cifar10-c, .*imagenet, got"):
        run("get", name)


def test_get_downloads_into_the_cache_and_says_where_it_is(monkeypatch, own_cache, server):
    files = {name: server.put(f"{name}.gz", b"x") for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")}
    fetch = registry.CLEAN["fashion"].fetch
    monkeypatch.setitem(
        registry.ENTRIES,
        "fashion",
        Entry(
            name="fashion",
            title="",
            find=registry.ENTRIES["fashion"].find,
            looks_for="",
            size="",
            get=lambda root: fetch.func(list(files.values()), "fashion-mnist", root),
        ),
    )
    assert f"fashion: train, {own_cache / 'data' / 'fashion-mnist'}" in run("get", "fashion").output


@pytest.mark.parametrize(
    "name", ["cifar10-c", "cifar100-c", "imagenet-c", "domainnet", "fashion", "cifar10", "cifar100"]
)
def test_what_may_be_downloaded_has_an_official_address(name, tmp_path, monkeypatch):
    asked = []

    def refuse(request, timeout):
        asked.append(request.full_url)
        raise OSError("no network in tests")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10**12}))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DownloadError, match="no network in tests"):
        run("get", name)
    host = asked[0].split("/")[2]
    assert host in {
        "zenodo.org",
        "csr.bu.edu",
        "www.cs.toronto.edu",
        "fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    }


def test_corrupt_writes_what_is_asked_for(tmp_path, make_picture):
    make_picture(tmp_path / "photos" / "dog" / "a.png")
    arguments = ("corrupt", tmp_path / "photos", "--out", tmp_path / "out", "--severity", "1, 5")
    result = run(*arguments, "--corruptions", "fog,contrast", "--scale", "cifar", "--seed", "3")
    assert result.exit_code == 0
    assert "4 files made, 0 kept" in result.output
    assert (tmp_path / "out" / "contrast" / "1" / "dog" / "a.JPEG").is_file()
    again = run(*arguments, "--corruptions", "fog", "--scale", "cifar", "--seed", "3", "--json")
    assert json.loads(again.stdout) == {"made": 0, "kept": 2, "damaged": []}


def test_corrupt_fails_when_a_picture_was_left_out(tmp_path, make_picture):
    make_picture(tmp_path / "photos" / "a.png")
    (tmp_path / "photos" / "b.png").write_bytes(b"broken")
    result = run("corrupt", tmp_path / "photos", "--out", tmp_path / "out", "--corruptions", "fog", "--scale", "cifar")
    assert result.exit_code == 1
    assert "left out: " in result.output
    assert "1 files made" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--severity", "high"], "severity must be whole numbers"),
        (["--severity", "7"], "severities must be different ones of 1, 2, 3, 4, 5; got"),
        (["--corruptions", "smoke"], "corruptions must be different ones of motion_blur"),
        (["--scale", "huge"], "scale must be one of"),
        (["--seed", "-1"], "seed must be at least 0, got -1"),
    ],
)
def test_a_wrong_option_of_corrupt_is_named(tmp_path, make_picture, arguments, message):
    make_picture(tmp_path / "photos" / "a.png")
    with pytest.raises(ValueError, match=message):
        run("corrupt", tmp_path / "photos", "--out", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["list", "get", "corrupt"])
def test_help_has_an_example(command):
    assert f"grotta data {command}" in run(command, "--help").output
