"""What cells, rows, data sets and settings are called wherever they are shown."""

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from math import isfinite, isnan, nan
from pathlib import PurePath
from statistics import fmean

from grotta.bench.inputs.opened import WITHOUT_GAMMA
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.methods import list_methods, method_class

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PAPER_PLACES = range(0, 100, 10)  # of the ten methods that the paper compares


def mean_error(result: CellResult) -> float:
    """The error in per cent, averaged over domains as the paper does: each counts equally, however long it is."""
    known = [error for error in result.domain_errors.values() if isfinite(error)]  # a recording may have no labels
    return fmean(known) if known else nan


def both_errors(result: CellResult) -> str:
    """The two errors of a cell: the one in tables, and the one over all images, where long domains count more."""
    if isnan(result.error):
        return "unknown without labels"
    return f"{mean_error(result):.2f} % mean over domains, {result.error:.2f} % of all images"


def seeds(spec: CellSpec) -> str:
    """The two seeds of a cell, by name."""
    return f"stream seed {spec.stream_seed}, method seed {spec.seed}"


def row_key(spec: CellSpec) -> str:
    """Method, preset and options in one string: what makes a row, whatever label the spec was given."""
    return replace(spec, label="").label


def row_label(key: str) -> tuple[str, str]:
    """The name of a row as shown, and the mark on it.

    >>> row_label("ods"), row_label("grotta k=10")
    (('ODS', 'reconstruction'), ('GRoTTA k=10', ''))
    """
    method, space, rest = key.partition(" ")
    return method_title(method) + space + rest, "reconstruction" if is_reconstruction(method) else ""


def row_keys(results: Iterable[CellResult]) -> list[str]:
    """The rows of some results: methods in the order of tables, variants below their method."""
    keys = {row_key(result.spec): result.spec for result in results}
    return sorted(keys, key=lambda key: _row_order(keys[key]))


def method_title(method: str) -> str:
    """A method as tables name it; one that is not installed here goes by its name."""
    return (method_class(method).title if method in list_methods() else "") or method


def method_place(method: str) -> int:
    """The place of a method among the rows of a table; one that is not installed here comes last."""
    return method_class(method).place if method in list_methods() else sys.maxsize


def method_colors() -> dict[str, int]:
    """The colour of each method by its title, the same in every figure; a new method does not change the paper's.

    One that is named after a method of the paper, with a plus, has that one's colour and other dashes.
    """
    places = {method: method_place(method) for method in list_methods()}
    paper = {method: place // 10 for method, place in places.items() if place in _PAPER_PLACES}
    more = {f"{method}+": len(_PAPER_PLACES) + color for method, color in paper.items() if f"{method}+" in places}
    others = sorted((place, method) for method, place in places.items() if method not in paper | more)
    free = (color for color in count(len(_PAPER_PLACES)) if color not in more.values())
    own = paper | more | dict(zip((method for _, method in others), free))
    return {method_title(method): color for method, color in own.items()}


def is_reconstruction(method: str) -> bool:
    """Whether a method was made from its paper alone; False for one that is not installed here."""
    return method in list_methods() and method_class(method).reconstruction


def gammas(results: Iterable[CellResult]) -> list[float]:
    """The gammas of some results, the largest first."""
    return sorted({result.spec.gamma for result in results}, reverse=True)


def gamma_name(gamma: float) -> str:
    """A gamma as columns are named.

    >>> [gamma_name(gamma) for gamma in (1e-1, 1e-4, 1.0, 10.0)]
    ['0.1', '0.0001', '1', '10']
    """
    return f"{gamma:.10f}".rstrip("0").rstrip(".") if 1e-10 <= gamma < 1e6 else repr(gamma)


def gamma_head(column: str) -> str:
    """A gamma as a table's head shows it.

    >>> gamma_head("0.0001"), gamma_head("0.5")
    ('10⁻⁴', '0.5')
    """
    mantissa, exponent = f"{float(column):e}".split("e")
    return power_of_ten(int(exponent)) if float(mantissa) == 1 else column


def power_of_ten(exponent: int) -> str:
    """10 to the power of ``exponent``, as it is written."""
    return f"10{str(exponent).translate(_SUPERSCRIPT)}"


def label_shift(stream: str, gamma: float) -> str:
    """How the label mix of a stream changes, in a few words; an iid stream has no gamma.

    >>> label_shift("ptta", 0.1), label_shift("iid", 0.1)
    ('γ = 10⁻¹', 'no label shift')
    """
    return {"iid": "no label shift", "recorded": "recorded order"}.get(stream, f"γ = {gamma_head(gamma_name(gamma))}")


def stream_name(spec: CellSpec) -> str:
    """The stream of a cell in two words: what it is drawn with, or its kind.

    >>> spec = CellSpec(method="source", dataset="fashion-c", domains=("fog",), gamma=0.1)
    >>> stream_name(spec), stream_name(replace(spec, stream="recorded"))
    ('gamma 0.1', 'recorded stream')
    """
    return f"gamma {spec.gamma:g}" if has_gamma(spec.stream) else f"{spec.stream} stream"


def has_gamma(stream: str) -> bool:
    """Whether the streams of a kind are drawn with a gamma."""
    return stream not in WITHOUT_GAMMA


def data_name(dataset: str) -> str:
    """A data set as shown: of a folder or file its own name, not where it is on this machine.

    >>> data_name("folder:/home/me/photos/"), data_name("csv:/tmp/day.csv"), data_name("cifar10-c")
    ('folder:photos', 'csv:day.csv', 'cifar10-c')
    """
    kind, colon, path = dataset.partition(":")
    return kind + colon + ((PurePath(path).name or "/") if colon else "")


def network_name(model: str) -> str:
    """A network as shown: weights in a folder of this machine go by the name of their file.

    >>> network_name("resnet20@/home/me/gate.safetensors"), network_name("resnet20@models/gate/resnet20.safetensors")
    ('resnet20@gate.safetensors', 'resnet20@models/gate/resnet20.safetensors')
    """
    name, at, weights = model.partition("@")
    path = PurePath(weights)
    return f"{name}{at}{path.name}" if path.is_absolute() or weights.startswith("~") else model


def parent_folder(dataset: str) -> str:
    """The name of the folder that a data set's folder or file is in, ``""`` if it is not in one."""
    return PurePath(dataset.partition(":")[2]).parent.name


def plural(number: int, word: str, several: str = "") -> str:
    """A number of things.

    >>> plural(1, "domain"), plural(15, "domain"), plural(2, "class", "classes")
    ('1 domain', '15 domains', '2 classes')
    """
    return f"{number:,} {word}" if number == 1 else f"{number:,} {several or word + 's'}"


def slug(text: str) -> str:
    """``text`` as the name of a file or an anchor in a page.

    >>> slug("folder:my Photos"), slug("grotta k=10")
    ('folder-my-photos', 'grotta-k-10')
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "x"


def _row_order(spec: CellSpec) -> tuple[object, ...]:
    options = tuple((key, _comparable(value)) for key, value in spec.options)
    return method_place(spec.method), spec.method, spec.preset != "paper", spec.preset, options


def _comparable(value: object) -> tuple[int, float, str]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (0, float(value), "") if is_number else (1, 0.0, str(value))  # type: ignore[arg-type]
