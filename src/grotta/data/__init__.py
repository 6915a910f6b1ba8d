"""Data sets with several domains, the fifteen corruptions, and downloads that check what they got.

>>> import grotta.data
>>> data = grotta.data.load("fashion-c")
>>> data.domains[:2], data.image_shape, data.num_classes
(('motion_blur', 'snow'), (3, 32, 32), 10)
"""

from grotta.data.corruptions import CORRUPTIONS, corrupt
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
    "list_datasets",
    "load",
    "load_clean",
]
