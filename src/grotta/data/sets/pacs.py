"""PACS: photographs, art, cartoons and sketches of seven classes."""

from functools import partial

from grotta.data.fetch import fetch_by_hand
from grotta.data.folders import FolderSet, folder_entry

PACS = FolderSet(
    name="pacs",
    places=("pacs", "PACS", "PACS/kfold", "pacs/kfold", "kfold"),
    domains=("art_painting", "cartoon", "photo", "sketch"),
)
BY_HAND = (
    "PACS has to be downloaded by hand. 1. Download it from http://www.eecs.qmul.ac.uk/~dl307/project_iccv2017 "
    "2. Unpack it so that {root}/PACS/kfold/<domain>/<class>/*.jpg is there, "
    "with the domains art_painting, cartoon, photo and sketch."
)
ENTRY = folder_entry(
    PACS, title="PACS, 4 domains, 7 classes", get=partial(fetch_by_hand, BY_HAND), size="says what to do by hand"
)
