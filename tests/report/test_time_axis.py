"""Time axes: round moments, named so that a reader knows the day."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grotta.report.figure import Panel, Series, seconds
from grotta.report.render.axes import Axis
from grotta.report.render.svg import panel_svg

START = datetime(2012, 9, 12, 6, 5)


def labels(start: datetime, length: timedelta, count: int = 4) -> list[str]:
    low, high = seconds([start, start + length])
    return [text for _, text in Axis(low, high, 0, 100, "time").ticks(count)]


def test_hours_of_a_day_name_the_day_once():
    assert labels(START, timedelta(hours=12)) == ["12 Sep 09:00", "12:00", "15:00", "18:00"]


def test_midnight_is_the_name_of_the_day_that_begins():
    assert labels(START, timedelta(hours=36), 6) == ["12:00", "18:00", "13 Sep", "06:00", "12:00", "18:00"]


def test_seconds_days_months_and_years_are_written_as_such():
    assert labels(START, timedelta(seconds=20))[1] == "06:05:05"
    assert labels(START, timedelta(days=20))[0] in ("13 Sep", "20 Sep")
    assert labels(START, timedelta(days=300))[0] == "Oct 2012"
    assert labels(START, timedelta(days=3650))[-1] == "2022"


@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)), st.floats(5, 3e8), st.integers(3, 8))
def test_ticks_are_on_the_axis_in_order_and_not_too_many(start, length, count):
    low = start.replace(tzinfo=UTC).timestamp()
    ticks = Axis(low, low + length, 0, 100, "time").ticks(count)
    values = [value for value, _ in ticks]
    assert values == sorted(set(values))
    assert all(low - 1e-3 <= value <= low + length + 1e-3 for value in values)
    assert len(ticks) <= 2 * count + 1


def test_a_panel_over_time_writes_moments_below_its_axis():
    x = seconds(START + timedelta(hours=hour) for hour in range(12))
    panel = Panel("t", "time", "error (%)", (Series("a", x, tuple(map(float, range(12))), 0),), x_scale="time")
    texts = [text.text for text in ET.fromstring(panel_svg(panel, "id")).findall("text[@text-anchor='middle']")]
    assert "12 Sep 09:00" in texts
    assert "12:00" in texts


def test_a_panel_may_bring_its_own_ticks():
    series = Series("a", (0.0, 1.0, 2.0), (1.0, 2.0, 3.0), 0)
    panel = Panel("t", "batch", "y", (series,), x_ticks=((0.0, "one"), (1.0, "sixteen"), (9.0, "not on the axis")))
    texts = [text.text for text in ET.fromstring(panel_svg(panel, "id")).findall("text[@text-anchor='middle']")]
    assert texts[:2] == ["one", "sixteen"]
    assert "not on the axis" not in texts


def test_moments_are_shown_in_their_own_wall_clock_time():
    assert seconds([START]) == (pytest.approx(1347429900.0),)
