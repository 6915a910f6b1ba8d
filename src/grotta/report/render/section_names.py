"""Where the names of sections are written above a panel, so that all can be read and no two touch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

NAME_SIZE = 11  # a page on a phone shows a panel at seven eighths of its size, and this as more than nine pixels
_INDENT, _GAP = 3.0, 4.0
_LINE = 14.0  # between upright names
_LONGEST = 130.0
_ROOM = 10  # that is above the axes anyway
_NARROW, _BROAD = set("fijlrt .,:;'|!()[]-1"), set("mwMW@%&")


@dataclass(frozen=True)
class Names:
    """Names as they are written.

    Attributes:
        placed: each as shown, in full, and the x of its baseline: where it begins if it lies, its line if it stands.
        starts: where the sections begin.
        upright: whether they are turned to read upwards.
        rise: how much higher the panel is for them.
    """

    placed: tuple[tuple[str, str, float], ...]
    starts: tuple[float, ...]
    upright: bool = False
    rise: int = 0


def section_names(names: Sequence[str], starts: Sequence[float], end: float) -> Names:
    """The names of sections that begin at ``starts`` and end at ``end``: lying if all have room so, else upright.

    Upright ones stand in the middle of their sections, or as near to it as their neighbours let them. Where there are
    more than can stand side by side, as many are shown as can, evenly picked.

    >>> section_names(["fog", "snow"], [50.0, 200.0], 400.0).placed
    (('fog', 'fog', 53.0), ('snow', 'snow', 203.0))
    >>> section_names(["fog", "snow"], [50.0, 65.0], 80.0).upright
    True
    """
    ends = [*starts[1:], end]
    if all(_INDENT + text_width(name) + _GAP <= right - left for name, left, right in zip(names, starts, ends)):
        lying = tuple((name, name, start + _INDENT) for name, start in zip(names, starts))
        return Names(lying, tuple(starts))
    middles = [(left + right) / 2 for left, right in zip(starts, ends)]
    most = max(1, int((end - starts[0]) // _LINE))
    every = range(0, len(names), math.ceil(len(names) / most))
    lines = apart([middles[i] for i in every], starts[0] + _LINE / 2, end - _LINE / 2)
    # text stands on its baseline, about a third of its size right of its middle line
    standing = tuple((shortened(names[i]), names[i], line + NAME_SIZE / 3) for i, line in zip(every, lines))
    longest = max(text_width(shown) for shown, _, _ in standing)
    return Names(standing, tuple(starts), upright=True, rise=max(0, math.ceil(longest) - _ROOM))


def apart(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Rising places within [low, high], at least a line apart, near those wanted: pushed right, then back from the end.

    >>> apart([10.0, 11.0, 50.0], 0.0, 60.0), apart([57.0, 58.0], 0.0, 60.0)
    ([10.0, 24.0, 50.0], [46.0, 60.0])
    """
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + _LINE if places else low))
    limit = high
    for index in reversed(range(len(places))):
        places[index] = min(places[index], limit)
        limit = places[index] - _LINE
    return places


def shortened(name: str) -> str:
    """``name``, cut where it would make the panel too high.

    >>> shortened("elastic transform"), shortened("a folder with a very long name indeed")
    ('elastic transform', 'a folder with a very…')
    """
    if text_width(name) <= _LONGEST:
        return name
    return next(cut for n in range(len(name), -1, -1) if text_width(cut := f"{name[:n]}…") <= _LONGEST)


def text_width(text: str) -> float:
    """How wide a name is, at most, in the fonts that pages are read in."""
    return NAME_SIZE * sum(map(_width, text))


def _width(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character in _BROAD:
        return 0.95
    if not character.isascii():
        return 1.0
    return 0.75 if character.isupper() else 0.61
