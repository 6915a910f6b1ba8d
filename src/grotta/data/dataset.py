"""A data set as test-time adaptation sees it: several domains, one after the other, with the same classes."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from grotta.data.arrays import Images, Labels

if TYPE_CHECKING:
    from torch import Tensor

    from grotta.data.pictures import Pictures

    Indices = Sequence[int] | npt.NDArray[np.integer[Any]] | Tensor

_PIECE = 1024
Provenance = Literal["published", "regenerated", "original"]
Times = npt.NDArray[np.datetime64]


@dataclass(frozen=True)
class Moments:
    """When each picture of a domain was taken (not-a-time if unknown), and in which condition, such as the weather."""

    times: Times
    conditions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DomainDataset:
    """An ordered set of domains that share their classes; small and picklable, pictures are read when asked for.

    The pictures of a domain are an array on disk, memory-mapped when first used, or files, decoded when indexed.

    Attributes:
        name: the name it is loaded by.
        domains: the names of the domains, in stream order.
        class_names: the names of the classes; a label is an index into them.
        image_shape: (3, H, W), as given to the network.
        provenance: ``published`` files, corruptions ``regenerated`` by grotta, or ``original`` pictures.
        open_images: domain -> uint8 (n, H, W, 3).
        open_labels: domain -> int64 (n,).
        identify: domain -> a digest of its pictures, where it can be had without reading them all.
        default_model: the bundled network for it, or ``""``.
        moments: by domain, of a recording.
        closed: whether ``class_names`` are all classes; a recording without labels knows none, and one whose labels are
            numbers only those that occur.
    """

    name: str
    domains: tuple[str, ...]
    class_names: tuple[str, ...]
    image_shape: tuple[int, int, int]
    provenance: Provenance
    open_images: "Callable[[str], Images | Pictures]"
    open_labels: Callable[[str], Labels]
    identify: Callable[[str], str] | None = None
    default_model: str = ""
    moments: Mapping[str, Moments] = field(default_factory=dict, repr=False, compare=False)
    closed: bool = True
    _opened: "dict[str, Images | Pictures]" = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    def labels(self, domain: str) -> Labels:
        """The labels of a domain: int64 (n,); -1 where a recording has none."""
        self._check_domain(domain)
        return self.open_labels(domain)

    def images(self, domain: str, indices: "Indices") -> "Tensor":
        """The pictures of a domain at ``indices``, in that order: uint8 (len(indices), 3, H, W)."""
        self._check_domain(domain)
        if domain not in self._opened:
            self._opened[domain] = self.open_images(domain)
        pictures = self._opened[domain]
        return to_nchw(pictures[self._positions(domain, indices, len(pictures))])

    def identity(self, domain: str) -> str:
        """A digest of the pictures of a domain, wherever they are stored; it changes with the pictures."""
        self._check_domain(domain)
        if self.identify is not None:
            return self.identify(domain)
        digest = hashlib.blake2b(digest_size=16)
        for start in range(0, count := len(self.labels(domain)), _PIECE):
            digest.update(self.images(domain, range(start, min(start + _PIECE, count))).numpy().data)
        return digest.hexdigest()

    def fingerprint(self) -> str:
        """A digest of the pictures of all domains, in their order."""
        identities = "\n".join(f"{domain} {self.identity(domain)}" for domain in self.domains)
        return hashlib.blake2b(identities.encode(), digest_size=8).hexdigest()

    def prepare(self) -> None:
        """Make what would otherwise be made when a domain is first used."""
        for domain in self.domains:
            self.images(domain, [])

    def _positions(self, domain: str, indices: "Indices", count: int) -> npt.NDArray[np.int64]:
        positions = np.asarray(indices)
        if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iu"):
            raise ValueError(f"indices must be integers (n,), got {positions.dtype} {positions.shape}")
        if positions.size and not (positions.min() >= 0 and positions.max() < count):
            wrong = positions[(positions < 0) | (positions >= count)][0]
            raise IndexError(f"indices must be in [0, {count}), the images of domain {domain!r}, got {wrong}")
        return positions.astype(np.int64)

    def _check_domain(self, domain: str) -> None:
        if domain not in self.domains:
            raise ValueError(f"domain must be one of {', '.join(self.domains)}, those of {self.name}; got {domain!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}


def same_labels(labels: Labels, domain: str) -> Labels:
    """The labels of a data set in which every domain shows the same pictures."""
    return labels.copy()


def to_nchw(images: Images) -> "Tensor":
    """Pictures (n, H, W, 3) as a contiguous tensor (n, 3, H, W).

    >>> to_nchw(np.zeros((2, 8, 9, 3), np.uint8)).shape
    torch.Size([2, 3, 8, 9])
    """
    import torch

    return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
