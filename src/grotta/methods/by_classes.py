"""Settings that were published for 10, 100 and 1000 classes."""

from typing import TypeVar

Setting = TypeVar("Setting")


def by_classes(num_classes: int, of_10: Setting, of_100: Setting, of_1000: Setting) -> Setting:
    """The setting for the number of classes nearest to ``num_classes``, in orders of magnitude.

    >>> [by_classes(classes, "cifar10", "cifar100", "imagenet") for classes in (2, 31, 32, 316, 317, 21000)]
    ['cifar10', 'cifar10', 'cifar100', 'cifar100', 'imagenet', 'imagenet']
    """
    if num_classes**2 < 1000:
        return of_10
    return of_100 if num_classes**2 < 100_000 else of_1000
