"""The readable references of the benchmarks equal what they stand for, and the measuring measures."""

import importlib
import json
import random
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

import grotta
from grotta.checks import batches, small_model


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> object:
    """Import a module of the ``benchmarks`` package, which is not installed."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1])

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"benchmarks.{name}")

    return load


def test_the_reference_norm_is_the_layer(bench) -> None:
    ours, theirs = grotta.nn.GpreRBN2d.from_bn(nn.BatchNorm2d(3)), bench("reference_norm").ReferenceGpreRBN(3)
    ours.tracking = True
    x = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    for _ in range(2):
        x1, x2 = x.clone().requires_grad_(), x.clone().requires_grad_()
        first, second = ours(x1), theirs(x2)
        first.pow(3).sum().backward()
        second.pow(3).sum().backward()
        torch.testing.assert_close(first, second)
        torch.testing.assert_close(x1.grad, x2.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.running_var, theirs.var.flatten())


def test_the_reference_bank_holds_the_same_images(bench) -> None:
    ours, theirs = grotta.memory.CategoryBalancedBank(20, 4), bench("reference_bank").ReferenceBank(20, 4)
    generator = torch.Generator().manual_seed(0)
    for x in batches((7, 30, 1)):
        labels = torch.randint(4, (len(x),), generator=generator)
        ours.add(x, labels)
        theirs.add(x, labels)
    for label in range(4):
        assert torch.equal(ours.items(label), torch.stack(list(theirs.queues[label])))
    assert theirs.sample(9, random.Random(0)).shape == ours.sample(9, generator).shape


def test_the_reference_refinement_gives_the_same_answers(bench) -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(16, 8, generator=generator)
    probs = (3 * torch.randn(16, 6, generator=generator)).softmax(1)
    expected = grotta.functional.bias_guided_refine(probs, features).probs
    torch.testing.assert_close(bench("reference_refine").refine(probs, features), expected)


def test_the_reference_optimizer_is_adam(bench) -> None:
    module = bench("reference_update")
    ours, theirs = (nn.Parameter(torch.ones(3)) for _ in range(2))
    adam, reference = torch.optim.Adam([ours], lr=1e-3), module.ReferenceAdam([theirs], lr=1e-3)
    for number in range(3):
        ours.grad = theirs.grad = torch.tensor([0.5, -2.0, 1e-3]) * (number + 1)
        adam.step()
        reference.step()
    torch.testing.assert_close(ours, theirs)
    teacher = [torch.zeros(3)]
    module.ema(teacher, [torch.ones(3)], 0.25)
    assert teacher[0].tolist() == [0.25] * 3


def test_contenders_take_turns_and_slow_ones_show(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    timing, now, order = bench("timing"), [0.0], []
    monkeypatch.setattr(timing, "clock", lambda: now[0])

    def contender(name: str, seconds: float) -> object:
        return lambda: (order.append(name), now.__setitem__(0, now[0] + seconds))

    times = timing.take_turns({"a": contender("a", 1.0), "b": contender("b", 3.0)}, rounds=2, warmup=0)
    assert order == ["a", "b"] * 3
    assert timing.ratio(times, "b", "a") == timing.Spread(3.0, 3.0, 3.0)
    assert timing.faster(times, "a", "b") == "a"
    assert timing.Spread.of([1.0, 2.0, 3.0, 4.0, 5.0]) == timing.Spread(3.0, 2.0, 4.0)


def test_rows_are_held_to_their_bars_and_written_as_json(bench, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    report, spread = bench("report"), bench("timing").Spread(5.0, 4.0, 6.0)
    rows = [
        report.Row("g", "cheap", spread, "units", at_most=5.0),
        report.Row("g", "fast", spread, "times", at_least=6.0),
        report.Row("g", "free", spread, "units"),
    ]
    assert [row.passed for row in rows] == [True, False, None]
    report.show(rows)
    assert "FAIL" in capsys.readouterr().out
    report.write_json(rows, tmp_path / "out.json")
    assert [row["passed"] for row in json.loads((tmp_path / "out.json").read_text())["rows"]] == [True, False, None]


def test_a_step_is_split_into_passes_and_the_rest(bench) -> None:
    subjects, steps = bench("subjects"), bench("steps")
    subject = subjects.Subject("tiny", small_model(), [(x * 255).byte() for x in batches((8, 8))])
    adapter, step = subject.step("grotta")
    with steps.passes(adapter) as inside:
        step()
    assert len(inside) == 8  # teacher, student and source on two batches each, and two backwards
    (share,) = steps.outside(subject, rounds=1, at_most=100.0)
    assert 0 < share.value.median < 100


def test_untrained_networks_are_made_to_tell_images_apart(bench) -> None:
    subject = bench("subjects").resnet20(64)
    adapter, step = subject.step("source")
    assert step().argmax(1).unique().numel() >= 5
    assert adapter.last.confidence > 0.3


def test_the_command_explains_itself(bench, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as stop:
        bench("__main__").main(["--help"])
    assert stop.value.code == 0
    assert "steps --big" in capsys.readouterr().out


def test_estimates_are_compared_with_the_truth_of_their_window(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a short stream, and by hand on three windows."""
    module = bench("estimates")
    monkeypatch.setattr(module, "WINDOW", 64)
    clean = bench("development").SITUATIONS["clean"]
    short = bench("development").replace(clean, images=160, domains=["clean", "noise"])
    model = grotta.models.create_model("fashion_resnet8", weights="bundled")
    found = module.windows(model, "fashion-c", short)
    assert len(found) == 2  # 160 images are two windows and a half, and garbage is none
    assert all(0 < value <= 100 for one in found for value in (one.right, one.source_right, one.estimate))
    assert {one.right * 64 / 100 % 1 for one in found} == {0}

    windows = [module.Window(80, 70, 78, 71, 90), module.Window(60, 65, 66, 64, 80), module.Window(50, 50, 50, 52, 50)]
    said = module.summary(windows)
    assert said["windows"] == 3
    assert said["gain"] == pytest.approx((10 - 5 + 0) / 3)
    assert said["estimated gain is off by"] == pytest.approx((3 + 7 + 2) / 3)
    assert said["right sign, % of telling windows"] == 50  # the third gain is too small to be told
    assert said["harm (more than a point worse), windows"] == 1
    assert said["of these, seen as harm"] == 0
    assert said["source's confidence is off by"] == pytest.approx((20 + 15 + 0) / 3)
