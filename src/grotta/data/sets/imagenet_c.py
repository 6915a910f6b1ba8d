"""ImageNet-C in its published layout, or made from the clean ImageNet validation pictures that are available."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from grotta.data.corruptions import BENCHMARK_DOMAINS, list_corruptions
from grotta.data.dataset import DomainDataset, same_labels
from grotta.data.decode import short_side
from grotta.data.download import Remote
from grotta.data.entry import Entry, Holding
from grotta.data.errors import DataNotFoundError
from grotta.data.fetch import fetch_archives
from grotta.data.folders import contents, list_classes
from grotta.data.options import Options
from grotta.data.pictures import Listing, Pictures, picture_dataset
from grotta.data.regenerate import Regenerated
from grotta.data.sets import imagenet
from grotta.data.sets.imagenet import class_folders, find_pictures, list_clean, require_validation

SEVERITIES = (1, 2, 3, 4, 5)
PLACES = ("ImageNet-C", "imagenet-c")

_LAYOUT = "<corruption>/<severity>/<class>/*.JPEG"
# The md5 sums are those of the Zenodo record.
_ZENODO = "https://zenodo.org/records"
ARCHIVES = (
    Remote(f"{_ZENODO}/2235448/files/blur.tar", "md5", "2d8e81fdd8e07fef67b9334fa635e45c", 7_000_000_000),
    Remote(f"{_ZENODO}/2235448/files/digital.tar", "md5", "89157860d7b10d5797849337ca2e5c03", 7_000_000_000),
    Remote(f"{_ZENODO}/2235448/files/noise.tar", "md5", "e80562d7f6c3f8834afb1ecf27252745", 21_000_000_000),
    Remote(f"{_ZENODO}/2235448/files/weather.tar", "md5", "33ffea4db4d93fe4a428c40a6ce0c25d", 12_000_000_000),
)


def find_corrupted(
    roots: Sequence[Path], domains: Sequence[str] = BENCHMARK_DOMAINS, severities: Sequence[int] = SEVERITIES
) -> Path | None:
    """The first folder with each of these corruptions at one of the severities.

    If there is none, the first with anything published in it: what it lacks is named in an error, not replaced
    by regenerated pictures.
    """
    begun = None
    for root in roots:
        for folder in _begun_folders(root):
            if set(domains) <= set(published_corruptions(folder, severities)):
                return folder
            begun = begun or folder
    return begun


def published_corruptions(folder: Path, severities: Sequence[int] = SEVERITIES) -> list[str]:
    """The corruptions with a ``<corruption>/<severity>/`` in a folder, for any of the severities."""
    return [
        name for name in BENCHMARK_DOMAINS if any((folder / name / str(severity)).is_dir() for severity in severities)
    ]


def open_imagenet_c(options: Options) -> DomainDataset:
    """The published ImageNet-C if it is available, otherwise corruptions of the clean validation pictures."""
    domains = options.choose(BENCHMARK_DOMAINS, list_corruptions)
    published = set(domains) <= set(BENCHMARK_DOMAINS)  # no published folder holds others
    folder = find_corrupted(options.roots, domains, [options.severity]) if published else None
    if folder is None:
        return _regenerated(domains, options)
    here = published_corruptions(folder, [options.severity])
    missing = [name for name in domains if name not in here]
    if missing:
        raise _incomplete(folder, missing[0], options.severity)
    classes = class_folders(folder / domains[0] / str(options.severity))
    return picture_dataset(
        options,
        cropped=True,
        name=ENTRY.name,
        domains=domains,
        class_names=classes,
        provenance="published",
        list_domain=partial(_list_corrupted, folder, options.severity, classes),
    )


def _regenerated(domains: tuple[str, ...], options: Options) -> DomainDataset:
    folder = require_validation(options.roots)
    classes, listing = list_clean(folder)
    size = options.image_size
    pictures = Pictures(listing, short_side(size), size)
    regenerated = Regenerated(
        name=imagenet.ENTRY.name,
        digest=pictures.digest(),
        shape=(len(listing.names), size, size, 3),
        open_clean=partial(_open_clean, folder, size),
        scale="imagenet",
        severity=options.severity,
        seed=options.seed,
        source=pictures.identity,
    )
    return DomainDataset(
        name=ENTRY.name,
        domains=domains,
        class_names=classes,
        image_shape=(3, size, size),
        provenance="regenerated",
        open_images=regenerated,
        open_labels=partial(same_labels, listing.labels),
        identify=regenerated.identity,
    )


def _begun_folders(root: Path) -> list[Path]:
    """The folders of a root that hold published pictures, or should: named ImageNet-C and not empty."""
    begun = [root / place for place in PLACES if contents(root / place)]
    # a root may have any name and hold other data sets
    named = root.name in PLACES and any((root / name).is_dir() for name in BENCHMARK_DOMAINS)
    return [*begun, root] if named or published_corruptions(root) else begun


def _incomplete(folder: Path, corruption: str, severity: int) -> DataNotFoundError:
    here = {each: names for each in SEVERITIES if (names := published_corruptions(folder, [each]))}
    if severity in here:
        found = ", ".join(f"{name}/{severity}" for name in here[severity])
        return DataNotFoundError(f"{folder} has no {corruption}/{severity}; it has {found}")
    if here:
        return DataNotFoundError(f"{folder} has no severity {severity}; it has {', '.join(map(str, here))}")
    found = ", ".join("/".join([name, *contents(folder / name)[:1]]) for name in contents(folder)[:5])
    return DataNotFoundError(f"{folder} has no {corruption}/{severity}: expected {_LAYOUT}, found {found}")


def _open_clean(folder: Path, size: int) -> Pictures:
    return Pictures(list_clean(folder)[1], short_side(size), size)


def _list_corrupted(folder: Path, severity: int, classes: tuple[str, ...], corruption: str) -> Listing:
    return list_classes(folder / corruption / str(severity), classes)


def _find(roots: Sequence[Path]) -> Holding:
    folder, clean = find_corrupted(roots), find_pictures("val", roots)
    if folder is not None:
        usable = published_corruptions(folder)
        missing = tuple(f"{name} in {folder}" for name in BENCHMARK_DOMAINS if name not in usable)
        return Holding((("published", folder),) if usable else (), missing)
    return Holding() if clean is None else Holding((("regenerated from imagenet", clean),))


ENTRY = Entry(
    name="imagenet-c",
    title="ImageNet-C, fifteen corruptions, 1000 classes",
    open=open_imagenet_c,
    train=imagenet.open_training,
    find=_find,
    looks_for=f"ImageNet-C/{_LAYOUT}, or clean pictures in {' or '.join(imagenet.PLACES['val'])}",
    get=partial(fetch_archives, ARCHIVES, "ImageNet-C"),
    size="47 GB; without it, regenerated from imagenet",
    from_files=True,
)
