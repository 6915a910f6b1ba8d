"""Figures: places, ticks, thinning, and SVG that is well formed and takes its colours from the page."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grotta.bench.store.results import load_results
from grotta.data import CORRUPTIONS
from grotta.report.figure import Figure, Panel, Series, mean_filtered, thinned
from grotta.report.render.axes import Axis, fit
from grotta.report.render.svg import HEIGHT, WIDTH, color_class, figure_css, figure_svg, panel_svg, swatch_svg
from grotta.report.sections.figures import accuracy_panel, class_panel, curves, first_runs, row_colors, zeta_panel

SVG = "{http://www.w3.org/2000/svg}"


def line(label="a", color=0, **fields):
    return Series(label, (1.0, 10.0, 100.0), (1.0, 3.0, 2.0), color, **fields)


def two_panels(*series):
    sections = ((1.0, "fog"), (50.0, "snow"))
    panels = [
        Panel(f"P{i} <&>", "x", "y", series, x_scale=scale, sections=sections)
        for i, scale in enumerate(("linear", "log"))
    ]
    return Figure("name", "Title & more", "caption", tuple(panels))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(3, 8))
def test_ticks_are_round_on_the_axis_and_evenly_apart(low, width, count):
    axis = Axis(low, low + width, 0, 100)
    ticks = axis.ticks(count)
    assert 1 <= len(ticks) <= 2 * count + 1
    values = np.array([value for value, _ in ticks])
    room = 1e-6 * (abs(low) + width)
    assert (values >= low - room).all()
    assert (values <= low + width + room).all()
    steps = np.diff(values)
    np.testing.assert_allclose(steps, steps[:1].repeat(len(steps)), rtol=1e-6, atol=1e-9)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20), st.booleans())
def test_every_value_has_its_place_on_a_fitted_axis(values, log):
    axis = fit(values, 50, 400, scale="log" if log else "linear", margin=0.05)
    places = [axis.place(value) for value in values]
    assert all(50 - 1e-6 <= place <= 400 + 1e-6 for place in places)
    assert sorted(places) == [axis.place(value) for value in sorted(values)]


def test_linear_ticks_say_as_many_digits_as_they_need():
    assert Axis(0, 1.05, 0, 1).ticks() == [(0.0, "0.00"), (0.25, "0.25"), (0.5, "0.50"), (0.75, "0.75"), (1.0, "1.00")]


@given(st.integers(1, 2000), st.integers(2, 300))
def test_thinning_keeps_the_ends_and_the_order(length, most):
    x, y = thinned(np.arange(length), np.arange(length) ** 2, most)
    assert len(x) == min(length, most)
    assert (x[0], x[-1]) == (0.0, length - 1.0)
    assert list(x) == sorted(set(x))
    assert y == tuple(value**2 for value in x)


@given(st.lists(st.floats(-10, 10) | st.just(np.nan), min_size=1, max_size=30), st.integers(1, 9))
def test_mean_filter_is_the_mean_of_the_known_neighbours(values, width):
    filtered = mean_filtered(values, width)
    for place in range(len(values)):
        window = values[max(0, place - width // 2) : place + (width + 1) // 2]
        known = [value for value in window if not np.isnan(value)]
        assert filtered[place] == pytest.approx(np.mean(known) if known else np.nan, abs=1e-9, nan_ok=True)


def test_a_file_of_its_own_is_well_formed_and_carries_both_themes():
    text = figure_svg(two_panels(line("a <b>"), line("c", 9, kind="marked"), line("d", 2, kind="dots")))
    root = ET.fromstring(text)
    assert len(root.findall(f"{SVG}svg")) == 2
    assert "prefers-color-scheme:dark" in root.find(f"{SVG}style").text
    assert float(root.get("width")) == 2 * WIDTH
    assert float(root.get("height")) > HEIGHT
    assert "a <b>" in [element.text for element in root.iter(f"{SVG}text")]


def test_colours_come_from_variables_alone():
    body = panel_svg(two_panels(line(), line("b", 3, kind="marked")).panels[0], "name")
    assert not re.search(r"#[0-9a-fA-F]{3}|rgb\(|fill=|stroke=", body)
    assert re.search(r'class="l3"', body)
    assert re.search(r'class="f3"', body)


def test_each_panel_is_named_for_those_who_cannot_see_it():
    root = ET.fromstring(panel_svg(two_panels(line("a"), line("b", 1)).panels[0], "id"))
    assert root.get("role") == "img"
    assert root.find("title").text == "P0 <&>"
    assert root.find("desc").text == "y against x: a, b"
    assert root.get("aria-labelledby") == "id-t id-d"


def test_a_gap_in_the_data_is_a_gap_in_the_line():
    series = Series("a", (0.0, 1.0, 2.0, 3.0), (1.0, 2.0, float("nan"), 3.0), 0)
    path = ET.fromstring(panel_svg(Panel("t", "x", "y", (series,)), "id")).findall(".//path[@class='l0']")[0]
    assert [command[0] for command in re.findall(r"[ML][^ML]+", path.get("d"))] == ["M", "L", "M"]


def test_bubbles_have_the_area_of_their_sizes():
    series = Series("a", (1.0, 2.0), (1.0, 2.0), 4, "bubbles", (0.25, 1.0))
    circles = ET.fromstring(panel_svg(Panel("t", "x", "y", (series,)), "id")).findall("circle")
    assert [float(circle.get("r")) for circle in circles] == [2 + 9 * 0.5, 2 + 9 * 1.0]


def test_series_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="one length"):
        Series("a", (1.0,), (1.0, 2.0), 0)
    with pytest.raises(ValueError, match="color must be at least 0, got -1"):
        Series("a", (1.0,), (1.0,), -1)


def test_a_legend_needs_two_names():
    assert two_panels(line()).legend == []
    assert [series.label for series in two_panels(line(), line("b", 1)).legend] == ["a", "b"]
    assert ET.fromstring(swatch_svg(line())).get("aria-hidden") == "true"


def test_methods_keep_their_colours_and_others_take_free_ones():
    alone, together = row_colors(["GRoTTA"]), row_colors(["Source", "GRoTTA", "GRoTTA k=10", "(b)"])
    assert alone["GRoTTA"] == together["GRoTTA"] == 9
    assert together["Source"] == 0
    assert len(set(together.values())) == 4


def test_any_number_of_rows_has_a_way_of_its_own_to_be_drawn():
    labels = ["Source", "GRoTTA", *(f"row {number}" for number in range(28))]
    colors = row_colors(labels)
    assert len(set(colors.values())) == 30
    drawn = {color_class(line("a", color), "l") for color in colors.values()}
    assert len(drawn) == 30


@pytest.fixture
def on_disk(make_result, write_run):
    errors = {"fog": 20.0, "snow": 50.0}
    results = [
        make_result(m, g, errors, stream_seed=s, seed=s) for m in ("bn", "grotta") for g in (0.1, 0.01) for s in (0, 1)
    ]
    return load_results(write_run(results))


def test_curves_have_a_panel_a_gamma_and_end_at_the_final_accuracy(on_disk):
    figure = curves(on_disk)
    assert [panel.title for panel in figure.panels] == ["γ = 10⁻¹", "γ = 10⁻²"]
    for panel, gamma in zip(figure.panels, (0.1, 0.01)):
        assert [series.label for series in panel.series] == ["BN", "GRoTTA"]
        for series, method in zip(panel.series, ("bn", "grotta")):
            result = next(r for r in on_disk if (r.spec.method, r.spec.gamma, r.spec.seed) == (method, gamma, 0))
            wrong, seen = result.records["errors"].sum(), result.records["size"].sum()
            assert (series.x[-1], series.y[-1]) == (seen, pytest.approx(100 - 100 * wrong / seen))
            assert series.x[0] == result.records["size"][0]


def test_the_caption_names_what_is_drawn_and_curves_that_end_alike(on_disk, make_result, write_run):
    caption = curves(on_disk).caption
    assert "Vertical lines: a new domain begins." in caption
    assert "Dashed" not in caption
    assert "γ = 10⁻¹: BN and GRoTTA end at the same value (60.0)." in caption
    one_domain = [result for result in on_disk if result.spec.method == "bn"][:1]
    alone = [replace(r, spec=replace(r.spec, domains=("fog",))) for r in one_domain]
    assert "Vertical" not in curves(alone).caption
    assert "same value" not in curves(one_domain).caption


def test_no_domain_begins_with_a_dashed_line():
    css = figure_css()
    assert re.search(r"\.section\{[^}]*stroke-dasharray:none", css)


def test_sections_are_where_domains_begin(on_disk):
    panel = accuracy_panel(first_runs(on_disk), "t")
    third = on_disk[0].records["size"].sum() / 3  # snow is twice as long as fog
    assert panel.sections == ((0.0, "fog"), (third, "snow"))


def named_sections(names):
    series = Series("a", (64.0, 150000.0), (1.0, 2.0), 0)
    starts = tuple((10000.0 * place, name) for place, name in enumerate(names))
    return Panel("title", "x", "y", (series,), sections=starts)


def upright_names(panel):
    texts = ET.fromstring(panel_svg(panel, "id")).findall("text[@class='small']")
    return {text.text: float(re.search(r"translate\(([0-9.]+) ", text.get("transform"))[1]) for text in texts}


def test_fifteen_domains_are_all_named_upright_in_a_higher_panel():
    names = [name.replace("_", " ") for name in CORRUPTIONS]
    placed = upright_names(named_sections(names))
    assert list(placed) == names
    assert min(second - first for first, second in pairwise(placed.values())) >= 14
    root = ET.fromstring(panel_svg(named_sections(names), "id"))
    _, y, width, height = map(float, root.get("viewBox").split())
    assert y < float(root.find("text[@class='title']").get("y")) < 32 - 6.5 * max(map(len, names))  # above the names
    assert (width, height, y + height) == (WIDTH, HEIGHT - y, HEIGHT)
    whole = ET.fromstring(figure_svg(Figure("n", "t", "c", (named_sections(names),) * 3)))
    nested = whole.findall(f"{SVG}svg")
    assert [float(svg.get("y")) for svg in nested] == [0.0, 0.0, height]
    assert all(float(svg.get("height")) == height for svg in nested)
    assert float(whole.get("height")) == 2 * height


def test_long_names_are_cut_and_keep_the_whole_in_a_title():
    [text] = ET.fromstring(panel_svg(named_sections(["a folder with a very long name"]), "id")).findall(
        "text[@class='small']"
    )
    assert (text.text, text.find("title").text) == ("a folder with a very …", "a folder with a very long name")


@given(st.lists(st.floats(0.0, 30000.0), min_size=1, max_size=60))
def test_names_of_sections_are_never_too_near_to_each_other(starts):
    series = Series("a", (0.0, 30000.0), (1.0, 2.0), 0)
    sections = tuple((start, f"n{place}") for place, start in enumerate(sorted(starts)))
    placed = list(upright_names(Panel("t", "x", "y", (series,), sections=sections)).values())
    assert placed
    assert all(second - first >= 13.8 for first, second in pairwise(placed))


def test_class_panel_shows_every_image_of_a_short_stream(on_disk):
    panel = class_panel(on_disk[0], "predictions", "t", 3)
    assert panel.series[0].y == tuple(map(float, on_disk[0].predictions))
    assert panel.y_range == (-0.5, on_disk[0].classes - 0.5)


def test_zeta_panel_is_filtered_zeta(on_disk):
    series = zeta_panel({"a": on_disk[0]}, "t").series[0]
    assert series.y == pytest.approx(mean_filtered(on_disk[0].records["zeta"], 50).tolist())


def test_long_numbers_do_not_reach_the_label_of_the_y_axis():
    series = Series("a", (0.0, 1.0), (0.9751, 0.9762), 0)
    texts = ET.fromstring(panel_svg(Panel("t", "x", "y", (series,)), "id")).findall("text[@text-anchor='end']")
    assert max(len(text.text) for text in texts) >= 6
    assert all(float(text.get("x")) - 6.5 * len(text.text) > 18 for text in texts)  # the label ends at 16
