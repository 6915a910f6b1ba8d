"""The fifteen common corruptions of CIFAR-C and ImageNet-C, on whole batches and from a seed."""

from grotta.data.corruptions.apply import corrupt
from grotta.data.corruptions.table import CONSTANTS, CORRUPTIONS, SCALES, Scale

__all__ = ["CONSTANTS", "CORRUPTIONS", "SCALES", "Scale", "corrupt"]
