"""A cell of the benchmark: everything that decides its result, and a name made from that."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from grotta._check import check_flag, check_positive, check_seed, check_whole

Option = None | bool | int | float | str | tuple["Option", ...]
Options = tuple[tuple[str, Option], ...]


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """One method on one stream.

    Two specs are equal, and share a directory, if nothing that decides a bit of the result differs: neither the label
    nor the order of the options counts.

    Attributes:
        method: one of ``grotta.list_methods()``.
        dataset: one of ``grotta.data.list_datasets()``, or ``folder:PATH``.
        domains: names of the domains, in stream order.
        gamma: concentration of the label distribution; the smaller, the fewer classes in a period.
        model: ``NAME`` (bundled weights) or ``NAME@WEIGHTS`` (a file); ``""`` is the data set's own.
        options: of the method, on top of its preset; a mapping is accepted too.
        preset: of the method.
        period: images that share a label distribution.
        stream: ``ptta``, ``rotta``, ``exhaustive``, ``iid`` or ``recorded``.
        stream_seed: of the order of the images, the same for every method.
        seed: of everything random in the method.
        batch_size: images per step.
        image_size: side of images that are read from files; data sets of arrays have their own.
        images: at most this many images of each domain; 0 means all.
        per_stream: every domain starts with a new adapter, as if each camera had its own.
        label: the row's name in tables; made from method, preset and options by default.

    >>> spec = CellSpec(method="grotta", dataset="fashion-c", domains=("fog",), gamma=0.1, options={"k": 10})
    >>> spec.label, spec.id
    ('grotta k=10', '...')
    >>> CellSpec.from_json(spec.to_json()) == spec
    True
    """

    method: str
    dataset: str
    domains: tuple[str, ...]
    gamma: float
    model: str = ""
    options: Options = ()
    preset: str = "paper"
    period: int = 100
    stream: str = "ptta"
    stream_seed: int = 0
    seed: int = 0
    batch_size: int = 64
    image_size: int = 224
    images: int = 0
    per_stream: bool = False
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("method", "dataset", "model", "preset", "stream", "label"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a string, got {getattr(self, name)!r}")
        items = self.options.items() if isinstance(self.options, Mapping) else self.options
        settled = {
            "domains": tuple(self.domains),
            "gamma": check_positive("gamma", self.gamma),
            "options": tuple(sorted((str(key), _frozen(key, value)) for key, value in items)),
            "seed": check_seed(self.seed),
            "stream_seed": check_seed(self.stream_seed, "stream_seed"),
            "images": check_whole("images", self.images, at_least=0),
            "per_stream": check_flag("per_stream", self.per_stream),
        }
        settled |= {name: check_whole(name, getattr(self, name), at_least=1) for name in _COUNTS}
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        if not self.domains:
            raise ValueError("domains must name at least one, got none")
        if not self.label:
            object.__setattr__(self, "label", _label(self))

    @property
    def id(self) -> str:
        """A short name that is the same for equal specs, on every machine."""
        content = {key: value for key, value in self.to_dict().items() if key != "label"}
        return hashlib.blake2b(_canonical(content).encode(), digest_size=8).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values; those that were added later are left out at their defaults."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in _ADDED_LATER:
            if values[name] == getattr(type(self), name):
                del values[name]
        return {**values, "domains": list(self.domains), "options": _thawed(dict(self.options))}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        unknown = values.keys() - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError(f"a cell has no field {sorted(unknown)[0]!r}")
        return cls(**values)

    def to_json(self) -> str:
        """The spec as canonical JSON: the same bytes for the same spec."""
        return _canonical(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError(f"a cell must be a JSON object, got {text[:40]!r}")
        return cls.from_dict(values)


_COUNTS = ("period", "batch_size", "image_size")
_ADDED_LATER = ("image_size", "images", "per_stream")  # left out at their defaults: the ids of older cells stay


def _label(spec: CellSpec) -> str:
    preset = "" if spec.preset == "paper" else f" {spec.preset}"
    own = " per stream" if spec.per_stream else ""
    return spec.method + preset + own + "".join(f" {key}={value}" for key, value in spec.options)


def _canonical(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _frozen(name: str, value: Any) -> Option:
    if isinstance(value, list | tuple):
        return tuple(_frozen(name, part) for part in value)
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"option {name} must be a finite number, a string, true, false, null or a list, got {value!r}")


def _thawed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _thawed(part) for key, part in value.items()}
    return [_thawed(part) for part in value] if isinstance(value, tuple) else value
