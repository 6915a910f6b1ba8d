"""Downloads: go on after a cut, keep only what was asked for, and leave no half files behind."""

import dataclasses
import shutil
import socket
from collections import namedtuple
from pathlib import Path

import pytest

from grotta.data.download import download
from grotta.data.errors import DownloadError

CONTENT = bytes(range(256)) * 9000  # 2.3 MB, more than two blocks


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_the_file_arrives_whole(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    assert download(remote, tmp_path / "new").read_bytes() == CONTENT
    assert visible(tmp_path / "new") == ["a.bin"]


def test_a_file_that_is_there_is_not_downloaded_again(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    download(remote, tmp_path)
    download(remote, tmp_path)
    assert len(server.ranges) == 1


def test_a_damaged_file_that_is_there_is_replaced(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    (tmp_path / "a.bin").write_bytes(b"something else")
    assert download(remote, tmp_path).read_bytes() == CONTENT


def test_a_cut_connection_is_taken_up_where_it_stopped(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    server.cut_after["/a.bin"] = [1_100_000, 700_000]
    assert download(remote, tmp_path).read_bytes() == CONTENT
    assert server.ranges == ["", "bytes=1100000-", "bytes=1800000-"]


def test_the_next_call_resumes_a_half_downloaded_file(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    server.cut_after["/a.bin"] = [5000, 0]
    with pytest.raises(DownloadError, match="5000 bytes are kept, and the next attempt resumes there"):
        download(remote, tmp_path)
    assert visible(tmp_path) == ["a.bin.part"]
    assert download(remote, tmp_path).read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=5000-"
    assert visible(tmp_path) == ["a.bin"]


def test_a_server_that_knows_no_ranges_sends_everything_again(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    server.ignores_range = True
    (tmp_path / "a.bin.part").write_bytes(CONTENT[:5000])
    assert download(remote, tmp_path).read_bytes() == CONTENT


def test_a_server_that_knows_no_ranges_does_not_shorten_what_is_already_downloaded(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    server.ignores_range = True
    server.cut_after["/a.bin"] = [2000, 1_500_000, 1_000_000]
    (tmp_path / "a.bin.part").write_bytes(CONTENT[:5000])
    for kept in (5000, 1_500_000):
        with pytest.raises(DownloadError, match=f"{kept} bytes are kept"):
            download(remote, tmp_path)
        assert (tmp_path / "a.bin.part").read_bytes() == CONTENT[:kept]
    assert download(remote, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("length", ["many", "-1"])
def test_a_length_that_is_no_number_is_a_clear_error(server, tmp_path, length):
    remote = server.put("a.bin", b"short")
    server.content_length = length
    with pytest.raises(DownloadError, match=rf"a\.bin: the server gives '{length}' as Content-Length"):
        download(remote, tmp_path)
    assert visible(tmp_path) == []


def test_a_part_of_another_file_is_thrown_away_and_the_download_begins_again(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    (tmp_path / "a.bin.part").write_bytes(b"x" * 5000)
    assert download(remote, tmp_path).read_bytes() == CONTENT
    assert server.ranges == ["bytes=5000-", ""]


def test_a_part_that_is_too_long_is_thrown_away(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    (tmp_path / "a.bin.part").write_bytes(CONTENT + b"more")
    assert download(remote, tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_already_whole_is_kept(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    (tmp_path / "a.bin.part").write_bytes(CONTENT)
    assert download(remote, tmp_path).read_bytes() == CONTENT
    assert server.ranges == [f"bytes={len(CONTENT)}-"]


def test_a_wrong_checksum_is_refused_and_nothing_stays(server, tmp_path):
    remote = dataclasses.replace(server.put("a.bin", CONTENT), checksum="0" * 32)
    with pytest.raises(DownloadError, match="its md5 is .* not 0{32}; it was not kept"):
        download(remote, tmp_path)
    assert visible(tmp_path) == []


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "application/octet-stream"])
def test_a_web_page_instead_of_the_file_is_refused_and_nothing_stays(server, tmp_path, content_type):
    remote = server.put("a.bin", b"\n<!DOCTYPE html><html>Please log in</html>")
    server.content_type = content_type
    with pytest.raises(DownloadError, match="gives a web page, not the file"):
        download(remote, tmp_path)
    assert visible(tmp_path) == []


def test_a_web_page_does_not_spoil_what_is_already_downloaded(server, tmp_path):
    remote = server.put("a.bin", CONTENT)
    (tmp_path / "a.bin.part").write_bytes(CONTENT[:5000])
    server.content_type = "text/html"
    with pytest.raises(DownloadError, match="web page"):
        download(remote, tmp_path)
    server.content_type = "application/octet-stream"
    assert download(remote, tmp_path).read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=5000-"


def test_a_missing_file_says_what_the_server_says(server, tmp_path):
    remote = dataclasses.replace(server.put("a.bin", CONTENT), url=f"{server.address}/b.bin")
    with pytest.raises(DownloadError, match=r"b\.bin: the server answers 404"):
        download(remote, tmp_path)
    assert visible(tmp_path) == []


def test_an_unreachable_server_is_an_error_that_names_the_address(tmp_path, server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}/a.bin"
    remote = dataclasses.replace(server.put("a.bin", CONTENT), url=nobody)
    with pytest.raises(DownloadError, match=rf"{nobody}: .*refused"):
        download(remote, tmp_path)
    assert visible(tmp_path) == []


def test_too_little_disk_is_noticed_before_the_download(server, tmp_path, monkeypatch):
    remote = server.put("a.bin", CONTENT)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 1000, 1000))
    with pytest.raises(OSError, match=r"downloading a\.bin needs 2 MB in .*, where 0 MB are free"):
        download(remote, tmp_path)
    assert visible(tmp_path) == []
