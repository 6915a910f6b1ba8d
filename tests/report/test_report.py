"""The report: complete, self-contained, well formed, the same bytes for the same results."""

import csv
import errno
import io
import json
import re
import shlex
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from statistics import fmean

import pytest
import typer
from typer.testing import CliRunner

from grotta.bench.events import Failure, Finished
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import load_results
from grotta.commands import report as report_command
from grotta.paper.directory import directory_report
from grotta.paper.recipes import all_printed
from grotta.report.command import command
from grotta.report.document import Section
from grotta.report.live.board import describe
from grotta.report.render.csv import CELL_COLUMNS, cells_csv
from grotta.report.render.html import report_html
from grotta.report.render.markdown import report_markdown
from grotta.report.sections import benchmark
from grotta.report.sections.benchmark import benchmark_sections, distinct
from grotta.report.sections.listings import speed_listing
from grotta.report.sections.setups import setup_names, told_apart
from grotta.report.sections.tables import main_table
from grotta.report.sections.warnings import reader_warnings
from grotta.report.write import write_report

make_report = partial(benchmark.make_report, printed=all_printed())

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Checks that elements nest, and keeps ids, links and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.attributes, self.tags, self.text = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def results(make_result, write_run):
    made = [
        make_result(method, gamma, {"fog": error, "snow": error + 10}, stream_seed=seed, seed=seed, options=options)
        for method, options, error in [
            ("source", {}, 40.0),
            ("ods", {}, 60.0),
            ("grotta", {}, 8.0),
            ("grotta", {"k": 9}, 9.0),
        ]
        for gamma in (0.1, 0.0001)
        for seed in (0, 1)
    ]
    return load_results(write_run(made))


@pytest.fixture
def page(results):
    return Page(report_html(make_report(results)))


def test_html_is_well_formed_with_unique_ids(page):
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("h1") == 1
    assert {"table", "svg", "dialog", "main", "nav"} <= set(page.tags)


def test_nothing_is_fetched(results):
    text = report_html(make_report(results))
    page = Page(text)
    fetching = [
        (tag, name, value) for tag, name, value in page.attributes if name in ("src", "srcset", "data", "action")
    ]
    assert fetching == []
    assert all(value.startswith("#") for _, name, value in page.attributes if name == "href")
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest", text)
    assert {"link", "img", "iframe", "object"}.isdisjoint(page.tags)
    assert "default-src 'none'" in text


def test_every_link_leads_somewhere(page):
    targets = {value[1:] for _, name, value in page.attributes if name == "href"}
    assert targets <= set(page.ids)
    named = {f"cell-{key}" for _, name, value in page.attributes if name == "data-cells" for key in value.split()}
    assert named
    assert named <= set(page.ids)


def test_every_number_has_its_command_and_stream(results):
    text = report_html(make_report(results))
    shown = "".join(Page(text).text)
    for result in results:
        assert f'id="cell-{result.spec.id}"' in text
        assert result.stream_hash in shown
        assert command(result.spec) in shown
    blocks = dict(re.findall(r'<section class="block" id="([^"]*)"(.*?)</section>', text, re.DOTALL))
    numbers = [
        cell for block in blocks.values() for cell in re.findall(r'<td data-value="[^"]*[0-9]">(.*?)</td>', block)
    ]
    cells = [c for t in make_report(results).tables for r in t.rows for c in r.cells if c.mean is not None]
    assert len(numbers) == len(cells) > 0
    ids = {result.spec.id for result in results}
    for number in numbers:
        [behind] = re.findall(r'<a href="#cell-[0-9a-f]+" data-cells="([^"]+)">[0-9.]+</a>', number)
        assert set(behind.split()) <= ids


def test_both_errors_are_named_wherever_a_cell_is_shown(results):
    report = make_report(results)
    page, text = "".join(Page(report_html(report)).text), report_markdown(report, "figures")
    [cell] = [r for r in results if (r.spec.method, r.spec.gamma, r.spec.seed) == ("source", 0.1, 0)]
    # fog has 100 images, snow 200: (40 + 2 * 50) / 3 of all images, 45 over the two domains
    assert (cell.domain_errors, cell.error) == ({"fog": 40.0, "snow": 50.0}, pytest.approx(140 / 3))
    assert "45.00 % mean over domains, 46.67 % of all images" in page
    assert "45.00 % mean over domains, 46.67 % of all images" in describe(Finished(cell.spec, cell))
    assert f"| {cell.spec.id} | 45.00 | 46.67 |" in text
    table = report.tables[0]
    assert (table.cell("Source", "0.1").mean, "mean over domains" in table.title) == (45.0, True)
    for shown in (page, text):
        assert shown.count("The error over all images, where the curves end") == 1


def test_the_page_works_on_a_phone_and_in_the_dark(page):
    assert ("meta", "content", "width=device-width, initial-scale=1") in page.attributes
    assert ("meta", "content", "light dark") in page.attributes
    assert page.tags.count("table") == [value for _, name, value in page.attributes if name == "class"].count("scroll")


def test_heads_are_buttons_and_rows_have_headers(page):
    assert page.tags.count("th") > page.tags.count("table")
    assert ("th", "scope", "col") in page.attributes
    assert ("th", "scope", "row") in page.attributes


def test_marks_provenance_versions_and_paper_are_on_the_page(results):
    text = "".join(Page(report_html(make_report(results))).text)
    for word in ("regenerated", "WideResNet-28-10", "no code of ODS is public", "torch 2.6", "paper 13.1", "↓32.0"):
        assert word in text, word


def test_what_comes_from_outside_is_escaped(make_result):
    evil = make_result("source", 0.1, {"<script>alert(1)</script>": 40.0}, dataset='folder:/a"><b>', model="<i>net</i>")
    failure = Failure(CellSpec(method="bn", dataset="d", domains=("x",), gamma=0.1), "<script>boom</script>")
    text = report_html(make_report([evil], sections=(), failures=[failure]))
    page = Page(text)
    assert page.tags.count("script") == 1
    assert "i" not in page.tags
    assert "b" not in page.tags


def test_warnings_name_failed_cells_short_domains_and_mixtures(make_result):
    short = make_result("grotta", 0.1, {"fog": 10.0}, warnings=("1 of 1 domains are short",))
    other = make_result("bn", 0.1, {"fog": 10.0}, provenance="published")
    failure = Failure(CellSpec(method="cotta", dataset="cifar10-c", domains=("fog",), gamma=0.1), "out of memory")
    warnings = reader_warnings([short, other], [failure])
    assert warnings[0].startswith("Failed: cotta on cifar10-c, gamma 0.1, stream seed 0, method seed 0: out of memory")
    assert "cifar10-c: 1 of 1 domains are short (GRoTTA)." in warnings
    assert any("published and on regenerated" in warning for warning in warnings)
    assert all(
        warning in "".join(Page(report_html(make_report([], failures=[failure]))).text) for warning in warnings[:1]
    )


def test_a_table_whose_cells_were_made_by_different_code_says_which_rows(make_result):
    def made_by(method, code, torch="2.6"):
        result = make_result(method, 0.1, {"fog": 10.0})
        return replace(result, versions={"grotta": "0.1", "code": code, "torch": torch})

    mixed = [made_by("source", "aaa"), made_by("bn", "bbb"), made_by("grotta", "aaa")]
    [said] = reader_warnings(mixed)
    assert said == (
        "cifar10-c: cells of one table were made by 2 versions of grotta's code (0.1 aaa: Source, GRoTTA; 0.1 bbb: BN)."
    )
    assert said in "".join(Page(report_html(make_report(mixed, sections=()))).text)
    assert reader_warnings(mixed[::2]) == []
    [other] = reader_warnings([made_by("source", "aaa"), made_by("bn", "aaa", torch="2.7")])
    assert other.startswith("The cells were made with 2 different sets of software versions")


def test_folders_of_one_name_are_told_apart_by_the_folder_they_are_in(make_result, write_run):
    made = [make_result("bn", 0.1, {"fog": 1.0}, dataset=f"folder:/data/{place}/photos") for place in ("new", "old")]
    headings = [section.heading for section in distinct(benchmark_sections(load_results(write_run(made))))]
    assert headings == [f"folder:photos, cifar10_resnet: in {place}" for place in ("new", "old")]


def test_variants_have_a_table_of_their_own(results):
    [section] = benchmark_sections(results)
    names = [block.name for block in section.blocks]
    assert names[:2] == ["cifar10-c-main", "cifar10-c-variants"]
    assert [row.label for row in section.blocks[0].rows] == ["Source", "ODS", "GRoTTA"]
    assert [row.label for row in section.blocks[1].rows] == ["GRoTTA", "GRoTTA k=9"]


def test_names_of_folders_make_harmless_ids_and_files(make_result, write_run, tmp_path):
    made = [make_result("bn", 0.1, {"fog": 1.0}, dataset=f"folder:/some/{name}") for name in ("my data", "my-data")]
    files = write_report(make_report(load_results(write_run(made))), tmp_path / "out" / "report.html")
    page = Page(files[0].read_text())
    assert len(page.ids) == len(set(page.ids))
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in page.ids)
    assert {path.parent for path in files} == {tmp_path / "out", tmp_path / "out" / "report-figures"}


def test_setups_are_not_mixed(make_result, write_run):
    made = [make_result("bn", 0.1, {"fog": 10.0}), make_result("bn", 0.1, {"fog": 20.0}, period=10)]
    sections = benchmark_sections(load_results(write_run(made)))
    assert [section.name for section in sections] == ["cifar10-c", "cifar10-c-2"]
    assert {section.blocks[0].rows[0].cells[0].mean for section in sections} == {10.0, 20.0}


def contents(text):
    return re.findall(r'<li><a href="#[^"]*">([^<]*)</a></li>', text)


def test_setups_are_named_by_what_differs_and_only_that(make_result, write_run):
    changes = [{}, {"period": 50}, {"stream": "iid"}, {"preset": "official"}]
    made = [make_result("bn", 0.1, {"fog": 10.0}, **change) for change in changes]
    made.append(make_result("bn", 0.1, {"fog": 10.0}, dataset="cifar100-c", batch_size=16))
    results = load_results(write_run(made))
    text = report_html(make_report(results))
    named = [
        "iid streams, 100 images per period",
        "ptta streams, 50 images per period",
        "ptta streams, 100 images per period",
    ]
    headings = [*(f"cifar10-c, cifar10_resnet: {name}" for name in named), "cifar100-c, cifar10_resnet"]
    assert contents(text)[:4] == headings
    assert re.findall("<h2>(.*?)</h2>", text)[:4] == headings
    markdown = report_markdown(make_report(results), "figures")
    assert [line[3:] for line in markdown.splitlines() if line.startswith("## ")][:4] == headings
    timed = speed_listing([replace(r, seconds=1.0, images_per_second=1.0, peak_memory_mb=1.0) for r in results])
    ours = [f"cifar10-c, {name}" for name in named]
    lines = [*((name, "BN") for name in ours), (ours[-1], "BN official"), ("cifar100-c", "BN")]
    assert [row[:2] for row in timed.rows] == lines
    assert "BN on cifar10-c, iid streams, 100 images per period, no label shift, stream seed 0, method seed 0:" in text


def test_what_is_one_setup_is_named_by_its_data_and_network_alone(results):
    assert contents(report_html(make_report(results)))[0] == "cifar10-c, cifar10_resnet"
    assert list(setup_names(results).values()) == ["cifar10-c"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ([{"batch_size": 64}, {"batch_size": 16}], ["batches of 64", "batches of 16"]),
        ([{"image_size": 224}, {"image_size": 160}], ["image size 224", "image size 160"]),
        ([{"images": 4000}, {"images": 0}], ["4000 images per domain", "all images per domain"]),
        ([{"preset": "paper"}, {"preset": "fast"}], ["preset paper", "preset fast"]),
        ([{"model": "a"}, {"model": "b", "period": 9}], ["a, 100 images per period", "b, 9 images per period"]),
        ([{"gamma": 0.1}, {"gamma": 1e-4}], ["γ = 10⁻¹", "γ = 10⁻⁴"]),
        ([{"gamma": 0.1, "period": 9}, {"gamma": 1e-4}], ["9 images per period", "100 images per period"]),
        ([{"method": "bn"}, {"method": "tent"}], ["", ""]),
    ],
)
def test_groups_are_told_apart_by(changes, named, make_result):
    given = {"method": "bn", "gamma": 0.1, "errors": {"fog": 1.0}}
    assert told_apart([[make_result(**{**given, **change})] for change in changes]) == named


def test_source_models_are_told_apart_by_their_source(make_result):
    domains = ("art_painting", "cartoon", "photo", "sketch")
    made = [
        make_result("bn", 0.1, {d: 40.0 for d in domains if d != source}, dataset="pacs", model=f"resnet50@{source}")
        for source in domains
    ]
    assert list(setup_names(made).values()) == [f"pacs, from {source}" for source in domains]


def test_source_models_of_different_settings_are_not_mixed(make_result):
    domains = ("art_painting", "cartoon", "photo", "sketch")
    made = [
        make_result("bn", 0.1, {d: error for d in domains if d != s}, dataset="pacs", model=f"net@{s}", period=period)
        for s in domains
        for period, error in [(100, 40.0), (50, 20.0)]
    ]
    sections = distinct(benchmark_sections(made))
    headings = ["pacs: 50 images per period", "pacs: 100 images per period"]
    assert [section.heading for section in sections] == headings
    assert [section.blocks[0].cell("BN", "0.1").mean for section in sections] == [20.0, 40.0]
    page = Page(report_html(make_report(made)))
    assert len(page.ids) == len(set(page.ids))


def test_sections_of_one_heading_are_told_apart_by_the_cells_behind_them(make_result):
    tables = [main_table([make_result("bn", 0.1, {"fog": 1.0}, batch_size=size)], name=f"t{size}") for size in (64, 8)]
    given = [Section(table.name, "Main table", "", (table,), "cifar10-c, 1 domain") for table in tables]
    alone = Section("x", "Ablation", "", (tables[0],), "cifar10-c, 1 domain")
    assert [section.heading for section in distinct([*given, alone])] == [
        "Main table: cifar10-c, 1 domain, batches of 64",
        "Main table: cifar10-c, 1 domain, batches of 8",
        "Ablation: cifar10-c, 1 domain",
    ]


def test_files_are_the_same_bytes_for_the_same_results(results, tmp_path):
    for name, given in [("one", results), ("two", results[::-1])]:
        write_report(make_report(given), tmp_path / name / "report.html")
    first = sorted(path for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert {path.suffix for path in first} == {".html", ".md", ".csv", ".svg"}
    for path in first:
        other = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert path.read_bytes() == other.read_bytes()


def test_markdown_has_all_tables_figures_and_commands(results):
    report = make_report(results)
    text = report_markdown(report, "report-figures")
    assert all(table.title in text for table in report.tables)
    assert all(f"report-figures/{figure.name}.svg" in text for figure in report.figures)
    assert all(command(result.spec) in text for result in results)
    assert "<svg" not in text
    assert "## Data, networks, versions" in text
    assert "| cifar10-c | regenerated | cifar10_resnet | abababababab | CIFAR-10-C as published" in text
    assert "- Software: grotta 0.1, torch 2.6." in text


def test_cells_csv_reads_back(results):
    lines = list(csv.DictReader(io.StringIO(cells_csv(results))))
    assert tuple(lines[0]) == CELL_COLUMNS
    assert [float(line["error_of_all_images"]) for line in lines] == [result.error for result in results]
    means = [fmean(result.domain_errors.values()) for result in results]
    assert [float(line["error_mean_over_domains"]) for line in lines] == means
    assert [line["stream_hash"] for line in lines] == [result.stream_hash for result in results]


def test_cells_without_a_result_are_counted(results):
    runs = results[0].directory.parent.parent
    (runs / "cells" / "0123456789abcdef").mkdir()
    text = write_report(directory_report(runs), runs / "report.html", formats=["html"])[0].read_text()
    assert "failed or are damaged: 1." in text


def test_a_report_of_nothing_is_a_page(tmp_path):
    files = write_report(make_report([]), tmp_path / "report.html")
    Page(files[0].read_text())


def parsed(line):
    """The spec that ``grotta run`` would make of a command line."""
    from grotta.commands import run

    seen = {}

    def remember(plan, *args, **kwargs):
        [seen["spec"]] = plan.specs
        raise typer.Exit

    app = typer.Typer()
    app.command()(run.run)
    words = shlex.split(line)
    assert words[:2] == ["grotta", "run"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grotta.bench.run.run_plan", remember)
        CliRunner().invoke(app, words[2:], catch_exceptions=False)
    return seen["spec"]


@pytest.mark.parametrize(
    "fields",
    [
        {"gamma": 1e-4},
        {"gamma": 0.123456789, "seed": 3, "stream_seed": 2, "period": 50, "batch_size": 16, "stream": "exhaustive"},
        {
            "gamma": 0.1,
            "method": "grotta",
            "options": {"k": 10, "affinity": "rbf", "output": None, "train": False, "lam": 0.6},
        },
        {"gamma": 0.1, "method": "grotta", "preset": "official", "domains": ("snow", "fog")},
    ],
)
def test_the_command_gives_the_same_cell(fields, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"method": "source", "dataset": "fashion-c", "domains": ("fog",), "model": "fashion_resnet8", **fields}
    spec = CellSpec(**given)
    assert parsed(command(spec)).id == spec.id


def invoke(*words):
    app = typer.Typer()
    app.command()(report_command.report)
    return CliRunner().invoke(app, [*map(str, words)])


def test_grotta_report_writes_what_is_asked_for(results, tmp_path):
    runs = results[0].directory.parent.parent
    outcome = invoke(runs, "--out", tmp_path / "page.html", "--format", "html", "--json")
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["files"] == [str(tmp_path / "page.html")]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["page.html"]
    assert invoke(runs).stdout.splitlines()[0] == str(runs / "report.html")


def test_a_damaged_cell_is_said_and_not_counted(results):
    runs = results[0].directory.parent.parent
    (results[0].directory / "records.npz").write_bytes(b"nonsense")
    outcome = invoke(runs, "--format", "html")
    assert outcome.exit_code == 0
    assert f"cell in {results[0].directory} is damaged" in outcome.stderr.replace("\n", "")
    text = (runs / "report.html").read_text()
    assert "failed or are damaged: 1." in text
    assert f"cell-{results[0].spec.id}" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "pdf"], "format"),
        (["elsewhere"], "no cells"),
        (["runs", "--out", "x.md"], "out must end in .html"),
        (["runs", "--out", "x.csv", "--format", "csv"], "got 'x.csv'"),
    ],
)
def test_grotta_report_says_what_is_wrong(words, said, results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = invoke(*words)
    assert isinstance(outcome.exception, ValueError)
    assert said in str(outcome.exception)
    assert not list(tmp_path.glob("x.*"))


def test_a_report_that_does_not_fit_on_the_disk_names_its_file(results, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("grotta._files.write", full)
    with pytest.raises(OSError, match="No space left on device; the results of the cells are kept") as caught:
        write_report(make_report(results), tmp_path / "report.html")
    assert str(tmp_path / "report.html") in str(caught.value)


def test_the_tables_of_a_run_are_those_of_the_report_with_its_cells(results, make_result):
    report = make_report(results)
    now = [result for result in results if result.spec.method == "source"]
    [table] = report.main_tables(now)
    assert table is report.sections[0].tables[0]
    assert [section.name for section in report.showing(now)] == ["cifar10-c"]
    assert report.main_tables([make_result("bn", 0.5, {"fog": 1.0})]) == []
