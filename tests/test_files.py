import errno
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from grotta import _files
from grotta._files import BusyError, locked, remove_leftovers, replacing, require_space, require_writable, write

NO_PROCESS = 2**31 - 1

# The module alone, which starts sooner than the package.
HOLD = """
import runpy, sys
from pathlib import Path
with runpy.run_path(sys.argv[1])["locked"](Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""

FULL_DISK = """
import resource, runpy, sys
write, path = runpy.run_path(sys.argv[1])["write"], sys.argv[2]
write(path, b"old")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    write(path, bytes(100_000))
except OSError as error:
    print(error)
"""


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


def half_written(path: Path, process: int) -> Path:
    """What ``process``, killed while it wrote ``path``, leaves on disk."""
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        raise KeyboardInterrupt
    left = temporary.with_name(temporary.name.replace(f"-{os.getpid()}-", f"-{process}-"))
    left.write_bytes(b"half")
    return left


def test_a_file_is_absent_until_it_is_whole(tmp_path):
    path = tmp_path / "new" / "folder" / "a.bin"
    with replacing(path) as temporary:
        temporary.write_bytes(b"content")
        assert not path.exists()
        assert temporary.parent == path.parent
    assert path.read_bytes() == b"content"
    assert names(path.parent) == ["a.bin"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no"), OSError(28, "No space left on device")])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a"
    write(path, b"old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_bytes(b"ne")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are set the POSIX way")
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "a"
    command = [sys.executable, "-c", FULL_DISK, _files.__file__, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == f"[Errno 27] File too large: '{path}'\n"
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["a"])


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_the_return(tmp_path, monkeypatch):
    events = []
    flush, replace = os.fsync, Path.replace

    def watched_flush(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")
        flush(descriptor)

    def watched_replace(self, target):
        events.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched_flush)
    monkeypatch.setattr(Path, "replace", watched_replace)
    write(tmp_path / "a", b"x")
    assert events == ["content", "name", "folder"]
    events.clear()
    write(tmp_path / "a", b"x", bulk=True)
    assert events == ["name"]


def test_a_link_stays_a_link_and_the_umask_decides_the_mode(tmp_path):
    (tmp_path / "probe").touch()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    with replacing(link) as temporary:
        temporary.write_bytes(b"x")
        temporary.chmod(0o600)
    assert link.is_symlink()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "probe").stat().st_mode


def test_what_killed_processes_left_is_removed_and_what_others_are_writing_stays(tmp_path, monkeypatch):
    path = tmp_path / "a[1].b-c"
    dead, other = half_written(path, NO_PROCESS), half_written(tmp_path / "other", NO_PROCESS)
    living = [half_written(path, os.getpid()), half_written(path, 1)]
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("platform.node", lambda: "another-machine")
        living.append(half_written(path, NO_PROCESS))
    write(path, b"x")
    assert not dead.exists()
    assert all(file.exists() for file in [*living, other])
    remove_leftovers(tmp_path)
    assert not other.exists()
    assert all(file.exists() for file in [path, *living])


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_lock_excludes_other_processes_until_its_holder_ends_however_it_ends(tmp_path, kind):
    path = tmp_path / "a"
    if kind == "folder":
        path.mkdir()
    command = [sys.executable, "-c", HOLD, _files.__file__, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match=re.escape(f"another process is using {path}")), locked(path, wait=False):
            pass
        holder.kill()
        with locked(path):
            pass
    assert [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.lock")] == [
        os.path.join("a", ".lock") if kind == "folder" else ".a.lock"  # noqa: PTH118
    ]


def test_a_lock_is_released_when_its_block_fails(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path / "a"):
        raise KeyError
    with locked(tmp_path / "a", wait=False):
        pass


def test_a_file_system_without_locks_holds_nothing_but_other_errors_are_told(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def fail_with(number):
        def flock(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", flock)

    for number in sorted(_files._NO_LOCKS):
        fail_with(number)
        with locked(tmp_path / "a"):
            pass
    fail_with(errno.EIO)
    with pytest.raises(OSError, match="Input/output error"), locked(tmp_path / "a"):
        pass


def test_a_lock_in_a_place_that_is_a_file_names_it(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"), locked(tmp_path / "file" / "a"):
        pass


def test_a_writable_folder_is_made_and_left_empty(tmp_path):
    require_writable(tmp_path / "a" / "b")
    assert names(tmp_path / "a" / "b") == []


def test_a_folder_that_cannot_be_written_to_is_named_with_the_reason(tmp_path, monkeypatch):
    def read_only(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", read_only)
    message = f"cache must be a folder that can be written to, got {str(tmp_path)!r} (Read-only file system)"
    with pytest.raises(OSError, match=re.escape(message)):
        require_writable(tmp_path, "cache")


def test_too_little_room_is_an_error_before_the_work(tmp_path):
    require_space(tmp_path / "new", 1, "this")
    with pytest.raises(OSError, match=r"this needs 1000000000000 MB in .*new, where \d+ MB are free"):
        require_space(tmp_path / "new", 10**18, "this")
