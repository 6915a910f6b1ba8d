"""Argument checks shared by everything: each names the argument, what was expected and what it got.

A value of the wrong type is a ``TypeError``, one out of range a ``ValueError``, both in the same words: "alpha must be
in [0, 1], got 2". Every check returns the value as the plain Python type it stands for. Nothing here imports torch, and
no check waits for a device.
"""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TypeVar

Value = TypeVar("Value")
_SEEDS = 2**63  # the limit of a torch generator


def check_number(name: str, value: object) -> float:
    """A finite number.

    >>> check_number("lr", "fast")
    Traceback (most recent call last):
    TypeError: lr must be a number, got 'fast'
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value}")
    return number


def check_positive(name: str, value: object) -> float:
    """A finite number above 0.

    >>> check_positive("sigma", 0)
    Traceback (most recent call last):
    ValueError: sigma must be positive, got 0
    """
    number = check_number(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return number


def check_at_least(name: str, value: object, low: float) -> float:
    """A finite number of at least ``low``.

    >>> check_at_least("lambda_re", -1, 0)
    Traceback (most recent call last):
    ValueError: lambda_re must be at least 0, got -1
    """
    number = check_number(name, value)
    if number < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")
    return number


def check_between(name: str, value: object, low: float, high: float, *, below: bool = False) -> float:
    """A number in [low, high], or in [low, high) if it must stay ``below``.

    >>> check_between("lam", 1, 0, 1, below=True)
    Traceback (most recent call last):
    ValueError: lam must be in [0, 1), got 1
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not (low <= float(value) <= high) or (below and value == high):
        raise ValueError(f"{name} must be in [{low}, {high}{')' if below else ']'}, got {value}")
    return float(value)


def check_in_unit_interval(name: str, value: object) -> float:
    """A number in [0, 1].

    >>> check_in_unit_interval("alpha", 2)
    Traceback (most recent call last):
    ValueError: alpha must be in [0, 1], got 2
    """
    return check_between(name, value, 0, 1)


def check_whole(name: str, value: object, at_least: int | None = None, below: int | None = None) -> int:
    """A whole number: at least ``at_least`` if given; if ``below`` is given, from ``at_least`` or 0 up to it.

    >>> check_whole("capacity", 0, at_least=1)
    Traceback (most recent call last):
    ValueError: capacity must be at least 1, got 0
    >>> check_whole("label", 5, at_least=0, below=5)
    Traceback (most recent call last):
    ValueError: label must be in [0, 5), got 5
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    number, low = int(value), at_least or 0
    if below is not None and not low <= number < below:
        raise ValueError(f"{name} must be in [{low}, {below}), got {value}")
    if at_least is not None and number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value}")
    return number


def check_seed(value: object, name: str = "seed") -> int:
    """A whole number that every random generator accepts as its seed: from 0 to 2**63 - 1."""
    seed = check_whole(name, value)
    if not 0 <= seed < _SEEDS:
        raise ValueError(f"{name} must be in [0, 2**63), got {value}")
    return seed


def check_flag(name: str, value: object) -> bool:
    """True or False, and nothing that merely counts as one of them.

    >>> check_flag("train", "no")
    Traceback (most recent call last):
    TypeError: train must be True or False, got 'no'
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def check_string(name: str, value: object) -> str:
    """A string that is not empty.

    >>> check_string("name", 3)
    Traceback (most recent call last):
    TypeError: name must be a string, got 3
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {value!r}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    return value


def check_one_of(name: str, value: Value, choices: Iterable[Value]) -> Value:
    """One of the ``choices``, which the error lists.

    >>> check_one_of("affinity", "cosine", ("knn", "rbf"))
    Traceback (most recent call last):
    ValueError: affinity must be one of 'knn', 'rbf', got 'cosine'
    """
    known = tuple(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    return value


def check_type(name: str, value: object, kind: type[Value], what: str | None = None) -> Value:
    """An instance of ``kind``, which the error calls ``what``.

    >>> check_type("path", 3, str, "a path")
    Traceback (most recent call last):
    TypeError: path must be a path, got int
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {what or f'a {kind.__qualname__}'}, got {type(value).__name__}")
    return value
