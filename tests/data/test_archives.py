"""Archives are unpacked completely or not at all, and never outside their folder."""

import io
import shutil
import tarfile
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from grotta.data.archives import unpack
from grotta.data.errors import DamagedDataError


def tar_of(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def zip_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


@pytest.mark.parametrize("pack", [tar_of, zip_of, lambda path, members: tar_of(path, members, "w:gz")])
def test_everything_arrives(pack, tmp_path, target):
    unpack(pack(tmp_path / "archive", {"a/b.txt": b"b", "c.txt": b"c"}), target)
    assert (target / "a" / "b.txt").read_bytes() == b"b"
    assert (target / "c.txt").read_bytes() == b"c"
    assert sorted(path.name for path in target.iterdir()) == ["a", "c.txt"]


def test_folders_that_are_there_are_merged_and_files_replaced(tmp_path, target):
    (target / "a").mkdir(parents=True)
    (target / "a" / "old.txt").write_bytes(b"old")
    (target / "a" / "b.txt").write_bytes(b"half")
    unpack(tar_of(tmp_path / "archive.tar", {"a/b.txt": b"whole"}), target)
    assert (target / "a" / "b.txt").read_bytes() == b"whole"
    assert (target / "a" / "old.txt").read_bytes() == b"old"


@pytest.mark.parametrize("pack", [tar_of, zip_of, lambda path, members: tar_of(path, members, "w:gz")])
def test_a_truncated_archive_leaves_nothing(pack, tmp_path, target):
    archive = pack(tmp_path / "archive", {"a.bin": bytes(50_000), "b.bin": bytes(range(256)) * 200})
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size * 2 // 3])
    with pytest.raises(DamagedDataError, match="archive cannot be unpacked"):
        unpack(archive, target)
    assert list(target.iterdir()) == []


def test_what_is_no_archive_is_refused(tmp_path, target):
    (tmp_path / "archive.tar").write_bytes(b"not an archive")
    with pytest.raises(DamagedDataError, match="cannot be unpacked"):
        unpack(tmp_path / "archive.tar", target)


@pytest.mark.parametrize(("offset", "value", "reason"), [(6, 1, "encrypted"), (8, 99, "compression")])
def test_an_encrypted_or_unknown_zip_leaves_nothing(tmp_path, target, offset, value, reason):
    content = bytearray(zip_of(tmp_path / "archive.zip", {"a.bin": b"a"}).read_bytes())
    # The flags and the method are noted in the header of the file and, two bytes further on, in the directory.
    content[offset] = content[content.index(b"PK\x01\x02") + offset + 2] = value
    (tmp_path / "archive.zip").write_bytes(content)
    with pytest.raises(DamagedDataError, match=rf"archive\.zip cannot be unpacked: .*{reason}"):
        unpack(tmp_path / "archive.zip", target)
    assert list(target.iterdir()) == []


def test_what_is_refused_is_not_moved(tmp_path, target):
    def refuse(staging):
        raise DamagedDataError(f"no {sorted(path.name for path in staging.iterdir())}")

    with pytest.raises(DamagedDataError, match=r"no \['a', 'c.txt'\]"):
        unpack(zip_of(tmp_path / "archive.zip", {"a/b.txt": b"b", "c.txt": b"c"}), target, refuse)
    assert list(target.iterdir()) == []


def test_the_two_uppermost_levels_are_named(tmp_path, target):
    archive = tar_of(tmp_path / "archive.tar", {"a/b/c.txt": b"", "a/d.txt": b"", "e.txt": b""})
    assert unpack(archive, target) == ["a", "a/b", "a/d.txt", "e.txt"]


@pytest.mark.parametrize("pack", [tar_of, zip_of])
@pytest.mark.parametrize("name", ["../outside.txt", "a/../../outside.txt"])
def test_a_path_that_leads_outside_is_refused(pack, name, tmp_path, target):
    with pytest.raises(DamagedDataError, match="outside"):
        unpack(pack(tmp_path / "archive", {"fine.txt": b"", name: b"bad"}), target)
    assert not (tmp_path / "outside.txt").exists()
    assert list(target.iterdir()) == []


def test_a_link_that_leads_outside_is_refused(tmp_path, target):
    with tarfile.open(tmp_path / "archive.tar", "w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    with pytest.raises(DamagedDataError, match="link"):
        unpack(tmp_path / "archive.tar", target)


def test_what_an_earlier_killed_run_left_is_cleared_away(tmp_path, target):
    (target / ".archive.tar.unpacking").mkdir(parents=True)
    (target / ".archive.tar.unpacking" / "rubbish").touch()
    unpack(tar_of(tmp_path / "archive.tar", {"a.txt": b"a"}), target)
    assert sorted(path.name for path in target.iterdir()) == ["a.txt"]


def test_too_little_disk_is_noticed_before_unpacking(tmp_path, target, monkeypatch):
    archive = zip_of(tmp_path / "archive.zip", {"a.bin": bytes(10_000)})
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10_000, 9_999, 1))
    with pytest.raises(OSError, match=r"unpacking archive\.zip needs"):
        unpack(archive, target)
    assert list(target.iterdir()) == []
