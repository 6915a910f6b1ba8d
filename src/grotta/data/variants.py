"""Variants of a data set's domains, by name: other severities, some of the classes, and domains that come back.

A domain is ``NAME[:CLASS+CLASS][@SEVERITY][#VISIT]``: ``fog@3`` is fog of severity 3, ``fog:Bag`` its bags alone,
``fog#2`` the second time that fog comes in a stream, with the same pictures.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from grotta.data.arrays import Images, Labels, cached_images
from grotta.data.dataset import DomainDataset
from grotta.data.options import Options
from grotta.data.roots import cache_dir

_FORM = re.compile(r"(?P<base>.+?)(?::(?P<classes>[^@#]+))?(?:@(?P<severity>[1-5]))?(?:#(?P<visit>[1-9][0-9]*))?")


@dataclass(frozen=True)
class Variant:
    """What the name of a domain says.

    >>> Variant.parse("fog:Bag+Coat@3#2")
    Variant(base='fog', classes=('Bag', 'Coat'), severity=3)
    """

    base: str
    classes: tuple[str, ...] = ()
    severity: int | None = None

    @classmethod
    def parse(cls, name: str) -> "Variant":
        """What a name says; which visit it is does not change the pictures."""
        found = _FORM.fullmatch(name)
        if found is None:
            return cls(name)
        classes, severity = found["classes"], found["severity"]
        return cls(found["base"], tuple(classes.split("+")) if classes else (), int(severity) if severity else None)


def has_variants(domains: Sequence[str] | None) -> bool:
    """Whether any of the names could name a variant."""
    return any(Variant.parse(name) != Variant(name) for name in domains or ())


def open_variants(
    opened: Callable[[Options], DomainDataset], options: Options, *, literal: Sequence[str], severities: bool
) -> DomainDataset:
    """The data set of ``options.domains``, any of which may be a variant.

    Args:
        opened: gives the data set for the usual options.
        options: whose domains are wanted.
        literal: names of domains that are taken literally.
        severities: whether the data set has severities to choose from.
    """
    names = options.domains or ()
    if len(set(names)) < len(names):
        raise ValueError(f"domains must differ: one that comes back is NAME#2, NAME#3; got {list(names)}")
    variants = {name: Variant(name) if name in literal else Variant.parse(name) for name in names}
    chosen = next((name for name, variant in variants.items() if variant.severity), "")
    if chosen and not severities:
        raise ValueError(f"domains must be without @SEVERITY: only corruptions have severities, got {chosen!r}")
    parts = {}
    for severity in dict.fromkeys(variant.severity or options.severity for variant in variants.values()):
        bases = [v.base for v in variants.values() if (v.severity or options.severity) == severity]
        wanted = replace(options, domains=tuple(dict.fromkeys(bases)), severity=severity, keep_decoded=True)
        parts[severity] = opened(wanted)
    reader = _Reader(variants, parts, options.severity)
    first = next(iter(parts.values()))
    for name, variant in variants.items():
        unknown = [label for label in variant.classes if label not in first.class_names]
        if unknown:
            raise ValueError(f"domains must have classes of {', '.join(first.class_names)}; got {name!r}")
    regenerated = next((part for part in parts.values() if part.provenance == "regenerated"), first)
    return replace(
        first,
        domains=names,
        provenance=regenerated.provenance,
        open_images=reader.images,
        open_labels=reader.labels,
        identify=reader.identity,
    )


@dataclass(frozen=True)
class _Reader:
    variants: Mapping[str, Variant]
    parts: Mapping[int, DomainDataset]
    usual: int

    def images(self, name: str) -> Images:
        """The pictures of a domain; a selection is kept in the cache, so that it is memory-mapped like the others."""
        variant, part = self._find(name)
        images = part.open_images(variant.base)
        assert isinstance(images, np.ndarray)  # it was opened to be kept decoded
        if not variant.classes:
            return images
        rows = self._rows(variant, part)

        def fill(target: Images) -> None:
            target[:] = images[rows]

        path = cache_dir() / "chosen" / f"{self.identity(name)}.npy"
        return cached_images(path, (len(rows), *images.shape[1:]), fill)

    def labels(self, name: str) -> Labels:
        variant, part = self._find(name)
        labels = part.labels(variant.base)
        return labels[self._rows(variant, part)] if variant.classes else labels

    def identity(self, name: str) -> str:
        variant, part = self._find(name)
        whole = part.identity(variant.base)
        chosen = f"{whole} {' '.join(variant.classes)}".encode()
        return hashlib.blake2b(chosen, digest_size=16).hexdigest() if variant.classes else whole

    def _find(self, name: str) -> tuple[Variant, DomainDataset]:
        variant = self.variants[name]
        return variant, self.parts[variant.severity or self.usual]

    def _rows(self, variant: Variant, part: DomainDataset) -> npt.NDArray[np.int64]:
        wanted = [part.class_names.index(label) for label in variant.classes]
        return np.flatnonzero(np.isin(part.labels(variant.base), wanted))
