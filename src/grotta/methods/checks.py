"""Errors for options that are out of range, naming the option, what came and what was expected."""

import math
from numbers import Integral, Real
from typing import TypeVar

Number = TypeVar("Number", int, float)


def check_in_unit_interval(name: str, value: float) -> float:
    """A number in [0, 1]."""
    if not _is_number(value) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be a number in [0, 1], got {value!r}")
    return float(value)


def check_positive(name: str, value: float) -> float:
    """A finite number above 0."""
    if not _is_number(value) or not value > 0:
        raise ValueError(f"{name} must be a number > 0, got {value!r}")
    return float(value)


def check_at_least(name: str, value: Number, low: Number) -> Number:
    """A finite number of at least ``low``; a whole one if ``low`` is.

    >>> check_at_least("capacity", 0, 1)
    Traceback (most recent call last):
    ValueError: capacity must be a whole number >= 1, got 0
    """
    whole = isinstance(low, int)
    if not _is_number(value) or (whole and not isinstance(value, Integral)) or value < low:
        raise ValueError(f"{name} must be a {'whole ' if whole else ''}number >= {low}, got {value!r}")
    return type(low)(value)


def check_flag(name: str, value: bool) -> bool:
    """True or False, and nothing that only counts as one of them.

    >>> check_flag("train", "no")
    Traceback (most recent call last):
    TypeError: train must be True or False, got 'no'
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
