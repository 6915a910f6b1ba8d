"""Axes: from numbers to places, and which numbers to write beside them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """A map from [low, high] to [start, end], linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        """Where ``value`` is drawn.

        >>> Axis(0, 10, 100, 200).place(5), Axis(1, 100, 0, 10, log=True).place(10)
        (150.0, 5.0)
        """
        low, high, value = (
            (math.log10(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def ticks(self, count: int = 5) -> list[tuple[float, str]]:
        """Round values on the axis and how they are written."""
        return _log_ticks(self.low, self.high) if self.log else _linear_ticks(self.low, self.high, count)


def fit(values: Iterable[float], start: float, end: float, *, log: bool = False, margin: float = 0.0) -> Axis:
    """The axis that shows all finite ``values`` from ``start`` to ``end``, with a margin on both sides.

    >>> fit([2.0, 4.0], 0, 100)
    Axis(low=2.0, high=4.0, start=0, end=100, log=False)
    """
    finite = [value for value in values if math.isfinite(value)] or [0.1 if log else 0.0, 1.0]
    low, high = min(finite), max(finite)
    if log:
        room = max(math.log10(high / low) * margin, 0.1 if low == high else 0.0)
        return Axis(low / 10**room, high * 10**room, start, end, log=True)
    room = (high - low) * margin or (0.5 if low == high else 0.0)
    return Axis(low - room, high + room, start, end)


def _linear_ticks(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten, about ``count`` of them.

    >>> _linear_ticks(0, 100, 5)
    [(0.0, '0'), (20.0, '20'), (40.0, '40'), (60.0, '60'), (80.0, '80'), (100.0, '100')]
    """
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in _STEPS if s * power >= rough * 0.999)
    decimals = next(d for d in range(16) if math.isclose(step * 10**d, round(step * 10**d), rel_tol=1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(round(i * step, 10), _shortened(round(i * step, 10), decimals)) for i in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """The powers of ten, as such where plain numbers would be long.

    >>> _log_ticks(0.1, 10), _log_ticks(1e-4, 1e-3)
    ([(0.1, '0.1'), (1.0, '1'), (10.0, '10')], [(0.0001, '10⁻⁴'), (0.001, '10⁻³')])
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    plain = first >= -2 and last <= 3
    names = {n: f"{10.0**n:g}" if plain else f"10{str(n).translate(_SUPERSCRIPT)}" for n in range(first, last + 1)}
    return [(float(f"1e{n}"), name) for n, name in names.items()]


def _shortened(value: float, decimals: int) -> str:
    """Thousands as k, so that long streams do not crowd the axis.

    >>> _shortened(20000.0, 0), _shortened(0.25, 2)
    ('20k', '0.25')
    """
    if abs(value) >= 10000 and value % 1000 == 0:
        return f"{value / 1000:.0f}k"
    return f"{value + 0.0:.{decimals}f}"
