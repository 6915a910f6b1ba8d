"""Filming a running camera before cells are run on it: they need the same pictures, whenever and wherever they run."""

import datetime
from pathlib import Path

import typer


def filmed(dataset: str, stream: str, images: int, out: Path) -> str:
    """The data set, or, if it is a running camera (``video:ADDRESS``), what it showed, as a folder in ``out``."""
    from grotta.data.video import is_running

    kind, _, source = dataset.partition(":")
    if kind != "video" or not is_running(source):
        return dataset
    if stream != "recorded":
        raise ValueError(f"stream must be recorded for a running camera, got {stream!r}")
    if not images:
        raise ValueError(
            f"images must be given for a running camera, got none: --images 1000 films that many frames of {source}"
        )
    from grotta.data.camera import camera_name

    folder = out / "recordings" / f"{datetime.datetime.now():%Y-%m-%d_%H_%M_%S}"
    film(source, folder / camera_name(source), images)
    typer.echo(f"to use these pictures again: --dataset folder:{folder}", err=True)
    return f"folder:{folder}"


def film(source: str, folder: Path, images: int) -> int:
    """Film into ``folder`` with progress on stderr, until there are enough images, the source ends or Ctrl-C."""
    from grotta.data.camera import record
    from grotta.data.errors import DamagedDataError
    from grotta.data.progress import progress

    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"out must be a new or empty folder, got {folder}")
    done = 0

    def count(number: int) -> None:
        nonlocal done
        done += number
        advance(number)

    with progress(f"Filming {folder.name}", images or None, unit="pictures") as advance:
        try:
            record(source, folder, images=images, advance=count)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
        except DamagedDataError as error:  # what came before the camera went away is there
            if not done:
                raise
            typer.echo(f"grotta: the camera stopped sending: {error}", err=True)
    if not done:
        raise DamagedDataError(f"{source} sent no pictures")
    typer.echo(f"{folder}: {done} pictures", err=True)
    return done
