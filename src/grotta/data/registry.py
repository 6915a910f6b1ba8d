"""Every data set by name: the one place that knows which there are."""

from functools import partial

from grotta._check import check_string
from grotta.data.entry import Entry, Holding
from grotta.data.folders import open_any_folder
from grotta.data.sets import cifar, domainnet, fashion, imagenet, imagenet_c, officehome, pacs

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
        fashion.CLEAN,
        cifar.CLEAN10,
        cifar.CLEAN100,
        imagenet.ENTRY,
    )
}
_FOLDER = "folder:"


def find_entry(name: str, argument: str = "name") -> Entry:
    """The data set of that name, or that of any ``folder:PATH``; a ``ValueError`` that lists the names if none is.

    >>> find_entry("pacs").title
    'PACS, 4 domains, 7 classes'
    """
    check_string(argument, name)
    if name in ENTRIES:
        return ENTRIES[name]
    path = name.removeprefix(_FOLDER)
    if path == name:
        known = ", ".join(ENTRIES)
        raise ValueError(f"{argument} must be folder:PATH or one of {known}; got {name!r}")
    if not path:
        raise ValueError(f"{argument} must have a path after folder:, as in folder:./pictures")
    return Entry(
        name=name,
        title=f"the pictures in {path}",
        open=partial(open_any_folder, path),
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
