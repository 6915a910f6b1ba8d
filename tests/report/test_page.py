"""The page in a real Chromium: no console error, everything drawn, tables sort, numbers open what is behind them."""

from itertools import combinations

import pytest
from selenium.webdriver.common.keys import Keys

from grotta.bench.store.results import load_results
from grotta.data import CORRUPTIONS
from grotta.report.sections.benchmark import make_report
from grotta.report.write import write_report

pytestmark = pytest.mark.browser
ORDER = "return [...document.querySelectorAll('#cifar10-c-main tbody tr th')].map(cell => cell.textContent)"
PRESS = "document.querySelectorAll('#cifar10-c-main thead button')[arguments[0]].click()"
SORTS = "return [...document.querySelectorAll('#cifar10-c-main thead th')].map(head => head.getAttribute('aria-sort'))"


@pytest.fixture
def page(browser, make_result, write_run):
    """The report of four methods, one of which lacks a cell, open in the browser."""
    errors = {"source": (40.0, 41.0), "bn": (52.0, 9.0), "ods": (66.0, None), "grotta": (8.0, 100.0)}
    made = [
        make_result(method, gamma, dict.fromkeys(CORRUPTIONS, error))
        for method, values in errors.items()
        for gamma, error in zip((0.1, 0.0001), values)
        if error is not None
    ]
    options = {"bank_batch": 32, "lambda_batch": 0.0, "lambda_re": 0.0, "update_every": 4}
    made += [make_result("grotta", gamma, dict.fromkeys(CORRUPTIONS, 9.0), options=options) for gamma in (0.1, 0.0001)]
    out = write_run(made)
    path = write_report(make_report(load_results(out)), out / "report.html")[0]
    browser.open(path.as_uri())
    return browser


def test_columns_sort_up_down_and_back_with_blanks_last(page):
    given = page.run(ORDER)
    assert given == ["Source", "BN", "ODS †", "GRoTTA"]
    page.run(PRESS, 2)
    assert page.run(ORDER) == ["BN", "Source", "GRoTTA", "ODS †"]
    assert page.run(SORTS) == [None, None, "ascending", None]
    page.run(PRESS, 2)
    assert page.run(ORDER) == ["GRoTTA", "Source", "BN", "ODS †"]
    assert page.run(SORTS) == [None, None, "descending", None]
    page.run(PRESS, 2)
    assert page.run(ORDER) == given
    assert page.run(SORTS) == [None] * 4
    page.run(PRESS, 0)
    assert page.run(ORDER) == ["BN", "GRoTTA", "ODS †", "Source"]


def test_columns_sort_by_keyboard(page):
    page.run("document.querySelectorAll('#cifar10-c-main thead button')[1].focus()")
    page.press(Keys.ENTER)
    assert page.run(ORDER) == ["GRoTTA", "Source", "BN", "ODS †"]
    assert page.run("return document.getElementById('status').textContent") == "sorted by 10⁻¹, ascending"


def test_a_number_opens_the_command_and_stream_behind_it(page):
    page.run("document.querySelector('#cifar10-c-main tbody a').click()")
    assert page.run("return document.getElementById('behind').open") is True
    shown = page.run("return document.getElementById('behind').innerText")
    assert "grotta run --method source --dataset cifar10-c" in shown
    assert "Stream" in shown
    page.press(Keys.ESCAPE)
    assert page.run("return document.getElementById('behind').open") is False


def test_a_link_to_a_cell_unfolds_it(page):
    script = "const cell = document.querySelector('#cells details details'); location.hash = cell.id; return cell.id"
    name = page.run(script)
    page.until("return document.getElementById(arguments[0]).open", name)


def test_all_figures_are_drawn(page):
    script = """return [...document.querySelectorAll('figure .panels svg')].map(svg => {
        const lines = [...svg.querySelectorAll('path[class^=l]')].map(path => path.getTotalLength() || 0);
        return [svg.getBoundingClientRect().width, lines.length, Math.min(...lines)];
    })"""
    drawn = page.run(script)
    assert drawn
    assert all(width > 200 and lines > 0 and shortest > 10 for width, lines, shortest in drawn)


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_page_follows_light_and_dark(page, scheme, dark):
    page.prefer(scheme)
    colours = page.run(
        """const line = document.querySelector('figure path.l9');
        return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
                getComputedStyle(line).stroke].map(text => text.match(/[0-9]+/g).map(Number))"""
    )
    paper, ink, line = (sum(colour[:3]) / 3 for colour in colours)
    assert (paper < 64) == dark
    assert (ink > 192) == dark
    assert abs(line - paper) > 60


def test_a_phone_scrolls_tables_not_the_page(page):
    page.resize(390, 844, phone=True)
    wide, view = page.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= view == 390
    tables = page.run("return [...document.querySelectorAll('.scroll')].map(box => box.scrollWidth - box.clientWidth)")
    assert max(tables) > 0
    sizes = page.run(
        "return [...document.querySelectorAll('p, td, th')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 13


def test_long_names_leave_a_phone_room_for_numbers_and_heads(page):
    page.resize(390, 844, phone=True)
    shares = page.run(
        """return [...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth)
            .map(box => box.querySelector('tbody th').offsetWidth / box.clientWidth)"""
    )
    assert shares
    assert max(shares) <= 0.45
    hit = page.run(
        """const table = document.querySelector('#cifar10-c-variants table');
        table.scrollIntoView({block: 'center', behavior: 'instant'});
        return [table.querySelectorAll('thead button')[1], table.querySelector('tbody tr:last-child a')].map(aim => {
            const box = aim.getBoundingClientRect();
            return document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2) === aim;
        })"""
    )
    assert hit == [True, True]


def test_the_average_of_fifteen_domains_is_seen_without_scrolling(page):
    page.resize(1280, 900)
    box, average, others = page.run(
        """const box = document.querySelector('#cifar10-c-domains-0\\\\.1 .scroll');
        const cells = [...box.querySelectorAll('tbody tr:first-child td')].map(c => c.getBoundingClientRect().right);
        return [box.getBoundingClientRect().right, cells.at(-1), cells.slice(0, -1)]"""
    )
    assert len(others) == 15
    assert average <= box


@pytest.mark.parametrize(("width", "smallest"), [(390, 9), (1280, 11)])
def test_names_of_domains_are_all_there_large_enough_and_apart(page, width, smallest):
    page.resize(width, 844)
    panels = page.run(
        """return [...document.querySelectorAll('#cifar10-c-curves .panels svg')].map(svg => {
            const frame = svg.getBoundingClientRect(), scale = frame.width / svg.viewBox.baseVal.width;
            return [...svg.querySelectorAll('text')].map(text => {
                const r = text.getBoundingClientRect(), size = scale * parseFloat(getComputedStyle(text).fontSize);
                return [text.textContent, size, r.left, r.right, r.top, r.bottom,
                        r.top >= frame.top && r.left >= frame.left && r.right <= frame.right + 1];
            })})"""
    )
    assert len(panels) == 2
    for texts in panels:
        assert {name.replace("_", " ") for name in CORRUPTIONS} <= {text[0] for text in texts}
        assert all(size >= smallest and inside for _, size, *_, inside in texts)
        for (one, _, left, right, top, bottom, _), (other, _, *box, _) in combinations(texts, 2):
            apart = right <= box[0] or box[1] <= left or bottom <= box[2] or box[3] <= top
            assert apart, (one, other)


def test_nothing_is_asked_of_the_network(page):
    loaded = page.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert loaded == []
