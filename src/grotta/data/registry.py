"""Every data set by name: the only place that knows them all."""

from collections.abc import Callable
from functools import partial

from grotta._check import check_string
from grotta.data.dataset import DomainDataset
from grotta.data.entry import Entry, Holding
from grotta.data.folders import open_any_folder
from grotta.data.options import Options
from grotta.data.recording import Recording, open_recording, read_csv, read_folder
from grotta.data.sets import cifar, domainnet, fashion, imagenet, imagenet_c, officehome, pacs, pklot
from grotta.data.video import open_video

CLEAN = {clean.name: clean for clean in (fashion.FASHION, cifar.CIFAR10, cifar.CIFAR100)}
ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        fashion.FASHION_C,
        cifar.CIFAR10_C,
        cifar.CIFAR100_C,
        imagenet_c.ENTRY,
        pacs.ENTRY,
        officehome.ENTRY,
        domainnet.ENTRY,
        pklot.ENTRY,
        fashion.CLEAN,
        cifar.CLEAN10,
        cifar.CLEAN100,
        imagenet.ENTRY,
    )
}


def _recorded(read: Callable[[str], Recording], name: str, path: str, options: Options) -> DomainDataset:
    return open_recording(name, partial(read, path), options)


# Your own pictures: the prefix of the path -> how they are opened in recorded order.
_OWN: dict[str, Callable[[str, str, Options], DomainDataset]] = {
    "folder:": partial(_recorded, partial(read_folder, by_time=False)),
    "times:": partial(_recorded, partial(read_folder, by_time=True)),
    "csv:": partial(_recorded, read_csv),
    "video:": open_video,
}


def find_entry(name: str, argument: str = "name") -> Entry:
    """The data set of that name, or your own pictures; a ``ValueError`` that lists the names if there is none.

    ``folder:PATH`` is any folder with ``PATH/<domain>/<class>/<picture>``. Recorded, it is in the order of the names of
    its files, ``times:PATH`` in the order of their times, ``csv:FILE`` in the order of the rows of a CSV file, and
    ``video:FILE`` has the frames of a video.

    >>> find_entry("pacs").title
    'PACS, 4 domains, 7 classes'
    """
    check_string(argument, name)
    if name in ENTRIES:
        return ENTRIES[name]
    kind = next((kind for kind in _OWN if name.startswith(kind)), None)
    if kind is None:
        known = ", ".join(ENTRIES)
        own = "folder:PATH, times:PATH, csv:FILE, video:FILE"
        raise ValueError(f"{argument} must be {own} or one of {known}; got {name!r}")
    path = name.removeprefix(kind)
    if not path:
        raise ValueError(f"{argument} must have a path after {kind}, as in {kind}./pictures")
    return Entry(
        name=name,
        title=f"the pictures in {path}",
        open=partial(open_any_folder, path) if kind == "folder:" else None,
        record=partial(_OWN[kind], name, path),
        find=lambda roots: Holding(),
        looks_for=path,
        get=None,
        size="nothing to get: it is your own",
        from_files=True,
    )


def is_from_files(name: str) -> bool:
    """Whether a data set is decoded from picture files, in the size that is asked for; unknown ones are folders.

    >>> is_from_files("pacs"), is_from_files("fashion-c")
    (True, False)
    """
    return name not in ENTRIES or ENTRIES[name].from_files
