"""Tables against cells worked out by hand."""

import csv
import io
from dataclasses import replace
from functools import partial

import pytest
from rich.console import Console

from grotta.paper.recipes import all_printed
from grotta.report.document import Report, Section
from grotta.report.labels import row_keys
from grotta.report.render.csv import TABLE_COLUMNS, tables_csv
from grotta.report.render.html import report_html
from grotta.report.render.markdown import to_markdown
from grotta.report.render.notation import footnotes, number
from grotta.report.render.terminal import print_block
from grotta.report.sections import tables
from grotta.report.sections.listings import unlabelled_listing, used_listing
from grotta.report.sections.setups import by_setup
from grotta.report.table import Cell, Entry, pivot

PRINTED = all_printed()
main_table = partial(tables.main_table, printed=PRINTED)
domain_table = partial(tables.domain_table, printed=PRINTED)
transfer_table = partial(tables.transfer_table, printed=PRINTED)


def to_html(table):
    return report_html(Report("t", (Section("s", "S", "", (table,)),), used_listing([]), ()))


@pytest.fixture
def three_methods(make_result):
    """Errors chosen so that every mean is easily done in the head; given in no order."""
    return [
        make_result("grotta", 0.1, {"fog": 10.0, "snow": 20.0}),
        make_result("bn", 0.0001, {"fog": 70.0, "snow": 80.0}),
        make_result("source", 0.1, {"fog": 40.0, "snow": 50.0}),
        make_result("grotta", 0.0001, {"fog": 4.0, "snow": 6.0}),
        make_result("source", 0.0001, {"fog": 41.0, "snow": 50.0}),
        make_result("bn", 0.1, {"fog": 30.0, "snow": 40.0}),
    ]


def errors(table):
    return {row.label: [cell.mean for cell in row.cells] for row in table.rows}


def test_main_table_of_three_methods(three_methods):
    table = main_table(three_methods)
    assert table.columns == ("0.1", "0.0001", "Avg")
    assert table.heads == ("10⁻¹", "10⁻⁴", "Avg")
    assert errors(table) == {"Source": [45.0, 45.5, 45.25], "BN": [35.0, 75.0, 55.0], "GRoTTA": [15.0, 5.0, 10.0]}
    assert list(errors(table)) == ["Source", "BN", "GRoTTA"]


def test_best_second_and_gain(three_methods):
    table = main_table(three_methods)
    ranks = {row.label: [cell.rank for cell in row.cells] for row in table.rows}
    assert ranks == {"Source": ["", "second", "second"], "BN": ["second", "", ""], "GRoTTA": ["best"] * 3}
    gains = [[cell.gain for cell in row.cells] for row in table.rows]
    # 45.25 prints as 45.2 (half to even), and 45.2 - 10.0 = 35.2
    assert gains == [[None] * 3, [None] * 3, [None, None, 35.2]]


def test_the_paper_stands_beside_with_the_difference(three_methods):
    cell = main_table(three_methods).cell("GRoTTA", "0.1")
    assert (cell.paper, cell.difference) == (13.1, 1.9)


def test_the_papers_average_stands_only_beside_one_over_the_same_gammas(three_methods, make_result):
    assert main_table(three_methods).cell("GRoTTA", "Avg").paper is None
    more = [make_result("grotta", gamma, {"fog": 10.0, "snow": 10.0}) for gamma in (0.01, 0.001)]
    cell = main_table([*three_methods, *more]).cell("GRoTTA", "Avg")
    assert (cell.mean, cell.paper, cell.difference) == (10.0, 7.7, 2.3)


def test_the_papers_gain_stands_beside_ours(make_result):
    made = [
        make_result(method, gamma, {"fog": error}, dataset="domainnet")
        for method, error in [("bn", 60.0), ("grotta", 50.0)]
        for gamma in (0.1, 0.01, 0.001, 0.0001)
    ]
    table = main_table(made)
    cell = table.cell("GRoTTA", "Avg")
    assert (cell.gain, cell.paper_gain, table.cell("BN", "Avg").paper_gain) == (10.0, 9.9, None)
    assert "**50.0** ↓10.0 (63.8 ↓9.9?, −13.8)" in to_markdown(table)
    assert "? GRoTTA, the paper's gain: printed as 9.9; the two averages differ by 9.5." in footnotes(table)
    assert "paper 63.8 ↓9.9<abbr" in to_html(table)
    lines = csv.DictReader(io.StringIO(tables_csv([table])))
    line = next(x for x in lines if (x["row"], x["column"]) == ("GRoTTA", "Avg"))
    assert (line["gain"], line["paper_gain"]) == ("10.0", "9.9")
    assert cell.paper_gain_note == line["paper_gain_note"] == "printed as 9.9; the two averages differ by 9.5"


def test_the_papers_gain_is_a_note_where_its_average_is_over_other_columns(three_methods, make_result):
    said = "↓ Gain over the second best. The paper's, in its average over all its columns, is 14.6."
    assert said in footnotes(main_table(three_methods))
    variants = [make_result("grotta", 0.1, {"fog": e}, options=o) for e, o in [(1.0, {}), (2.0, {"k": 9})]]
    assert "↓ Gain over the second best." in footnotes(main_table(variants))


def test_mean_and_deviation_over_runs(make_result):
    results = [
        make_result(method, gamma, {"fog": error}, seed=seed, stream_seed=seed)
        for method, gamma, values in [
            ("bn", 0.1, (50.0, 54.0)),
            ("bn", 0.01, (70.0, 70.0)),
            ("grotta", 0.1, (9.0, 9.0)),
        ]
        for seed, error in enumerate(values)
    ]
    table = main_table(results)
    assert (table.cell("BN", "0.1").mean, table.cell("BN", "0.1").std) == (52.0, pytest.approx(8**0.5))
    # by run, the averages over gamma are 60 and 62
    assert (table.cell("BN", "Avg").mean, table.cell("BN", "Avg").std) == (61.0, pytest.approx(2**0.5))
    assert number(table.cell("BN", "0.1")) == "52.0 ± 2.8"
    assert number(table.cell("GRoTTA", "0.1")) == "9.0 ± 0.0"


def test_missing_cells_are_blank_and_so_is_their_average(three_methods):
    table = main_table([r for r in three_methods if (r.spec.method, r.spec.gamma) != ("bn", 0.1)])
    assert errors(table)["BN"] == [None, 75.0, None]
    assert [number(cell) for cell in table.rows[1].cells] == ["", "75.0", "–*"]
    assert table.cell("BN", "0.1").difference is None
    assert r"| BN | (52.2) | 75.0 (74.6, +0.4) | –\* |" in to_markdown(table)


def test_what_lacks_a_gamma_is_marked_in_the_average_and_so_is_the_gain_that_leaves_it_out(three_methods):
    lacking = main_table([r for r in three_methods if (r.spec.method, r.spec.gamma) != ("source", 0.1)])
    gain = lacking.cell("GRoTTA", "Avg")
    assert (lacking.cell("Source", "Avg").complete, gain.gain, gain.gain_of_all) == (False, 45.0, False)
    said = "–* A row that lacks a number in a column has no average, and is not ranked there."
    limited = "↓ Gain over the second best; *: of the rows that are ranked there, not of all."
    assert said in footnotes(lacking)
    assert any(note.startswith(limited) for note in footnotes(lacking))
    assert not any(note.startswith("* ") for note in footnotes(lacking))
    assert r"**10.0** ↓45.0\* |" in to_markdown(lacking)
    assert '<td data-value="">–<abbr title="no number in every column, so no average">*</abbr></td>' in to_html(lacking)
    assert 'ranked here, not of all">↓45.0*</span>' in to_html(lacking)
    console = Console(width=120, file=io.StringIO())
    print_block(console, lacking)
    assert "10.0 ↓45.0*" in console.file.getvalue()
    whole = main_table(three_methods)
    assert whole.cell("GRoTTA", "Avg").gain_of_all
    assert not any(mark in note for note in footnotes(whole) for mark in (said, limited))


def test_a_gain_over_rows_of_which_one_lacks_a_stream_is_marked(make_result):
    runs = [("bn", 20.0, (0, 1)), ("grotta", 5.0, (0, 1)), ("rotta", 10.0, (0,))]
    table = main_table([make_result(m, 0.1, {"fog": error}, seed=seed) for m, error, seeds in runs for seed in seeds])
    assert (table.cell("GRoTTA", "0.1").gain, table.cell("GRoTTA", "0.1").gain_of_all) == (15.0, False)


def test_a_tie_for_best_is_bold_twice_and_has_no_second(make_result):
    results = [
        make_result("bn", 0.1, {"fog": 18.64}),
        make_result("rotta", 0.1, {"fog": 18.61}),
        make_result("grotta", 0.1, {"fog": 19.0}),
    ]
    cells = [row.cells[0] for row in main_table(results).rows]
    assert [(cell.rank, cell.gain) for cell in cells] == [("best", None), ("best", None), ("", None)]


def test_a_tie_for_second_is_underlined_twice(make_result):
    results = [make_result(m, 0.1, {"fog": e}) for m, e in [("bn", 30.0), ("rotta", 30.0), ("grotta", 10.0)]]
    assert [row.cells[0].rank for row in main_table(results).rows] == ["second", "second", "best"]


def test_a_single_gamma_has_no_average_and_a_single_row_no_rank(make_result):
    table = main_table([make_result("grotta", 0.1, {"fog": 10.0})])
    assert table.columns == ("0.1",)
    assert (table.rows[0].cells[0].rank, table.rows[0].cells[0].gain) == ("", None)


def test_what_lacks_a_stream_of_its_column_is_marked_and_not_ranked(make_result):
    results = [make_result("bn", 0.1, {"fog": 20.0}, stream_seed=seed) for seed in (0, 1)]
    results += [make_result("source", 0.1, {"fog": 30.0}, stream_seed=seed) for seed in (0, 1)]
    table = main_table([*results, make_result("grotta", 0.1, {"fog": 5.0})])
    lacking = table.cell("GRoTTA", "0.1")
    assert (lacking.complete, lacking.rank, number(lacking)) == (False, "", "5.0*")
    assert table.cell("BN", "0.1").rank == "best"
    assert any(note.startswith("* ") for note in footnotes(table))


def test_domain_table_is_in_stream_order_and_averages_domains(three_methods):
    table = domain_table(three_methods, 0.0001)
    assert table.columns == ("fog", "snow", "Avg")
    assert errors(table)["GRoTTA"] == [4.0, 6.0, 5.0]
    assert table.paper is None


def test_domain_table_of_imagenet_has_the_papers_numbers(make_result):
    table = domain_table([make_result("grotta", 1e-4, {"fog": 20.0}, dataset="imagenet-c")], 1e-4)
    assert table.cell("GRoTTA", "fog").paper == 21.4


def source_models(make_result, method, gamma, error):
    domains = ("art_painting", "cartoon", "photo", "sketch")
    for source in domains:
        stream = {target: float(error(source, target)) for target in domains if target != source}
        yield make_result(method, gamma, stream, dataset="pacs", model=f"resnet50@{source}.safetensors")


def test_source_models_are_averaged_in_the_main_table_of_pacs(make_result):
    start = {"art_painting": 10, "cartoon": 20, "photo": 30, "sketch": 40}
    results = list(source_models(make_result, "bn", 0.1, lambda source, target: start[source]))
    assert len(by_setup(results)) == 4
    table = main_table(results)
    cell = table.cell("BN", "0.1")
    assert (cell.mean, cell.std, cell.complete, cell.paper) == (25.0, None, True, 57.1)


def test_transfer_table_has_no_diagonal_and_averages_both_ways(make_result):
    start = {"art_painting": 1, "cartoon": 2, "photo": 3, "sketch": 4}
    results = list(source_models(make_result, "bn", 0.1, lambda source, target: 10 * start[source] + start[target]))
    table = transfer_table(results, "bn", 0.1)
    assert errors(table) == {
        "art_painting": [None, 12.0, 13.0, 14.0, 13.0],
        "cartoon": [21.0, None, 23.0, 24.0, pytest.approx(68 / 3)],
        "photo": [31.0, 32.0, None, 34.0, pytest.approx(97 / 3)],
        "sketch": [41.0, 42.0, 43.0, None, 42.0],
        "Avg": [31.0, pytest.approx(86 / 3), pytest.approx(79 / 3), 24.0, pytest.approx(27.5)],
    }
    assert all(cell.rank == "" and cell.complete for row in table.rows for cell in row.cells)


def test_rows_are_in_the_papers_order_with_variants_in_numerical_order(make_result):
    given = [("grotta", {"k": 10}), ("grotta", {"k": 5}), ("eata", {}), ("grotta", {}), ("ods", {}), ("source", {})]
    results = [make_result(method, 0.1, {"fog": 1.0}, options=options) for method, options in given]
    assert row_keys(results) == ["source", "ods", "grotta", "grotta k=5", "grotta k=10", "eata"]


def test_labels_do_not_make_rows(make_result):
    results = [make_result("bn", gamma, {"fog": 1.0}, label=f"row {gamma}") for gamma in (0.1, 0.01)]
    assert [row.label for row in main_table(results).rows] == ["BN"]


def test_notes_say_what_each_side_used(make_result):
    notes = main_table([make_result("ods", 0.1, {"fog": 1.0})]).notes
    assert "regenerated" in notes[0]
    assert "cifar10_resnet" in notes[0]
    assert "WideResNet-28-10" in notes[1]
    assert notes[2].startswith("† Reconstruction")


def test_notes_say_where_the_paper_has_no_numbers(make_result):
    made = [make_result("bn", gamma, {"fog": 1.0}, dataset="fashion-c") for gamma in (0.1, 1e-4)]
    said = "The paper has no numbers for fashion-c."
    assert said in main_table(made).notes
    assert said in domain_table(made, 0.1).notes
    assert not any("no numbers" in note for note in main_table([make_result("bn", 0.1, {"fog": 1.0})]).notes)


def test_tables_by_domain_say_what_each_side_used_too(make_result):
    made = [make_result(method, 1e-4, {"fog": 1.0}, dataset="imagenet-c", image_size=160) for method in ("bn", "ods")]
    notes = domain_table(made, 1e-4).notes
    assert "imagenet-c, regenerated" in notes[0]
    assert "100 images per stream of 160 × 160 pixels; network cifar10_resnet" in notes[0]
    assert notes[1].startswith("Paper: ImageNet-C as published")
    assert notes[2].startswith("† Reconstruction")
    # the paper prints no such table of CIFAR-10-C, whose pictures have one size
    [ours] = domain_table([make_result("bn", 1e-4, {"fog": 1.0})], 1e-4).notes
    assert ours.startswith("Ours: cifar10-c")
    assert "pixels" not in ours


def test_transfer_tables_say_what_was_used_and_mark_the_reconstruction(make_result):
    results = list(source_models(make_result, "ods", 0.1, lambda source, target: 50))
    table = transfer_table(results, "ods", 0.1)
    assert "pacs, ODS †: error" in table.title
    for note, source in zip(table.notes, ("art_painting", "cartoon", "photo", "sketch")):
        assert note.startswith("Ours: pacs")
        assert f"network resnet50@{source}.safetensors" in note
    assert table.notes[-1].startswith("† Reconstruction")


def test_markdown_of_a_small_table(make_result):
    results = [make_result(m, 0.1, {"fog": e}, dataset="fashion-c") for m, e in [("ods", 30.0), ("grotta", 10.5)]]
    text = to_markdown(main_table(results, title="T"))
    assert text.splitlines()[:6] == [
        "**T**",
        "",
        "| Method | 10⁻¹ |",
        "|:---|---:|",
        "| ODS † | <ins>30.0</ins> |",
        "| GRoTTA | **10.5** ↓19.5 |",
    ]


def test_markdown_marks_the_papers_slips(make_result):
    entries = [Entry("k=1", "0.1", 40.0, make_result("grotta", 0.1, {"fog": 40.0}))]
    table = pivot(entries, name="n", title="t", columns=["0.1"], rows=["k=1"], paper=PRINTED.tables.get("affinity"))
    text = to_markdown(table)
    assert "| k=1 | 40.0 (83.8?, −43.8) |" in text
    assert "? k=1, paper: does not follow from the equations." in text


def test_csv_has_a_line_a_number_with_its_cells_and_streams(three_methods):
    lines = list(csv.DictReader(io.StringIO(tables_csv([main_table(three_methods)]))))
    assert len(lines) == 9
    assert tuple(lines[0]) == TABLE_COLUMNS
    line = next(line for line in lines if (line["row"], line["column"]) == ("GRoTTA", "0.1"))
    result = three_methods[0]
    assert (line["mean_over_domains"], line["std"], line["paper"], line["difference"]) == ("15.0", "", "13.1", "1.9")
    assert (line["cells"], line["streams"]) == (result.spec.id, result.stream_hash)


def test_the_bytes_do_not_depend_on_the_order_of_the_results(three_methods):
    first, second = main_table(three_methods), main_table(three_methods[::-1])
    assert to_markdown(first) == to_markdown(second)
    assert tables_csv([first]) == tables_csv([second])


def test_the_terminal_shows_bold_underline_gain_and_paper(three_methods):
    console = Console(width=120, force_terminal=True, color_system="standard", record=True, file=io.StringIO())
    print_block(console, main_table(three_methods))
    text = console.export_text(styles=False)
    assert "15.0 (13.1, +1.9)" in text
    assert "10.0 ↓35.2" in text
    assert "regenerated" in text


def test_the_terminal_underlines_the_number_alone_and_keeps_titles_on_a_line(make_result):
    results = [make_result(m, 0.1, {"fog": e}, dataset="fashion-c") for m, e in [("bn", 9.0), ("grotta", 5.0)]]
    console = Console(width=120, force_terminal=True, color_system="standard", file=io.StringIO())
    print_block(console, main_table(results))
    text = console.file.getvalue()
    assert "\x1b[4m9.0\x1b[0m" in text
    assert text.splitlines()[0] == "\x1b[1mfashion-c: error (%) by method and γ, mean over domains\x1b[0m"


def test_a_blank_is_not_a_zero():
    assert number(Cell()) == ""
    assert number(Cell(0.0)) == "0.0"


def test_streams_of_another_kind_have_no_numbers_of_the_paper_beside_them(make_result):
    results = [make_result(method, 0.1, {"fog": 10.0}, stream="iid") for method in ("source", "bn")]
    table = main_table(results)
    assert table.heads == ("iid",)
    assert [row.label for row in table.rows] == ["Source", "BN"]
    assert all(cell.paper is None for row in table.rows for cell in row.cells)
    assert "The paper has no numbers for these streams: all of its own are ptta streams." in table.notes
    assert domain_table(results, 0.1).title == "cifar10-c: error (%) by domain at no label shift, in stream order"


class AsciiFile(io.StringIO):
    """What a terminal without Unicode is: it refuses any other character."""

    encoding = "ascii"

    def write(self, text):
        text.encode("ascii")
        return super().write(text)


def test_a_terminal_without_unicode_gets_a_table_too(three_methods, make_result):
    results = [*three_methods, make_result("ods", 0.1, {"fog": 60.0, "snow": 70.0})]
    console = Console(file=AsciiFile(), width=140)
    print_block(console, main_table(results))
    text = console.file.getvalue()
    assert "1e-1" in text
    assert "ODS +" in text
    assert "15.0 (13.1, +1.9)" in text
    assert "10.0 v35.2" in text
    assert "?" not in text


def test_notes_and_titles_name_a_folder_by_its_last_part_alone(make_result):
    made = [make_result("bn", 0.1, {"fog": 1.0}, dataset="folder:/home/somebody/photos", provenance="original")]
    table = main_table(made)
    assert table.title.startswith("folder:photos: error")
    assert table.notes[0].startswith("Ours: folder:photos, original pictures")
    assert "The paper has no numbers for folder:photos." in table.notes
    assert "somebody" not in to_markdown(table) + to_html(table)


def test_without_printed_numbers_nothing_is_said_of_the_paper(three_methods):
    table = tables.main_table(three_methods)
    assert table.paper is None
    assert not any("aper" in note for note in footnotes(table))


def test_notes_say_when_pictures_came_more_than_once_and_what_to_do(make_result):
    made = make_result("bn", 0.1, {"fog": 1.0}, dataset="folder:/a/photos", provenance="original")
    table = main_table([replace(made, distinct_images=63)])
    assert "100 images per stream of 224 × 224 pixels, 63 different ones; network" in table.notes[0]
    assert table.notes[1] == (
        "Some pictures came more than once: ptta streams draw with replacement. --stream exhaustive or recorded shows "
        "each picture once."
    )
    assert not any("replacement" in note for note in main_table([made]).notes)


def test_notes_name_weights_by_the_last_part_of_their_path_alone(make_result):
    made = [make_result("bn", 0.1, {"fog": 1.0}, model="resnet20@/home/somebody/nets/gate.safetensors")]
    table = main_table(made)
    assert "network resnet20@gate.safetensors;" in table.notes[0]
    assert "somebody" not in to_markdown(table) + to_html(table)


def test_a_recorded_stream_has_neither_gamma_nor_periods(make_result):
    table = main_table([make_result("bn", 0.1, {"gate": 1.0}, stream="recorded", dataset="folder:/a/gate")])
    assert table.title == "folder:gate: error (%) by method, mean over domains"
    assert "recorded streams, batches of" in table.notes[0]


def test_what_is_measured_without_labels_has_a_column_a_method_and_few_rows(make_result):
    def unlabelled(method, seed, **measures):
        shares = {f"class {number}": 0.0 for number in range(1000)} | {"class 7": 0.75, "class 999": 0.25}
        made = make_result(method, 0.1, {"gate": 1.0}, stream="recorded", seed=seed)
        return replace(made, measures={"agreement": 0.5 + 0.25 * seed, "entropy": 2.0, **measures, **shares})

    results = [unlabelled("source", 0), unlabelled("source", 1), unlabelled("bn", 0, estimated_accuracy=0.5)]
    listing = unlabelled_listing(results)
    assert listing.heads == ("Measure", "Source", "BN")
    rows = {name: values for name, *values in listing.rows}
    assert rows["Agreement with the source, %"] == [62.5, 50.0]  # the mean of two runs
    assert rows["Entropy, nats"] == [2.0, 2.0]
    assert rows["Accuracy by its own estimate, %"] == [None, 50.0]
    assert rows["Predicted 7, %"] == [75.0, 75.0]
    assert rows["Predicted another of 980 classes, %"] == [0.0, 0.0]
    assert len(rows) == 3 + 20 + 1
    assert unlabelled_listing([make_result("bn", 0.1, {"fog": 1.0})]) is None
