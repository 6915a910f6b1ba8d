"""Domains beside the fifteen corruptions: the clean pictures themselves, and garbage in their place.

They are registered like any corruption, so every data set of corruptions has them: ``--domains fog,noise,blank,clean``.
"""

from __future__ import annotations

import numpy as np

from grotta.data.arrays import Images
from grotta.data.corruptions import corruption

GARBAGE = ("blank", "noise")  # nothing of the picture is left: their errors mean nothing
GREY = 127
_ANY = (0,) * 5  # the severity does not matter


@corruption("clean", cifar=_ANY, imagenet=_ANY)
def clean(images: Images, _: int) -> Images:
    """The pictures as they are: severity 0."""
    return images.copy()


@corruption("blank", cifar=_ANY, imagenet=_ANY)
def blank(images: Images, _: int) -> Images:
    """The same grey everywhere, as from a covered lens."""
    return np.full_like(images, GREY)


@corruption("noise", cifar=_ANY, imagenet=_ANY)
def noise(images: Images, generators: list[np.random.Generator], _: int) -> Images:
    """Every value drawn at random, as from a broken cable."""
    return np.stack([generator.integers(256, size=images.shape[1:], dtype=np.uint8) for generator in generators])
