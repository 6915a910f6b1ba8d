"""Videos: every frame once, in order, with its time; from a file, and from a camera while it runs."""

import contextlib
import json
import os
import socket
import sys
import threading

import numpy as np
import pytest
from PIL import Image

import grotta.data
from grotta.cli import main
from grotta.data import DamagedDataError, DataNotFoundError
from grotta.data.camera import record
from grotta.data.recording import natural
from grotta.data.video import frames

av = pytest.importorskip("av")
COUNT, RATE = 20, 5


def encode(path):
    """Frames that become brighter one after the other, four seconds of them."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(COUNT):
            pixels = np.full((48, 64, 3), 10 + 11 * number, np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


@pytest.fixture
def video(tmp_path):
    return encode(tmp_path / "gate.mp4")


@pytest.fixture
def camera(tmp_path):
    """The address of a camera on this machine that sends MPEG-TS for as long as somebody listens."""
    content = encode(tmp_path / "gate.ts").read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send():
            with contextlib.suppress(OSError):  # the listener went away, or nobody came
                connection, _ = server.accept()
                with connection:
                    while True:
                        connection.sendall(content)

        sender = threading.Thread(target=send)
        sender.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    sender.join()


def grotta_run(*words):
    with pytest.raises(SystemExit) as stop:
        main(list(map(str, words)))
    return stop.value.code


def brightness_of(folder):
    return [
        np.asarray(Image.open(path)).mean() for path in sorted(folder.iterdir(), key=lambda path: natural(path.name))
    ]


def assert_brightening(brightness):
    assert len(brightness) == COUNT
    assert np.abs(np.array(brightness) - (10 + 11 * np.arange(COUNT))).max() < 6  # the codec loses a little


def test_every_frame_of_a_file_comes_once_in_order_with_its_time(video):
    found = list(frames(video, image_size=16))
    assert_brightening([frame.mean() for _, frame in found])
    assert [seconds for seconds, _ in found] == pytest.approx([number / RATE for number in range(COUNT)])
    assert found[0][1].shape == (16, 16, 3)


def test_a_video_is_a_recording_without_labels(video):
    data = grotta.data.load(f"video:{video}", recorded=True, image_size=16)
    assert (data.domains, data.closed, data.class_names) == (("gate",), False, ())
    assert_brightening(data.images("gate", range(COUNT)).float().mean(dim=(1, 2, 3)).tolist())
    assert data.labels("gate").tolist() == [-1] * COUNT
    assert data.moments["gate"].times.astype(int)[[0, -1]].tolist() == [0, 4]


def test_frames_come_from_an_address_as_a_camera_sends_them(video, server):
    server.put("gate.mp4", video.read_bytes())
    assert_brightening([frame.mean() for _, frame in frames(f"{server.address}/gate.mp4", image_size=16)])


def test_a_running_camera_is_filmed_until_there_are_enough_pictures(camera, tmp_path):
    assert record(camera, tmp_path / "filmed" / "gate", images=COUNT) == COUNT
    assert_brightening(brightness_of(tmp_path / "filmed" / "gate"))
    data = grotta.data.load(f"folder:{tmp_path / 'filmed'}", recorded=True, image_size=16)
    times = data.moments["gate"].times
    assert (times[-1] - times[0]).astype(int) == pytest.approx(COUNT / RATE, abs=1)
    assert (np.diff(times).astype(int) >= 0).all()


def test_a_pipe_is_filmed_to_its_end(tmp_path):
    content, pipe = encode(tmp_path / "gate.ts").read_bytes(), tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(content))
    writer.start()
    assert grotta_run("data", "record", pipe, "--out", tmp_path / "filmed") == 0
    writer.join()
    assert_brightening(brightness_of(tmp_path / "filmed"))


def test_a_cell_on_a_running_camera_films_it_first(camera, tmp_path, capsys):
    words = [
        "--method",
        "bn",
        "--stream",
        "recorded",
        "--model",
        "fashion_resnet8",
        "--image-size",
        32,
        "--out",
        tmp_path,
    ]
    assert grotta_run("run", "--dataset", f"video:{camera}", "--images", 12, "--json", *words) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["images"], found["spec"]["domains"], found["error"]) == (12, ["127.0.0.1"], None)
    [line] = [line for line in shown.err.splitlines() if line.startswith("to use these pictures again: ")]
    assert grotta_run("run", *line.split()[5:], "--images", 12, "--json", *words) == 0
    assert json.loads(capsys.readouterr().out) == found  # the same cell, which is not run again


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--stream", "recorded"], "images must be given for a running camera"), ([], "stream must be recorded")],
)
def test_a_running_camera_needs_a_recorded_stream_and_a_number_of_images(words, message, tmp_path, capsys):
    words = ["--dataset", "video:tcp://127.0.0.1:9", "--model", "fashion_resnet8", "--out", tmp_path, *words]
    assert grotta_run("bench", *words) == 2
    assert message in capsys.readouterr().err


def test_a_camera_is_not_filmed_into_a_folder_that_has_something_in_it(video, tmp_path, capsys):
    assert grotta_run("data", "record", video, "--out", tmp_path) == 2
    assert "out must be a new or empty folder" in capsys.readouterr().err


def test_what_is_no_video_is_named(tmp_path, video):
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(DamagedDataError, match=r"text\.mp4 cannot be read as a video"):
        list(frames(tmp_path / "text.mp4"))
    with pytest.raises(DataNotFoundError, match="there is no such video"):
        grotta.data.load(f"video:{tmp_path / 'none.mp4'}", recorded=True)


def test_without_the_extra_the_error_says_what_to_install(video, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(DataNotFoundError, match=r"pip install 'grotta\[video\]'"):
        list(frames(video))
