"""Regrets against a small matrix worked out by hand, and their picture."""

import xml.etree.ElementTree as ET

import pytest

from grotta.report.figure import HeatMap
from grotta.report.render.svg import figure_svg, panel_height, panel_svg
from grotta.report.sections.regret import regret_blocks, regrets

ERRORS = {
    "clean": {"source": 8.0, "rotta": 9.0, "grotta": 11.5},
    "fog": {"source": 40.0, "rotta": 22.0, "grotta": 20.0},
    "one class": {"source": 30.0, "rotta": 33.0, "grotta": 30.0},
}


def test_the_regret_of_a_method_is_its_error_minus_the_best_of_each_situation():
    by_method = {one.method: one for one in regrets(ERRORS)}
    assert by_method["source"].regrets == {"clean": 0.0, "fog": 20.0, "one class": 0.0}
    assert by_method["grotta"].regrets == {"clean": 3.5, "fog": 0.0, "one class": 0.0}
    assert (by_method["rotta"].mean, by_method["rotta"].worst) == (2.0, 3.0)


def test_methods_are_sorted_by_mean_and_ranked_by_worst_regret():
    _, methods, _ = regret_blocks(ERRORS)
    assert [row[0] for row in methods.rows] == ["GRoTTA", "RoTTA", "Source"]
    assert [row[1] for row in methods.rows] == [pytest.approx(3.5 / 3), 2.0, pytest.approx(20 / 3)]
    assert {row[0]: (row[2], row[3], row[4]) for row in methods.rows} == {
        "GRoTTA": (3.5, 2.0, "clean"),
        "RoTTA": (3.0, 1.0, "one class"),
        "Source": (20.0, 3.0, "fog"),
    }


def test_a_method_that_lacks_a_situation_comes_last_and_is_said_to():
    lacking = {**ERRORS, "fog": {"source": 40.0, "rotta": 22.0}}
    figure, methods, errors = regret_blocks(lacking)
    assert methods.rows[-1][0] == "GRoTTA"
    assert any("fewer situations" in note for note in methods.notes)
    assert errors.rows[1] == ("fog", 22.0, 40.0, None)
    assert figure.panels[0].values[1][-1] is None


def test_nothing_is_shown_of_nothing():
    assert regret_blocks({}) == []


def test_the_picture_has_a_square_for_each_number_the_larger_the_darker():
    figure = regret_blocks(ERRORS)[0]
    [panel] = figure.panels
    root = ET.fromstring(panel_svg(panel, "id"))
    squares = root.findall("rect[@class='heat']")
    opacities = [float(square.get("fill-opacity")) for square in squares]
    values = [value for row in panel.values for value in row]
    assert len(squares) == 9
    assert sorted(range(9), key=opacities.__getitem__) == sorted(range(9), key=values.__getitem__)
    assert [text.text for text in root.findall("text[@class='number']")][:3] == ["3.5", "1.0", "0.0"]
    assert squares[0].find("title").text == "clean, GRoTTA: 3.5"
    assert root.find("desc").text == "clean, fog, one class by GRoTTA, RoTTA, Source"
    ET.fromstring(figure_svg(figure))


def test_a_heat_map_grows_with_its_rows():
    heights = [panel_height(HeatMap("t", ("a",) * n, ("b",), ((1.0,),) * n)) for n in (1, 40)]
    assert heights[1] - heights[0] == 39 * 24


def test_a_heat_map_of_another_shape_than_its_names_is_refused():
    with pytest.raises(ValueError, match="one number per column"):
        HeatMap("t", ("a",), ("b", "c"), ((1.0,),))
