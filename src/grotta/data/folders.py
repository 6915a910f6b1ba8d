"""Folders of pictures: ``<domain>/<class>/<picture>``, as PACS, OfficeHome, DomainNet and your own data have them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from grotta.data.dataset import DomainDataset
from grotta.data.decode import SUFFIXES
from grotta.data.entry import Entry, Holding, unless_here
from grotta.data.errors import DataNotFoundError, not_found
from grotta.data.file_lists import list_files, read_class_names, read_listing
from grotta.data.options import Options
from grotta.data.pictures import Listing, picture_dataset

_SEVERITIES = {"1", "2", "3", "4", "5"}
CORRUPTED = "grotta-corrupt.json"  # with which settings a folder was made by `grotta data corrupt`


@dataclass(frozen=True)
class FolderSet:
    """A published data set of folders."""

    name: str  # what it is loaded by
    places: tuple[str, ...]  # the folders inside a data root it may be in; the root itself is tried last
    domains: tuple[str, ...]  # the published names, in alphabetical order

    def find(self, roots: Sequence[Path]) -> Path | None:
        """The first place that has one of the domains, or the first root that has all of them itself, or None."""
        for root in roots:
            for place in self.places:
                if match_domains(root / place, self.domains):
                    return root / place
            if len(match_domains(root, self.domains)) == len(self.domains):
                return root
        return None


def open_folder_set(published: FolderSet, options: Options) -> DomainDataset:
    """A published data set, in whichever root has it."""
    folder = published.find(options.roots)
    if folder is None:
        looked_for = f"{' or '.join(published.places)} with the folders {', '.join(published.domains)}"
        raise not_found(published.name, options.roots, looked_for, published.name)
    found = match_domains(folder, published.domains)
    domains = options.choose(published.domains)
    missing = [domain for domain in domains if domain not in found]
    if missing:
        raise DataNotFoundError(
            f"{published.name}: {folder} has no folder {missing[0]!r}; it has {', '.join(subfolders(folder))}"
        )
    return _dataset(published.name, folder, found, domains, options)


def folder_entry(
    published: FolderSet, *, title: str, get: Callable[[Path], None], size: str, by_hand: bool = True
) -> Entry:
    """The entry of a published data set of folders; one fetched ``by_hand`` is not fetched twice."""
    find = partial(_find, published)
    return Entry(
        name=published.name,
        title=title,
        open=partial(open_folder_set, published),
        find=find,
        looks_for=" or ".join(published.places),
        get=partial(unless_here, find, get) if by_hand else get,
        size=size,
        from_files=True,
        domains=published.domains,
    )


def _find(published: FolderSet, roots: Sequence[Path]) -> Holding:
    folder = published.find(roots)
    if folder is None:
        return Holding()
    found = match_domains(folder, published.domains)
    missing = tuple(f"{domain} in {folder}" for domain in published.domains if domain not in found)
    return Holding(tuple((domain, folder / name) for domain, name in found.items()), missing)


def open_any_folder(path: str, options: Options) -> DomainDataset:
    """Your own ``path/<domain>/<class>/<picture>``, or ``path/<domain>/<severity>/<class>/<picture>`` as ImageNet-C."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise DataNotFoundError(f"folder:{path}: there is no such folder")
    found = {name: name for name in subfolders(folder)}
    as_imagenet_c = _has_severities(folder, list(found))
    if as_imagenet_c:
        for name in options.choose(list(found)):
            if not (folder / name / str(options.severity)).is_dir():
                here = ", ".join(subfolders(folder / name))
                raise DataNotFoundError(f"folder:{path}: {name} has no severity {options.severity}; it has {here}")
        found = {name: f"{name}/{options.severity}" for name in found}
    if not any(subfolders(folder / place) for place in found.values()):
        layout = "<domain>/<severity>/<class>" if as_imagenet_c else "<domain>/<class>"
        raise DataNotFoundError(f"folder:{path}: expected {path}/{layout}/<picture>, found no class folders")
    domains = options.choose(list(found))
    return _dataset(f"folder:{path}", folder, found, domains, options, cropped=as_imagenet_c)


def _has_severities(folder: Path, domains: Sequence[str]) -> bool:
    """Whether this is ``<domain>/<severity>/<class>``, not ``<domain>/<class>`` with classes named like severities."""
    severities = {name: subfolders(folder / name) for name in domains}
    if not any(severities.values()) or not all(set(here) <= _SEVERITIES for here in severities.values()):
        return False
    deep = any(subfolders(folder / name / severity) for name, here in severities.items() for severity in here)
    return deep or (folder / CORRUPTED).is_file()


def match_domains(folder: Path, domains: Sequence[str]) -> dict[str, str]:
    """Published name -> the folder it is in here; ``Real World`` may be called ``RealWorld`` or ``real_world``."""
    here = {_letters(name): name for name in subfolders(folder)}
    return {domain: here[_letters(domain)] for domain in domains if _letters(domain) in here}


def _dataset(
    name: str,
    folder: Path,
    found: dict[str, str],
    domains: tuple[str, ...],
    options: Options,
    cropped: bool = False,
) -> DomainDataset:
    listed = [domain for domain in found if list_files(folder, domain)]
    if set(domains) <= set(listed):
        classes = read_class_names(folder, listed)
        list_domain = partial(read_listing, folder)
    else:
        classes = tuple(sorted({item for place in found.values() for item in subfolders(folder / place)}))
        list_domain = partial(_list_domain, folder, found, classes)
    return picture_dataset(
        options,
        cropped=cropped,
        name=name,
        domains=domains,
        class_names=classes,
        provenance="original",
        list_domain=list_domain,
    )


def list_classes(folder: Path, classes: Sequence[str]) -> Listing:
    """The pictures in the class folders of ``folder``, class after class."""
    names, labels = [], []
    for label, name in enumerate(classes):
        files = picture_names(folder / name)
        names += [f"{name}/{file}" for file in files]
        labels += [label] * len(files)
    if not names:
        raise DataNotFoundError(f"{folder} has no pictures in class folders")
    return Listing(folder, tuple(names), np.array(labels, dtype=np.int64))


def _list_domain(folder: Path, found: dict[str, str], classes: tuple[str, ...], domain: str) -> Listing:
    return list_classes(folder / found[domain], classes)


def picture_names(folder: Path) -> list[str]:
    """The names of the pictures in a folder, sorted; none if there is no such folder."""
    return [name for name in contents(folder) if Path(name).suffix.lower() in SUFFIXES]


def contents(folder: Path) -> list[str]:
    """The names of all that is in a folder, sorted; none if there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted(item.name for item in folder.iterdir() if not item.name.startswith("."))


def subfolders(folder: Path) -> list[str]:
    """The names of the folders in a folder, sorted; none if there is no such folder."""
    return [name for name in contents(folder) if (folder / name).is_dir()]


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
