"""Data sets with several domains, corruptions of pictures, and downloads that are verified.

>>> import grotta.data
>>> data = grotta.data.load("fashion-c")
>>> data.domains[:2], data.image_shape, data.num_classes
(('motion_blur', 'snow'), (3, 32, 32), 10)
"""

from grotta.data import stand_ins as _stand_ins  # noqa: F401  # registers its domains
from grotta.data.corruptions import CORRUPTIONS, corrupt, corruption, list_corruptions
from grotta.data.dataset import DomainDataset
from grotta.data.errors import DamagedDataError, DataNotFoundError, DownloadError
from grotta.data.loading import list_datasets, load, load_clean

__all__ = [
    "CORRUPTIONS",
    "DamagedDataError",
    "DataNotFoundError",
    "DomainDataset",
    "DownloadError",
    "corrupt",
    "corruption",
    "list_corruptions",
    "list_datasets",
    "load",
    "load_clean",
]
