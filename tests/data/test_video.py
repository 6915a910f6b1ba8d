"""Videos: every frame once, in order, with its time; from a file, and from an address while it plays."""

import sys

import numpy as np
import pytest

import grotta.data
from grotta.data import DamagedDataError, DataNotFoundError
from grotta.data.video import frames

av = pytest.importorskip("av")
COUNT, RATE = 20, 5


@pytest.fixture
def video(tmp_path):
    """Frames that become brighter one after the other, four seconds of them."""
    path = tmp_path / "gate.mp4"
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
