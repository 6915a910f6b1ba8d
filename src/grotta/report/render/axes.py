"""Axes: from numbers to places, and which ticks to write."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from grotta.report.figure import Scale
from grotta.report.labels import power_of_ten

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_TIME_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14)),
)
_MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120)

Ticks = list[tuple[float, str]]


@dataclass(frozen=True)
class Axis:
    """A map from [low, high] to [start, end]."""

    low: float
    high: float
    start: float
    end: float
    scale: Scale = "linear"

    def place(self, value: float) -> float:
        """Where ``value`` is drawn.

        >>> Axis(0, 10, 100, 200).place(5), Axis(1, 100, 0, 10, "log").place(10)
        (150.0, 5.0)
        """
        low, high, value = (
            (math.log10(v) for v in (self.low, self.high, value))
            if self.scale == "log"
            else (self.low, self.high, value)
        )
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def ticks(self, count: int = 5) -> Ticks:
        """Round values on the axis and how they are written."""
        if self.scale == "log":
            return _log_ticks(self.low, self.high)
        return (_time_ticks if self.scale == "time" else _linear_ticks)(self.low, self.high, count)


def fit(values: Iterable[float], start: float, end: float, *, scale: Scale = "linear", margin: float = 0.0) -> Axis:
    """The axis that shows all finite ``values`` from ``start`` to ``end``, with a margin on both sides.

    >>> fit([2.0, 4.0], 0, 100)
    Axis(low=2.0, high=4.0, start=0, end=100, scale='linear')
    """
    log = scale == "log"
    finite = [value for value in values if math.isfinite(value)] or [0.1 if log else 0.0, 1.0]
    low, high = min(finite), max(finite)
    if log:
        room = max(math.log10(high / low) * margin, 0.1 if low == high else 0.0)
        return Axis(low / 10**room, high * 10**room, start, end, scale)
    room = (high - low) * margin or (0.5 if low == high else 0.0)
    return Axis(low - room, high + room, start, end, scale)


def _linear_ticks(low: float, high: float, count: int) -> Ticks:
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


def _log_ticks(low: float, high: float) -> Ticks:
    """The powers of ten, as such where plain numbers would be long.

    >>> _log_ticks(0.1, 10), _log_ticks(1e-4, 1e-3)
    ([(0.1, '0.1'), (1.0, '1'), (10.0, '10')], [(0.0001, '10⁻⁴'), (0.001, '10⁻³')])
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    plain = first >= -2 and last <= 3
    names = {n: f"{10.0**n:g}" if plain else power_of_ten(n) for n in range(first, last + 1)}
    return [(float(f"1e{n}"), name) for n, name in names.items()]


def _time_ticks(low: float, high: float, count: int) -> Ticks:
    """Round moments: hours of a day, days or months; a day is named where it begins, otherwise at the first tick.

    >>> [text for _, text in _time_ticks(6 * 3600, 18 * 3600, 4)]
    ['1 Jan 06:00', '09:00', '12:00', '15:00', '18:00']
    >>> [text for _, text in _time_ticks(0, 40 * 86400, 4)]
    ['1 Jan', '15 Jan', '29 Jan']
    """
    rough = (high - low) / count
    step = next((s for s in _TIME_STEPS if s >= rough * 0.999), None)
    if step is None:
        return _month_ticks(low, high, rough)
    moments = [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    if step >= _DAY:
        return [(float(moment), _day(moment)) for moment in moments]
    clock = "%H:%M:%S" if step < _MINUTE else "%H:%M"
    texts = [_day(m) if m % _DAY == 0 else _utc(m).strftime(clock) for m in moments]
    if texts and not any(m % _DAY == 0 for m in moments):
        texts[0] = f"{_day(moments[0])} {texts[0]}"
    return [(float(moment), text) for moment, text in zip(moments, texts)]


def _month_ticks(low: float, high: float, rough: float) -> Ticks:
    step = next((n for n in _MONTH_STEPS if n * 30.44 * _DAY >= rough * 0.999), _MONTH_STEPS[-1])
    first, last = _utc(low), _utc(high)
    months = range(12 * first.year, 12 * (last.year + 1), step)
    starts = [datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC) for month in months]
    text = "%Y" if step >= 12 else "%b %Y"
    return [(start.timestamp(), start.strftime(text)) for start in starts if low <= start.timestamp() <= high]


def _utc(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


def _day(moment: float) -> str:
    return f"{_utc(moment).day} {_utc(moment):%b}"


def _shortened(value: float, decimals: int) -> str:
    """Thousands as k, so that long streams do not crowd the axis.

    >>> _shortened(20000.0, 0), _shortened(0.25, 2)
    ('20k', '0.25')
    """
    if abs(value) >= 10000 and value % 1000 == 0:
        return f"{value / 1000:.0f}k"
    return f"{value + 0.0:.{decimals}f}"
