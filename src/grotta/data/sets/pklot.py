"""PKLot: parking spaces, empty or occupied, seen by three cameras in sun, shade and clouds."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from grotta.data.dataset import DomainDataset
from grotta.data.errors import not_found
from grotta.data.fetch import fetch_by_hand
from grotta.data.folders import FolderSet, folder_entry
from grotta.data.options import Options
from grotta.data.recording import Recording, open_recording, read_folder

CAMERAS = ("pucpr", "ufpr04", "ufpr05")
WEATHER = ("cloudy", "shaded", "sunny")
PKLOT = FolderSet(
    name="pklot",
    places=("pklot", "PKLot"),
    domains=tuple(f"{camera}-{weather}" for camera in CAMERAS for weather in WEATHER),
)
BY_HAND = (
    "PKLot (CC BY 4.0) has to be downloaded by hand. 1. Download it from "
    "https://web.inf.ufpr.br/vri/databases/parking-lot-database 2. Cut out its parking spaces so that "
    "{root}/pklot/<camera>-<weather>/<empty or occupied>/<date>_<time>_<space>.jpg is there, as in "
    "pklot/ufpr04-sunny/empty/2012-12-12_13_05_08_000.jpg"
)


def open_recorded(options: Options) -> DomainDataset:
    """The three cameras, each in the order of time; its conditions are the weather, as in ``pucpr:cloudy+shaded``."""
    folder = PKLOT.find(options.roots)
    if folder is None:
        raise not_found(PKLOT.name, options.roots, " or ".join(PKLOT.places), PKLOT.name)
    return open_recording(PKLOT.name, partial(_by_camera, folder), options)


def _by_camera(folder: Path) -> Recording:
    recording = read_folder(str(folder), by_time=False)
    frames = [
        replace(frame, stream=camera, condition=weather)
        for frame in recording.frames
        for camera, _, weather in [frame.stream.rpartition("-")]
        if frame.stream in PKLOT.domains
    ]
    return replace(recording, frames=tuple(sorted(frames, key=lambda frame: Path(frame.path).name)))


ENTRY = replace(
    folder_entry(
        PKLOT,
        title="PKLot, 3 cameras in 3 kinds of weather, 2 classes, and in recorded order",
        get=partial(fetch_by_hand, BY_HAND),
        size="says what to do by hand",
    ),
    record=open_recorded,
    domains=(),
)
