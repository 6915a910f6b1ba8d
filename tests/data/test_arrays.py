"""Arrays in the cache: made once, whole or not at all, and made again when damaged."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections import namedtuple

import numpy as np
import pytest

from grotta.data import arrays
from grotta.data.arrays import cached_images

SHAPE = (4, 8, 8, 3)


class Maker:
    """Fills an array with a value, and counts how often it had to."""

    def __init__(self, value: int = 7) -> None:
        self.value, self.calls = value, 0

    def __call__(self, target: np.ndarray) -> None:
        self.calls += 1
        target[:] = self.value


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "array.npy"


@pytest.fixture(autouse=True)
def as_in_a_new_process(monkeypatch):
    monkeypatch.setattr(arrays, "_sound", set())


def test_it_is_made_once_and_then_memory_mapped(path):
    make = Maker()
    for _ in range(3):
        found = cached_images(path, SHAPE, make)
        assert isinstance(found, np.memmap)
        assert not found.flags.writeable
        assert (found == 7).all()
    assert make.calls == 1


def test_a_new_process_checks_it_and_does_not_make_it_again(path, monkeypatch):
    cached_images(path, SHAPE, Maker())
    monkeypatch.setattr(arrays, "_sound", set())
    again = Maker()
    cached_images(path, SHAPE, again)
    assert again.calls == 0


def damage_truncated(path):
    path.write_bytes(path.read_bytes()[:-10])


def damage_one_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def damage_emptied(path):
    path.write_bytes(b"")


def damage_no_checksum(path):
    path.with_suffix(".json").unlink()


def damage_wrong_checksum(path):
    path.with_suffix(".json").write_text(json.dumps({"sha256": "0" * 64}))


def damage_nonsense_checksum(path):
    path.with_suffix(".json").write_text("[1, 2")


def damage_other_shape(path):
    np.save(path, np.zeros((3, 8, 8, 3), np.uint8))


def damage_other_type(path):
    np.save(path, np.zeros(SHAPE, np.int64))


@pytest.mark.parametrize("damage", [value for name, value in sorted(globals().items()) if name.startswith("damage_")])
def test_a_damaged_file_is_made_again(path, damage, monkeypatch):
    cached_images(path, SHAPE, Maker())
    damage(path)
    monkeypatch.setattr(arrays, "_sound", set())
    again = Maker(9)
    assert (cached_images(path, SHAPE, again) == 9).all()
    assert again.calls == 1


def test_a_failure_while_making_leaves_nothing_and_the_next_try_works(path):
    def fail(target):
        target[0] = 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_images(path, SHAPE, fail)
    assert [item.name for item in path.parent.iterdir()] == [".array.npy.lock"]
    assert (cached_images(path, SHAPE, Maker()) == 7).all()


def test_too_little_disk_is_noticed_before_the_work(path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(100, 99, 1))
    make = Maker()
    with pytest.raises(OSError, match=r"making array\.npy needs"):
        cached_images(path, SHAPE, make)
    assert make.calls == 0


def test_threads_that_want_the_same_array_make_it_once(path):
    make, found = Maker(), []
    threads = [threading.Thread(target=lambda: found.append(cached_images(path, SHAPE, make))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert make.calls == 1
    assert all((array == 7).all() for array in found)


PROCESS = """
import pathlib, sys
from grotta.data.arrays import cached_images

def fill(target):
    with pathlib.Path(sys.argv[2]).open("a") as calls:
        calls.write("made\\n")
    target[:] = 7

sys.stdin.readline()
print(int(cached_images(pathlib.Path(sys.argv[1]), (500, 32, 32, 3), fill).min()))
"""


@pytest.mark.slow
def test_processes_that_want_the_same_array_make_it_once(path, tmp_path):
    calls = tmp_path / "calls"
    command = [sys.executable, "-c", PROCESS, str(path), str(calls)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(3)
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["7\n"] * 3
    assert calls.read_text() == "made\n"


def test_a_cache_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"GROTTA_CACHE must be a folder that can be written to, got .*file'"):
        cached_images(tmp_path / "file" / "array.npy", SHAPE, Maker())
