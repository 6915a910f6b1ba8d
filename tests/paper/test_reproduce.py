"""Recipes: the right cells, shared where they can be, and tables and figures made of what there is of them."""

import csv
import io
import json
import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
import typer
from torch import nn
from typer.testing import CliRunner

from grotta.bench import experiments
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import load_results
from grotta.commands import report as report_command
from grotta.commands import reproduce as command
from grotta.commands import running
from grotta.data import CORRUPTIONS
from grotta.methods import create, registry
from grotta.paper import recipe as recipe_module
from grotta.paper import scope as scope_module
from grotta.paper.directory import directory_report, directory_sections
from grotta.paper.figures.gamma import GAMMA_RANGE
from grotta.paper.figures.shift import CLASS_COUNTS, shift_degrees
from grotta.paper.recipe import by_id
from grotta.paper.recipes import all_printed, all_recipes, find_recipes
from grotta.paper.saved import save_recipe, saved_recipes
from grotta.paper.scope import Scope, make_scope
from grotta.paper.tables.orders import orders
from grotta.report.document import Listing
from grotta.report.figure import Figure
from grotta.report.render.csv import LISTING_COLUMNS, listings_csv
from grotta.report.render.html import report_html
from grotta.report.table import Table
from grotta.report.write import write_report

RECIPES = all_recipes()
recipe_section = partial(recipe_module.recipe_section, printed=all_printed())
DOMAINS = ("motion_blur", "snow", "fog")
NAMES = (
    *("table-main", "table-domains", "table-ablation", "table-affinity", "table-orders"),
    *("fig-overfitting", "fig-statistics", "fig-gradient", "fig-curves", "fig-shift", "fig-gamma", "fig-zeta"),
    *("fig-output", "fig-bank", "fig-sensitivity"),
)
BEYOND = ("parking", "parking-all-weather", "matrix")  # the paper


@pytest.fixture
def scope():
    base = CellSpec(method="source", dataset="cifar100-c", domains=DOMAINS, gamma=1.0, model="resnet56_proj@w.pt")
    return Scope((base,), methods=("source", "bn", "grotta"), gammas=(0.1, 0.0001), seeds=2)


@pytest.fixture
def finish(make_result, write_run):
    """Made-up results of all cells of recipes: the error is 10 at gamma 0.1 and rises as gamma falls."""

    def finished(specs):
        made = []
        for spec in dict.fromkeys(specs):
            fields = {
                k: v for k, v in spec.to_dict().items() if k not in ("method", "gamma", "domains", "model", "label")
            }
            errors = dict.fromkeys(spec.domains, 10.0 + abs(math.log10(spec.gamma / 0.1)))
            result = make_result(spec.method, spec.gamma, errors, **fields)
            made.append(replace(result, spec=spec, model=spec.model))
        out = write_run(made)
        return out, load_results(out)

    return finished


def test_there_is_a_recipe_for_each_table_and_figure():
    assert set(RECIPES) == {*NAMES, *BEYOND}
    assert [recipe.name for recipe in find_recipes("all")] == [name for name in RECIPES if name in NAMES]
    with pytest.raises(ValueError, match="table-main"):
        find_recipes("table-1")


def test_main_and_domains_need_the_same_cells(scope):
    main = RECIPES["table-main"].cells(scope)
    assert main == RECIPES["table-domains"].cells(scope) == RECIPES["fig-curves"].cells(scope)
    assert len(main) == len(set(main)) == 3 * 2 * 2
    assert {(spec.seed, spec.stream_seed) for spec in main} == {(0, 0), (1, 1)}


def test_ablation_turns_one_part_on_after_the_other(scope):
    cells = [spec for spec in RECIPES["table-ablation"].cells(scope) if (spec.gamma, spec.seed) == (0.1, 0)]
    assert [(spec.method, dict(spec.options)) for spec in cells] == [
        ("bn", {}),
        ("grotta", {"balanced": False, "train": False, "output": None}),
        ("grotta", {"train": False, "output": None}),
        ("grotta", {"lambda_re": 0.0, "output": None}),
        ("grotta", {"output": None}),
        ("grotta", {"lam": 0.6}),
        ("grotta", {}),
    ]


def test_equal_cells_are_shared_between_recipes(scope):
    main = set(RECIPES["table-main"].cells(scope))
    assert len(main & set(RECIPES["table-ablation"].cells(scope))) == 2 * 4
    assert len(main & set(RECIPES["table-affinity"].cells(scope))) == 4
    assert len(main & set(RECIPES["fig-sensitivity"].cells(scope))) == 2
    assert len(RECIPES["fig-sensitivity"].cells(scope)) == 2 * 16
    assert set(RECIPES["fig-zeta"].cells(scope)) < main
    assert main < set(RECIPES["fig-gamma"].cells(scope))


def test_toys_are_one_run_on_one_domain_at_the_smallest_gamma(scope):
    for name in ("fig-overfitting", "fig-statistics", "fig-gradient"):
        for spec in RECIPES[name].cells(scope):
            assert (spec.domains, spec.gamma, spec.seed) == (("motion_blur",), 0.0001, 0)


def test_every_method_takes_its_options(scope, monkeypatch):
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), pool, nn.Linear(4, 3))
    images = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    cells = [spec for recipe in RECIPES.values() for spec in recipe.cells(scope)]
    # of options that differ in numbers only, one stands for all
    kinds = {(s.method, *((k, v if isinstance(v, str | bool) else None) for k, v in s.options)): s for s in cells}
    assert len(kinds) > 15
    for method, options in ((spec.method, spec.options) for spec in kinds.values()):
        experiments.prepare(method)
        probs = create(method, net, **dict(options))(images)
        assert torch.allclose(probs.sum(1), torch.ones(4))


def test_orders_are_ten_different_ones_and_always_the_same():
    made = orders(CORRUPTIONS)
    assert made == orders(CORRUPTIONS)
    assert len(set(made)) == 10
    assert all(sorted(order) == sorted(CORRUPTIONS) for order in made)
    assert len(orders(DOMAINS)) == 6


def test_a_scope_in_short_has_few_domains_and_a_full_one_all(tmp_path):
    short, full = make_scope("fashion-c"), make_scope("fashion-c", full=True)
    assert short.gammas == (1e-1, 1e-4)
    assert full.gammas == (1e-1, 1e-2, 1e-3, 1e-4)
    assert short.bases[0].domains == full.bases[0].domains[: len(short.bases[0].domains)]
    assert full.bases[0].domains == CORRUPTIONS
    assert short.bases[0].model == "fashion_resnet8"


def test_source_models_each_meet_the_other_domains(monkeypatch):
    def grid(dataset, *, domains, model, **rest):
        return [CellSpec(method="bn", dataset=dataset, domains=tuple(domains), model=model, gamma=0.1)]

    monkeypatch.setattr(scope_module, "make_grid", grid)
    scope = make_scope("pacs", model="resnet50@{source}.pt")
    assert [(base.model, base.domains) for base in scope.bases] == [
        ("resnet50@art_painting.pt", ("cartoon", "photo", "sketch")),
        ("resnet50@cartoon.pt", ("art_painting", "photo", "sketch")),
        ("resnet50@photo.pt", ("art_painting", "cartoon", "sketch")),
        ("resnet50@sketch.pt", ("art_painting", "cartoon", "photo")),
    ]
    assert make_scope("pacs", model="resnet50@one.pt", domains=["sketch"]).bases[0].domains == ("sketch",)
    with pytest.raises(ValueError, match=r"\{source\}"):
        make_scope("pacs", model="resnet50")


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_shows_what_its_cells_gave(name, scope, finish):
    recipe = RECIPES[name]
    _, results = finish(recipe.cells(scope))
    section = recipe_section(recipe, scope, by_id(results))
    assert section.blocks
    toy = name in ("fig-overfitting", "fig-statistics", "fig-gradient")
    assert section.where == (f"cifar100-c, {'1 domain' if toy else '3 domains'}" if results else "")
    kinds = {type(block) for block in section.blocks}
    assert (Table if name.startswith("table") else Figure) in kinds
    for block in section.blocks:
        if isinstance(block, Table):
            assert all(cell.mean is not None for row in block.rows for cell in row.cells)
            assert all(cell.complete for row in block.rows for cell in row.cells)
    assert all(block.name.startswith(section.name) for block in section.blocks)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_without_results_is_no_error(name, scope):
    section = recipe_section(RECIPES[name], scope, {})
    filled = [b for b in section.blocks if not isinstance(b, Listing | Figure) and b.rows]
    assert filled == []
    assert ("have no result yet" in section.intro) == (name != "fig-shift")


def table_of(name, scope, finish):
    _, results = finish(RECIPES[name].cells(scope))
    section = recipe_section(RECIPES[name], scope, by_id(results))
    return next(block for block in section.blocks if isinstance(block, Table))


def test_the_papers_numbers_stand_beside_ours(scope, finish):
    ablation = table_of("table-ablation", scope, finish)
    cell = ablation.cell("(e) + structure, fixed λ = 0.6", "0.0001")
    assert (cell.mean, cell.paper, cell.difference) == (13.0, 16.3, -3.3)
    assert any("ResNeXt-29" in note for note in ablation.notes)
    assert any("resnet56_proj" in note for note in ablation.notes)


def test_affinity_marks_the_papers_slip(scope, finish):
    table = table_of("table-affinity", scope, finish)
    assert table.cell("kNN k=1", "0.1").paper_note
    assert not table.cell("kNN k=5", "0.1").paper_note
    assert table.cell("RBF sigma=2.5", "0.1").paper == 33.1


def test_orders_are_averaged_before_runs_are_compared(scope, finish):
    table = table_of("table-orders", scope, finish)
    cell = table.cell("GRoTTA", "0.1")
    assert (len(cell.results), cell.mean, cell.std, cell.paper) == (2 * 6, 10.0, 0.0, 31.2)


def test_imbalance_and_change_fall_as_gamma_and_the_classes_grow():
    degrees = shift_degrees(CLASS_COUNTS, GAMMA_RANGE)
    for name, classes in CLASS_COUNTS.items():
        for gamma, imbalance, change, _ in degrees[name]:
            square = (1 + gamma) / (classes * gamma + 1) - 1 / classes
            assert 0.8 * square**0.5 < imbalance < 1.05 * square**0.5
            # two independent draws are sqrt(2) as far from each other as from the mean, and CD divides by sqrt(2)
            assert 0.75 * square**0.5 < change < 1.1 * square**0.5
    at = {name: {point.gamma: point.imbalance for point in points} for name, points in degrees.items()}
    assert at["CIFAR-10"][0.1] > at["CIFAR-100"][0.1] > at["ImageNet"][0.1]


def test_a_recipe_is_remembered_in_its_directory(scope, tmp_path):
    for name in ("fig-zeta", "table-main"):
        save_recipe(tmp_path, RECIPES[name], scope)
    damaged = {"cut off": "{", "wrong": '{"recipe": "table-main", "scope": {"bases": ["x"]}}', "a list": "[]"}
    scopeless = {"bases": [], "methods": [], "gammas": [], "seeds": 1}
    damaged["empty"] = json.dumps({"recipe": "fig-zeta", "scope": scopeless})
    damaged["no recipe"] = json.dumps({"recipe": "table-x", "scope": scope.to_dict()})
    for name, text in damaged.items():
        (tmp_path / "recipes" / f"{name}.json").write_text(text)
    save_recipe(tmp_path, RECIPES["fig-zeta"], replace(scope, methods=("bn",)))  # the same cells as above
    with pytest.warns(UserWarning, match="is damaged") as caught:
        saved = saved_recipes(tmp_path, RECIPES)
    assert {name for name in damaged if any(f"{name}.json" in str(w.message) for w in caught)} == set(damaged)
    assert [recipe.name for recipe, _ in saved] == ["table-main", "fig-zeta"]
    assert all(recipe.cells(found) == recipe.cells(scope) for recipe, found in saved)


def test_a_report_shows_recipes_and_every_other_cell(scope, finish):
    cells = [*RECIPES["table-main"].cells(scope), *RECIPES["table-affinity"].cells(scope)]
    out, results = finish(cells)
    assert [section.name for section in directory_sections(out, results)] == ["cifar100-c"]
    save_recipe(out, RECIPES["table-affinity"], scope)
    recipe, rest = directory_sections(out, results)
    assert recipe.name.startswith("table-affinity")
    assert [row.label for row in rest.blocks[0].rows] == ["Source", "BN", "GRoTTA"]
    save_recipe(out, RECIPES["table-main"], scope)
    assert len(directory_sections(out, results)) == 2
    text = write_report(directory_report(out), out / "report.html")[0].read_text()
    assert "Affinity matrices: cifar100-c, 3 domains" in text


def invoke(*words):
    app = typer.Typer()
    app.command()(command.reproduce)
    return CliRunner().invoke(app, [*map(str, words)])


def invoke_report(*words):
    app = typer.Typer()
    app.command()(report_command.report)
    return CliRunner().invoke(app, [*map(str, words)])


def test_grotta_reproduce_lists_its_names():
    lines = invoke("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(RECIPES)
    assert set(json.loads(invoke("--list", "--json").stdout)) == {*NAMES, *BEYOND}


@pytest.mark.parametrize(
    ("words", "said"), [([], "--list"), (["table-x"], "table-main"), (["all", "--seeds", "0"], "seeds")]
)
def test_grotta_reproduce_says_what_is_wrong(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = invoke(*words)
    assert isinstance(outcome.exception, ValueError)
    assert said in str(outcome.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "nowhere"], "device must be one that works here"),
        (["--executor", "magic"], "executor must be one of"),
        (["--workers", "0"], "workers must be at least 1"),
        (["--address", "here:1"], "address must be left out with executor 'local', got 'here:1'"),
        (["--preset", "magic"], "got 'magic'"),
        (["--stream", "magic"], "stream must be one of"),
        (["--period", "0"], "period must be at least 1"),
    ],
)
def test_a_refused_reproduction_leaves_nothing_behind(words, said, tmp_path):
    outcome = invoke("table-main", "--methods", "source", "--out", tmp_path / "runs", *words)
    assert isinstance(outcome.exception, ValueError)
    assert said in str(outcome.exception)
    assert not (tmp_path / "runs").exists()


def test_a_reproduction_takes_the_settings_of_a_bench(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(running, "run_with_board", lambda plan: ran.extend(plan.specs) or running.Outcome())
    words = ["--preset", "official", "--stream", "rotta", "--period", 7, "--batch-size", 8, "--image-size", 32]
    outcome = invoke("table-main", "--methods", "grotta", "--domains", "fog", "--out", tmp_path, *words)
    assert outcome.exit_code == 0, outcome.exception
    wanted = {("official", "rotta", 7, 8, 32)}
    assert {(s.preset, s.stream, s.period, s.batch_size, s.image_size) for s in ran} == wanted
    [(_, scope)] = saved_recipes(tmp_path, RECIPES)
    assert set(RECIPES["table-main"].cells(scope)) == set(ran)


@pytest.fixture
def reproduced(tmp_path, monkeypatch):
    """The cells that a call of the command would run."""

    def cells(*words):
        ran = []
        monkeypatch.setattr(running, "run_with_board", lambda plan: ran.extend(plan.specs) or running.Outcome())
        monkeypatch.setattr(running, "report_and_tell", lambda *arguments: None)
        outcome = invoke(*words, "--out", tmp_path)
        assert outcome.exit_code == 0, outcome.exception
        return ran

    return cells


def test_gammas_that_are_asked_for_take_the_place_of_a_recipes_own(reproduced, tmp_path):
    words = ("fig-gamma", "--methods", "source,bn", "--domains", "fog")
    assert sorted({spec.gamma for spec in reproduced(*words)}) == sorted(GAMMA_RANGE)
    asked = reproduced(*words, "--gammas", "1e-1")
    assert [(spec.method, spec.gamma) for spec in asked] == [("source", 0.1), ("bn", 0.1)]
    saved = [scope for _, scope in saved_recipes(tmp_path, RECIPES)]
    assert sorted(len(RECIPES["fig-gamma"].cells(scope)) for scope in saved) == [2, 2 * len(GAMMA_RANGE)]


def test_a_scope_that_was_saved_without_a_word_on_it_has_the_recipes_own_gammas(scope):
    saved = scope.to_dict()
    assert "only_gammas" not in saved
    assert Scope.from_dict(saved) == scope
    asked = replace(scope, only_gammas=True)
    assert Scope.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked


TOYS = ("fig-overfitting", "fig-statistics", "fig-gradient")
GROTTAS_OWN = ("table-ablation", "table-affinity", "fig-zeta", "fig-output", "fig-bank", "fig-sensitivity")
CHOICES = {"methods": "source,bn", "gammas": "1e-1,1e-2", "domains": "fog,snow", "seeds": "2", "full": None}
REFUSED = [
    *((name, "methods") for name in (*TOYS, *GROTTAS_OWN)),
    *((name, option) for name in TOYS for option in ("gammas", "domains", "seeds", "full")),
    ("fig-sensitivity", "gammas"),
    *(("fig-shift", option) for option in CHOICES),
]


@pytest.mark.parametrize(("name", "option"), REFUSED)
def test_a_recipe_refuses_what_it_fixes(name, option, tmp_path):
    words = [f"--{option}"] if CHOICES[option] is None else [f"--{option}", CHOICES[option]]
    outcome = invoke(name, *words, "--out", tmp_path / "runs")
    assert isinstance(outcome.exception, ValueError)
    assert str(outcome.exception).startswith(f"{option} must be ")
    assert name in str(outcome.exception)
    assert not (tmp_path / "runs").exists()


def test_every_choice_that_a_recipe_does_not_refuse_changes_its_cells():
    chosen = {"methods": ["source", "bn"], "gammas": [1e-1, 1e-2], "domains": ["fog", "snow"], "seeds": 2, "full": True}
    usual = make_scope("fashion-c")
    for option, value in chosen.items():
        scope = make_scope("fashion-c", **{option: value})
        changed = {name for name, recipe in RECIPES.items() if set(recipe.cells(scope)) != set(recipe.cells(usual))}
        assert changed >= {name for name in NAMES if (name, option) not in REFUSED}, option


def test_a_toy_takes_one_gamma_and_one_domain(reproduced):
    cells = reproduced("fig-gradient", "--gammas", "1e-2", "--domains", "snow", "--seeds", 1)
    assert {(spec.gamma, spec.domains) for spec in cells} == {(0.01, ("snow",))}


def test_under_all_a_choice_does_not_apply_to_what_fixes_it(reproduced):
    cells = set(reproduced("all", "--methods", "source", "--gammas", "1e-1,1e-2", "--domains", "fog", "--seeds", 2))
    assert {spec.method for spec in cells} == {"source", "bn", "grotta", experiments.ENTROPY}
    assert {spec.gamma for spec in cells} == {0.1, 0.01}


def test_what_a_recipe_fixes_is_in_the_list():
    lines = {line.split()[0]: line for line in invoke("--list").stdout.splitlines()}
    for name, option in REFUSED:
        assert re.search(rf"(Fixes|takes one value of)[^.]*\b{option}\b", lines[name], re.IGNORECASE), (name, option)
    assert "ixes" not in lines["table-main"]


def test_only_the_methods_of_a_recipe_need_the_preset(reproduced, tmp_path):
    assert {spec.preset for spec in reproduced("fig-zeta", "--preset", "fast")} == {"fast"}
    outcome = invoke("table-ablation", "--preset", "fast", "--out", tmp_path / "runs")
    assert "for method 'bn', got 'fast'" in str(outcome.exception)


def test_an_iid_stream_has_one_gamma_in_every_recipe(reproduced, scope, finish):
    cells = reproduced("all", "--stream", "iid", "--methods", "source", "--domains", "fog")
    assert {(spec.stream, spec.gamma) for spec in cells} == {("iid", 0.1)}
    iid = replace(scope, bases=tuple(replace(base, stream="iid") for base in scope.bases), gammas=(0.1,), seeds=1)
    assert "on an iid stream" in table_of("fig-sensitivity", iid, finish).title


def test_label_shifts_are_not_asked_of_an_iid_stream(tmp_path):
    for words, said in (
        (["fig-gamma"], "stream must have label shifts for fig-gamma, got iid"),
        (["table-main", "--gammas", "1e-1,1e-4"], "gammas must be at most one for an iid stream"),
    ):
        outcome = invoke(*words, "--stream", "iid", "--out", tmp_path / "runs")
        assert isinstance(outcome.exception, ValueError)
        assert said in str(outcome.exception)


def test_every_recipe_shows_its_cells_with_another_preset_too(scope, finish):
    official = replace(scope, bases=tuple(replace(base, preset="official") for base in scope.bases), seeds=1)
    for name in ("table-main", "table-orders", "fig-zeta"):
        cells = RECIPES[name].cells(official)
        assert {spec.preset for spec in cells} == {"official"}
    _, results = finish(RECIPES["table-orders"].cells(official))
    [table] = recipe_section(RECIPES["table-orders"], official, by_id(results)).blocks
    assert [row.label for row in table.rows] == ["Source official", "BN official", "GRoTTA official"]


def test_a_figure_without_cells_needs_no_run(tmp_path):
    outcome = invoke("fig-shift", "--out", tmp_path / "runs", "--json")
    assert outcome.exit_code == 0, outcome.exception
    page = Path(json.loads(outcome.stdout)["report"])
    first = page.read_text(encoding="utf-8")
    assert "Label shift against γ" in first
    page.unlink()
    assert invoke_report(tmp_path / "runs").exit_code == 0
    assert page.read_text(encoding="utf-8") == first


def test_every_number_of_the_label_shift_has_its_command_and_stream(scope):
    section = recipe_section(RECIPES["fig-shift"], scope, {})
    _, imbalance, change, hashes = section.blocks
    degrees = shift_degrees(CLASS_COUNTS, GAMMA_RANGE)
    assert {row[2] for row in hashes.rows} == {point.stream_hash for points in degrees.values() for point in points}
    assert len(hashes.rows) == len(CLASS_COUNTS) * len(GAMMA_RANGE)
    assert all("grotta reproduce fig-shift" in listing.notes[0] for listing in (imbalance, change))
    lines = list(csv.DictReader(io.StringIO(listings_csv([imbalance, change, hashes]))))
    assert tuple(lines[0]) == LISTING_COLUMNS
    for listing, place in ((imbalance, 1), (change, 2)):
        values = [float(line["value"]) for line in lines if line["listing"] == listing.name]
        assert values == [point[place] for points in degrees.values() for point in points]
    assert [line["value"] for line in lines if line["column"] == "Stream"] == [row[2] for row in hashes.rows]


def test_tables_are_printed_and_failures_are_an_exit_code(monkeypatch, tmp_path, make_result, write_run):
    from grotta.bench import Failure

    def run(plan):
        first, *others = plan.specs
        made = [replace(make_result(s.method, s.gamma, dict.fromkeys(s.domains, 12.0)), spec=s) for s in others]
        return running.Outcome(load_results(write_run(made)), [Failure(first, "no memory left")])

    monkeypatch.setattr(running, "run_with_board", run)
    outcome = invoke("table-main", "--methods", "source,bn", "--domains", "fog", "--out", tmp_path / "runs")
    assert outcome.exit_code == 1
    assert "12.0" in outcome.stdout
    assert "no memory left" in outcome.output
    assert f"Report: {tmp_path / 'runs' / 'report.html'}" in outcome.stdout.replace("\n", "")


@pytest.mark.slow
def test_a_toy_figure_from_nothing_to_the_report(tmp_path):
    outcome = invoke("fig-gradient", "--domains", "fog", "--out", tmp_path, "--workers", "2", "--json")
    assert outcome.exit_code == 0, outcome.output
    results = load_results(tmp_path)
    assert {dict(result.spec.options)["gradient"] for result in results} == {"exact", "none"}
    assert len({result.stream_hash for result in results}) == 1
    sections = directory_sections(tmp_path, results)
    assert [series.label.split(" (")[0] for series in sections[0].blocks[0].panels[0].series] == [
        "without gradient preserving",
        "with gradient preserving",
    ]


def test_report_html_takes_every_kind_of_block(scope, finish):
    from grotta.report.sections.benchmark import make_report

    asked = [RECIPES[name] for name in (*NAMES, "matrix")]  # parking needs recorded cells
    cells = [spec for recipe in asked for spec in recipe.cells(replace(scope, seeds=1))]
    _, results = finish(cells)
    found = by_id(results)
    sections = [recipe_section(recipe, replace(scope, seeds=1), found) for recipe in asked]
    text = report_html(make_report(results, sections=sections))
    ids = [part.split('"')[0] for part in text.split(' id="')[1:]]
    assert len(ids) == len(set(ids))
