"""The paper's printed numbers are typed in right: they add up as far as the paper's own do."""

from statistics import fmean

import pytest

from grotta.paper.recipes import all_printed
from grotta.report.printed import GAIN, PrintedTable

PRINTED = all_printed()

GAMMAS = ("0.1", "0.01", "0.001", "0.0001")
METHODS = ("source", "bn", "pl", "tent", "lame", "cotta", "ods", "note", "rotta", "grotta")
CORRUPTED = ("cifar10-c", "cifar100-c", "imagenet-c")
DOMAINS = ("pacs", "officehome", "domainnet")
# A mean of rounded numbers is at most half a digit away from the mean itself, and so is the rounded mean.
ROUNDING = 0.1 + 1e-9


def row_means(table: PrintedTable):
    for row, numbers in table.rows.items():
        yield row, fmean(n for n in numbers[:-1] if n is not None), numbers[-1]


def test_the_main_table_has_ten_methods_four_gammas_and_six_data_sets():
    for dataset in (*CORRUPTED, *DOMAINS):
        table = PRINTED.tables[f"main/{dataset}"]
        assert tuple(table.rows) == METHODS
        assert table.columns == (*GAMMAS, "Avg")
        assert all(len(numbers) == 5 for numbers in table.rows.values())


@pytest.mark.parametrize("name", list(PRINTED.tables))
def test_row_averages_are_right_but_for_known_slips(name):
    table = PRINTED.tables[name]
    wrong = {row for row, mean, printed in row_means(table) if abs(mean - printed) > ROUNDING}
    assert wrong == ({"real"} if name == "transfer/domainnet/0.0001/lame" else set())


def test_the_slip_in_the_lame_table_is_the_misprinted_average():
    table = PRINTED.tables["transfer/domainnet/0.0001/lame"]
    [slip] = table.slips
    means = {row: mean for row, mean, _ in row_means(table)}
    assert table.value("real", "Avg") == 91.5
    assert means["real"] == pytest.approx(slip.consistent, abs=0.05)
    assert fmean(means[row] for row in means if row != "Avg") == pytest.approx(table.value("Avg", "Avg"), abs=0.1)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "pl"])
def test_domainnet_columns_average_to_their_last_row(method):
    table = PRINTED.tables[f"transfer/domainnet/0.0001/{method}"]
    for column in table.columns[:-1]:
        numbers = [table.value(row, column) for row in table.rows if row != "Avg"]
        mean = fmean(n for n in numbers if n is not None)
        assert abs(mean - table.value("Avg", column)) <= ROUNDING
        assert table.value(column, column) is None


def test_detailed_tables_agree_with_the_main_one():
    main = PRINTED.tables["main/imagenet-c"]
    detailed = PRINTED.tables["domains/imagenet-c/0.0001"]
    assert [detailed.value(m, "Avg") for m in METHODS] == [main.value(m, "0.0001") for m in METHODS]
    main = PRINTED.tables["main/domainnet"]
    for method in METHODS:
        if method != "pl":
            transfer = PRINTED.tables[f"transfer/domainnet/0.0001/{method}"]
            assert transfer.value("Avg", "Avg") == main.value(method, "0.0001")
    main = PRINTED.tables["main/cifar100-c"]
    for row in ("bn", "grotta"):
        assert PRINTED.tables["ablation"].rows[row] == main.rows[row]
    assert PRINTED.tables["affinity"].rows["k=5"] == main.rows["grotta"]


def test_corruptions_stand_in_the_order_of_the_stream():
    from grotta.data import CORRUPTIONS

    assert PRINTED.tables["domains/imagenet-c/0.0001"].columns == (*CORRUPTIONS, "Avg")


GAINS = [name for name in list(PRINTED.tables) if PRINTED.tables[name].gain is not None]


def test_every_gain_that_the_paper_prints_is_there():
    printed = [14.6, 17.5, 10.5, 6.1, 4.5, 9.9, 21.0, 15.2, 17.5]  # Tables 2 (six), 3, 4 and 7
    assert [PRINTED.tables[name].gain for name in GAINS] == printed


def test_the_gain_of_table_4_is_that_of_the_two_best_methods():
    transfer = [PRINTED.tables[name] for name in list(PRINTED.tables) if name.startswith("transfer/domainnet/0.0001/")]
    best, second = sorted(table.value("Avg", "Avg") for table in transfer)[:2]
    table = PRINTED.tables["transfer/domainnet/0.0001/grotta"]
    assert round(second - best, 1) == table.gain == table.gain_of("Avg")
    assert table.gain_of("real") is None


@pytest.mark.parametrize("name", [name for name in GAINS if not name.startswith("transfer")])
def test_printed_gains_are_the_difference_of_the_two_best_averages_but_for_one(name):
    table = PRINTED.tables[name]
    best, second = sorted(numbers[-1] for numbers in table.rows.values())[:2]
    known = [slip.consistent for slip in table.slips if slip.column == GAIN]
    assert [round(second - best, 1)] == (known or [table.gain])


def test_every_slip_names_a_number_that_was_printed():
    slips = [(table, slip) for table in PRINTED.tables.values() for slip in table.slips]
    for table, slip in slips:
        printed = table.gain if slip.column == GAIN else table.value(slip.row, slip.column)
        assert printed is not None
        assert table.note(slip.row, slip.column) == slip.note
        assert printed != slip.consistent
    doubted = {(table.name, slip.row) for table, slip in slips}
    assert doubted == {
        ("transfer/domainnet/0.0001/lame", "real"),
        ("main/domainnet", "grotta"),
        ("affinity", "k=1"),
        ("orders", "ods"),
        ("orders", "note"),
    }


def test_what_the_paper_did_not_print_is_none():
    assert PRINTED.tables.get("main/fashion-c") is None
    assert PRINTED.tables["main/cifar10-c"].value("eata", "0.1") is None
    assert PRINTED.tables["main/cifar10-c"].value("bn", "0.5") is None
    assert "fashion-c" not in {**PRINTED.networks, **PRINTED.data}
    assert PRINTED.networks["imagenet-c"].startswith("ResNet-50")
