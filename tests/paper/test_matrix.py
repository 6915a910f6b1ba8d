"""The regret matrix: situations that can be run, regrets on what counts, and the command."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from grotta.bench.spec import CellSpec
from grotta.bench.store.results import load_results
from grotta.cli import main
from grotta.paper import matrix, situations
from grotta.paper.matrix import choose, matrix_blocks, matrix_cells, matrix_scope
from grotta.paper.recipe import by_id
from grotta.paper.scope import Scope
from grotta.paper.situations import SITUATIONS, Situation
from grotta.report.document import Listing
from grotta.report.figure import Figure
from grotta.report.printed import NOTHING_PRINTED

TINY = CellSpec(method="source", dataset="fashion-c", model="fashion_resnet8", domains=("clean",), gamma=0.1, images=64)


def test_situations_have_names_of_their_own_and_eight_are_quick():
    assert 40 <= len(SITUATIONS) == len({one.name for one in SITUATIONS}) == len({one.base for one in SITUATIONS})
    quick = [one for one in SITUATIONS if one.quick]
    assert len(quick) == 8
    assert all(one.bundled for one in quick)


def test_the_line_of_the_guide_is_a_situation():
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [line] = re.findall(r"`(_situation\(.*?\))`", guide)
    one = eval(line, vars(situations))
    assert (one.name, one.base.dataset, one.base.period) == ("fashion, period 20", "fashion-c", 20)
    assert one.missing() == ""


def test_situations_differ_in_all_that_a_user_may_not_know():
    def values(name):
        return {getattr(one.base, name) for one in SITUATIONS}

    assert values("gamma") >= {1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0}
    assert values("stream") == {"ptta", "iid", "recorded"}
    assert values("batch_size") == {1, 16, 64, 256}
    assert values("images") >= {0, 500, 1000}
    assert values("dataset") == {"fashion-c", "cifar10-c", "cifar100-c", "imagenet-c", "pklot"}  # 10, 100, 1000, 2


def test_no_situation_has_a_corruption_that_is_set_aside_for_choosing_settings():
    domains = {domain for one in SITUATIONS for domain in one.base.domains}
    assert not [name for name in domains if name.startswith(("shot_noise", "contrast", "frost"))]


def test_bundled_situations_lack_nothing():
    assert {one.name: one.missing() for one in SITUATIONS if one.bundled and one.missing()} == {}


def test_what_lacks_something_is_named_and_left_out():
    here, lost = Situation("here", TINY), Situation("lost", replace(TINY, model="resnet20@weights/none.th"))
    found, lacking = choose([here, lost], quick=False, full=True)
    assert found == [here]
    assert list(lacking) == ["lost"]
    assert "weights/none.th" in lacking["lost"]


def test_quick_and_full_exclude_each_other():
    with pytest.raises(ValueError, match="quick must be left out with full"):
        choose([], quick=True, full=True)


def test_a_row_is_a_method_and_its_preset():
    scope = Scope((TINY, replace(TINY, gamma=1.0)), ("source", "grotta fast"), (0.1,), seeds=2)
    cells = matrix_cells(scope)
    assert len(set(cells)) == 2 * 2 * 2
    assert {(spec.method, spec.preset) for spec in cells} == {("source", "paper"), ("grotta", "fast")}
    assert {(spec.seed, spec.stream_seed) for spec in cells} == {(0, 0), (1, 1)}
    assert Scope.from_dict(scope.to_dict()) == scope
    with pytest.raises(ValueError, match="preset must be one of .* for method 'bn', got 'fast'"):
        matrix_scope(methods=["bn fast"], quick=True)


def test_regrets_are_over_seeds_and_leave_garbage_out(make_result, monkeypatch):
    garbage = Situation("garbage", replace(TINY, domains=("clean", "noise", "fog:Bag", "fog")))
    monkeypatch.setattr(matrix, "SITUATIONS", (Situation("clean", TINY), garbage))
    scope = Scope((TINY, garbage.base), ("source", "bn"), (0.1,), seeds=2)
    made = {  # situation -> row -> errors of the scored domains, then of garbage
        "clean": {"source": (8.0, 0.0), "bn": (11.0, 0.0)},
        "garbage": {"source": (30.0, 90.0), "bn": (20.0, 99.0)},
    }
    found = []
    for spec in matrix_cells(scope):
        scored, other = made["garbage" if len(spec.domains) > 1 else "clean"][spec.method]
        errors = {name: other if name in ("noise", "fog:Bag") else scored + 2 * spec.seed for name in spec.domains}
        found.append(replace(make_result(spec.method, spec.gamma, errors), spec=spec))
    blocks = matrix_blocks(scope, by_id(found), NOTHING_PRINTED)
    listings = {block.name: block for block in blocks if isinstance(block, Listing)}
    assert listings["regret-methods"].rows == (
        ("BN", 1.5, 3.0, 1, "clean", 2),
        ("Source", 5.0, 10.0, 2, "garbage", 2),
    )
    assert listings["regret-errors"].rows == (("clean", 12.0, 9.0), ("garbage", 21.0, 31.0))
    assert [(row[0], row[-1]) for row in listings["situations"].rows] == [("clean", "2"), ("garbage", "2")]
    assert any(isinstance(block, Figure) for block in blocks)
    assert matrix_blocks(scope, {}, NOTHING_PRINTED) == []


def test_only_seeds_that_all_rows_have_are_compared(make_result, monkeypatch):
    """One row has a second seed, on a stream that is harder; it must not count against it."""
    monkeypatch.setattr(matrix, "SITUATIONS", (Situation("clean", TINY),))
    scope = Scope((TINY,), ("source", "bn", "tent"), (0.1,), seeds=2)
    errors = {("source", 0): 8.0, ("source", 1): 30.0, ("bn", 0): 9.0}  # TENT was not run
    found = [
        replace(make_result(spec.method, spec.gamma, {"clean": errors[spec.method, spec.seed]}), spec=spec)
        for spec in matrix_cells(scope)
        if (spec.method, spec.seed) in errors
    ]
    listings = {b.name: b for b in matrix_blocks(scope, by_id(found), NOTHING_PRINTED) if isinstance(b, Listing)}
    assert listings["regret-errors"].rows == (("clean", 8.0, 9.0),)
    assert listings["situations"].rows[0][-1] == "1"
    apart = [result for result in found if (result.spec.method, result.spec.seed) in (("source", 1), ("bn", 0))]
    assert matrix_blocks(scope, by_id(apart), NOTHING_PRINTED) == []


def reproduce(*words):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", *map(str, words)])
    return stop.value.code


def test_the_command_runs_the_matrix_and_tells_what_is_missing(tmp_path, monkeypatch, capsys):
    lost = Situation("lost", replace(TINY, model="resnet20@weights/none.th"), quick=True)
    twice = Situation("twice", replace(TINY, domains=("clean", "clean#2")), quick=True)
    monkeypatch.setattr(matrix, "SITUATIONS", (Situation("clean", TINY, quick=True), twice, lost))
    words = ["matrix", "--quick", "--methods", "source,bn", "--executor", "inline", "--out", tmp_path / "runs"]
    assert reproduce(*words) == 0
    said = capsys.readouterr()
    assert "left out: lost: model must name an existing file of weights" in said.err
    assert "Methods by mean and by worst regret" in said.out
    results = load_results(tmp_path / "runs")
    assert len(results) == 4
    assert {tuple(result.domain_errors) for result in results} == {("clean",), ("clean", "clean#2")}
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "Regret by situation" in page
    assert "Not run (1 of 3): lost." in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("matrix", "--dataset", "cifar10-c"), "dataset must be left out: matrix fixes it, got cifar10-c"),
        (("table-main", "--quick"), "quick must be left out: table-main has no quick version"),
        (("matrix", "--quick", "--full"), "quick must be left out with full, got both"),
        (("matrix", "--quick", "--seeds", "1000000000"), "seeds must be in [1, 10001), got 1000000000"),
    ],
)
def test_choices_that_mean_nothing_are_refused(words, said, tmp_path, capsys):
    assert reproduce(*words, "--out", tmp_path / "runs") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
