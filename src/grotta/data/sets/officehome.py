"""OfficeHome: objects from offices and homes, in four styles."""

from functools import partial
from pathlib import Path

from grotta.data.archives import unpack
from grotta.data.errors import DamagedDataError
from grotta.data.fetch import fetch_by_hand
from grotta.data.folders import FolderSet, folder_entry, match_domains, subfolders

OFFICEHOME = FolderSet(
    name="officehome",
    places=("OfficeHomeDataset_10072016", "OfficeHome", "officehome", "office_home"),
    domains=("Art", "Clipart", "Product", "Real World"),
)
ARCHIVE = "OfficeHomeDataset_10072016.zip"
BY_HAND = (
    "OfficeHome has to be downloaded by hand. 1. Download OfficeHomeDataset_10072016.zip from "
    "https://www.hemanthdv.org/officeHomeDataset.html 2. Put it into {root} "
    "3. Run `grotta data get officehome` again, which unpacks it."
)


def fetch_placed_archive(filename: str, published: FolderSet, steps: str, root: Path) -> None:
    """Unpack an archive that was downloaded by hand into ``root``, or explain how to do that."""
    archive = root / filename

    def check(staging: Path) -> None:
        found = [match_domains(staging / place, published.domains) for place in published.places]
        if not any(len(domains) == len(published.domains) for domains in found):
            raise DamagedDataError(
                f"{archive} is not {published.name}: expected {' or '.join(published.places)} with the folders "
                f"{', '.join(published.domains)}; found {', '.join(subfolders(staging)) or 'no folder'}"
            )

    if not archive.is_file():
        fetch_by_hand(steps, root)
    unpack(archive, root, check)


ENTRY = folder_entry(
    OFFICEHOME,
    title="OfficeHome, 4 domains, 65 classes",
    get=partial(fetch_placed_archive, ARCHIVE, OFFICEHOME, BY_HAND),
    size="says what to do by hand",
)
