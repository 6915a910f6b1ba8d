"""A cell of the benchmark: everything that decides its result, and a name made from that."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

Option = None | bool | int | float | str | tuple["Option", ...]
Options = tuple[tuple[str, Option], ...]


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """One method on one stream.

    Two specs are equal, and share a directory, when nothing that decides a bit of the result differs: the label does
    not count, nor does the order of the options.

    Attributes:
        method: a name out of ``grotta.list_methods()``.
        dataset: a name out of ``grotta.data.list_datasets()``, or ``folder:PATH``.
        domains: names of the domains, in stream order.
        gamma: concentration of the label distribution; the smaller, the fewer classes in a period.
        model: ``NAME`` (bundled weights) or ``NAME@WEIGHTS`` (a file); ``""`` is the data set's own.
        options: of the method, over those of its preset; a mapping is taken too.
        preset: of the method.
        period: images that share a label distribution.
        stream: ``ptta``, ``rotta``, ``exhaustive`` or ``iid``.
        stream_seed: of the order of the images, the same for every method.
        seed: of everything random in the method.
        batch_size: images in a step.
        image_size: side of pictures that are read from files; data sets of arrays have their own.
        label: the row's name in tables; made from method, preset and options when left out.

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
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("method", "dataset", "model", "preset", "stream", "label"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name}: expected a string, got {getattr(self, name)!r}")
        items = self.options.items() if isinstance(self.options, Mapping) else self.options
        settled = {
            "domains": tuple(self.domains),
            "gamma": _positive("gamma", self.gamma),
            "options": tuple(sorted((str(key), _frozen(key, value)) for key, value in items)),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        if not self.domains:
            raise ValueError("domains: expected at least one")
        for name, least in {"period": 1, "batch_size": 1, "image_size": 1, "seed": 0, "stream_seed": 0}.items():
            _whole(name, getattr(self, name), least)
        if not self.label:
            object.__setattr__(self, "label", _label(self))

    @property
    def id(self) -> str:
        """A short name that is the same for equal specs, on every machine."""
        content = {key: value for key, value in self.to_dict().items() if key != "label"}
        return hashlib.blake2b(_canonical(content).encode(), digest_size=8).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values; the usual image size, which most data sets do not heed, goes unsaid."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.image_size == type(self).image_size:
            del values["image_size"]
        return {**values, "domains": list(self.domains), "options": _thawed(dict(self.options))}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The spec that :meth:`to_dict` gave."""
        unknown = values.keys() - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError(f"a cell has no field {sorted(unknown)[0]!r}")
        return cls(**values)

    def to_json(self) -> str:
        """The spec as canonical JSON: the same bytes for the same spec."""
        return _canonical(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The spec that :meth:`to_json` gave."""
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError(f"a cell is a JSON object, got {text[:40]!r}")
        return cls.from_dict(values)


def _label(spec: CellSpec) -> str:
    preset = "" if spec.preset == "paper" else f" {spec.preset}"
    return spec.method + preset + "".join(f" {key}={value}" for key, value in spec.options)


def _canonical(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _positive(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name}: expected a positive number, got {value!r}")
    return float(value)


def _whole(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")


def _frozen(name: str, value: Any) -> Option:
    if isinstance(value, list | tuple):
        return tuple(_frozen(name, part) for part in value)
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"option {name}: expected a finite number, a string, true, false, null or a list, got {value!r}")


def _thawed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _thawed(part) for key, part in value.items()}
    return [_thawed(part) for part in value] if isinstance(value, tuple) else value
