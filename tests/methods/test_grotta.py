"""GRoTTA against the paper's algorithm, written out with plain autograd in float64."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import grotta
from grotta.augment import strong_view
from grotta.checks import batches, small_model

ALPHA, NU, LAMBDA_BATCH, LAMBDA_RE, LR = 0.05, 0.001, 0.01, 0.1, 1e-3


class Norms:
    """The state that distinguishes teacher, student and source: affine parameters and statistics of two layers."""

    def __init__(self, model: nn.Sequential) -> None:
        layers = [model[1], model[3][1]]
        self.affine = [p.detach().clone() for bn in layers for p in (bn.weight, bn.bias)]
        self.stats = [(bn.running_mean.clone(), bn.running_var.clone()) for bn in layers]


def gpre(x: Tensor, norms: Norms, layer: int, tracking: bool) -> Tensor:
    shape = (1, -1, 1, 1)
    mean_b, var_b = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
    mean_g, var_g = norms.stats[layer]
    if tracking:
        mean_g = (1 - ALPHA) * mean_g + ALPHA * mean_b.detach()
        var_g = (1 - ALPHA) * var_g + ALPHA * var_b.detach()
        norms.stats[layer] = (mean_g, var_g)
    s_b, s_g = (var_b + 1e-5).sqrt(), (var_g + 1e-5).sqrt()
    kept = s_b.detach().view(shape) * (x - mean_b.view(shape)) / s_b.view(shape) + mean_b.detach().view(shape)
    weight, bias = norms.affine[2 * layer : 2 * layer + 2]
    return weight.view(shape) * (kept - mean_g.view(shape)) / s_g.view(shape) + bias.view(shape)


def network(x: Tensor, model: nn.Sequential, norms: Norms, tracking: bool) -> tuple[Tensor, Tensor]:
    x = F.relu(gpre(F.conv2d(x, model[0].weight, padding=1), norms, 0, tracking))
    x = F.relu(gpre(F.conv2d(x, model[3][0].weight, model[3][0].bias, stride=2), norms, 1, tracking))
    features = x.mean((2, 3))
    return F.linear(features, model[6].weight, model[6].bias), features


def refine(probs: Tensor, features: Tensor) -> Tensor:
    batch, classes = probs.shape
    if batch == 1:
        return probs
    counts = torch.bincount(probs.argmax(1), minlength=classes).double().sort(descending=True).values
    kept = min(classes, batch)
    q = counts[:kept] / counts[:kept].sum()
    zeta = (q - 1 / kept).norm()
    unit = features / features.norm(dim=1, keepdim=True)
    distance = torch.cdist(unit, unit, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(math.inf)
    k = min(5, batch - 1)
    affinity = torch.zeros(batch, batch, dtype=probs.dtype)
    affinity.scatter_(1, distance.argsort(1)[:, :k], 1 / k)
    lam = zeta ** (1 / math.log(classes))
    solution = (1 - lam) * torch.linalg.inv(torch.eye(batch) - lam * affinity) @ probs
    return zeta * F.one_hot(solution.argmax(1), classes) + (1 - zeta) * probs


def test_the_step_equals_the_algorithm_of_the_paper() -> None:
    model = small_model(torch.float64).eval()
    model.requires_grad_(False)
    adapter = grotta.GRoTTA(model, capacity=40, seed=7)
    teacher, student, source = Norms(model), Norms(model), Norms(model)
    for p in student.affine:
        p.requires_grad_()
    optimizer = torch.optim.Adam(student.affine, lr=LR, betas=(0.9, 0.999))
    bank = grotta.memory.CategoryBalancedBank(40, 5)
    generator = torch.Generator().manual_seed(7)

    def objective(x: Tensor, tracking: bool) -> Tensor:
        view = strong_view(x, generator)
        p_t = network(x, model, teacher, tracking)[0].softmax(1).detach()
        p_a = network(x, model, source, tracking)[0].softmax(1).detach()
        log_p_s = network(view, model, student, tracking)[0].log_softmax(1)
        return -((p_t + LAMBDA_RE * p_a) * log_p_s).sum(1).mean()

    for x in batches((64, 1, 13, 64, 30, 64)):
        x = x.double()  # exact: the bank keeps float32, as the images were
        logits, features = network(x, model, teacher, tracking=False)
        p_now = logits.softmax(1).detach()
        bank.add(x, p_now.argmax(1))
        on_bank = objective(bank.sample(64, generator).double(), tracking=True)
        view = strong_view(x, generator)
        p_a = network(x, model, source, tracking=False)[0].softmax(1).detach()
        log_p_s = network(view, model, student, tracking=False)[0].log_softmax(1)
        on_batch = -((p_now + LAMBDA_RE * p_a) * log_p_s).sum(1).mean()
        loss = on_bank + LAMBDA_BATCH * on_batch
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for t, s in zip(teacher.affine, student.affine):
            t.mul_(1 - NU).add_(s.detach(), alpha=NU)

        probs = adapter(x)
        torch.testing.assert_close(probs, refine(p_now, features.detach()), rtol=0, atol=1e-9)
        assert adapter.last.loss == pytest.approx(loss.item(), abs=1e-9)
        assert adapter.last.bank_size == len(bank)

    trained = [p for p in adapter.student.parameters() if p.requires_grad]
    for ours, theirs in zip(trained, student.affine, strict=True):
        torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=0, atol=1e-9)
    for ours, norms in ((adapter.teacher, teacher), (adapter.student, student), (adapter.source, source)):
        for layer, (mean, var) in zip(grotta.nn.norm_layers(ours), norms.stats, strict=True):
            torch.testing.assert_close(layer.running_mean, mean, rtol=0, atol=1e-9)
            torch.testing.assert_close(layer.running_var, var, rtol=0, atol=1e-9)


def test_the_source_keeps_its_affine_parameters_and_moves_its_statistics() -> None:
    model = small_model()
    adapter = grotta.GRoTTA(model)
    for x in batches():
        adapter(x)
    for layer, bn in zip(grotta.nn.norm_layers(adapter.source), (model[1], model[3][1])):
        assert torch.equal(layer.weight, bn.weight)
        assert not torch.equal(layer.running_mean, bn.running_mean)


def passes(adapter: grotta.Adapter) -> dict[str, int]:
    """Forward passes of each network in one step."""
    counts = dict.fromkeys(("teacher", "student", "source"), 0)
    for name in counts:
        if hasattr(adapter, name):
            getattr(adapter, name).register_forward_hook(lambda *_, name=name: counts.update({name: counts[name] + 1}))
    adapter(next(batches((8,))))
    return counts


def test_a_step_makes_no_pass_that_it_does_not_need() -> None:
    assert passes(grotta.GRoTTA(small_model())) == {"teacher": 2, "student": 2, "source": 2}
    assert passes(grotta.GRoTTA(small_model(), lambda_batch=0.0)) == {"teacher": 2, "student": 1, "source": 1}
    assert passes(grotta.GRoTTA(small_model(), lambda_re=0.0)) == {"teacher": 2, "student": 2, "source": 0}
    assert passes(grotta.GRoTTA(small_model(), train=False)) == {"teacher": 2, "student": 0, "source": 0}
    assert passes(grotta.GRoTTA(small_model(), update_every=2)) == {"teacher": 1, "student": 0, "source": 0}


def test_without_training_only_the_teachers_statistics_move() -> None:
    adapter = grotta.GRoTTA(small_model(), train=False)
    before = adapter.state_dict()
    for x in batches():
        adapter(x)
    after = adapter.state_dict()
    moved = {
        key.rsplit(".", 1)[1] for key in before if key.startswith("network.") and not before[key].equal(after[key])
    }
    assert moved == {"running_mean", "running_var"}


def test_without_the_bank_the_current_batch_moves_the_statistics() -> None:
    model = small_model().eval()
    adapter = grotta.GRoTTA(model, balanced=False, train=False, output=None)
    x = next(batches((16,)))
    adapter(x)
    layer = grotta.nn.norm_layers(adapter.teacher)[0]
    mean = F.conv2d(x, model[0].weight, padding=1).mean((0, 2, 3))
    torch.testing.assert_close(layer.running_mean, torch.lerp(model[1].running_mean, mean, ALPHA).detach())


def test_a_fixed_lambda_gives_hard_labels() -> None:
    probs = grotta.GRoTTA(small_model(), lam=0.6)(next(batches((16,))))
    assert torch.equal(probs.sort(1).values[:, -1], torch.ones(16))


def test_updates_happen_on_every_nth_batch() -> None:
    adapter = grotta.GRoTTA(small_model(), update_every=3)
    adapted = []
    for x in batches((4,) * 7):
        adapter(x)
        adapted.append(adapter.last.adapted)
    assert adapted == [False, False, True, False, False, True, False]


def test_the_three_gradients_differ_and_their_first_answers_do_not() -> None:
    adapters = {g: grotta.GRoTTA(small_model(), gradient=g) for g in ("exact", "literal", "none")}
    stream = list(batches((64, 64, 64)))
    outputs = {g: [a(x) for x in stream] for g, a in adapters.items()}
    assert torch.equal(outputs["exact"][0], outputs["literal"][0])
    trained = {
        g: torch.cat([p.flatten() for p in a.student.parameters() if p.requires_grad]) for g, a in adapters.items()
    }
    assert not torch.allclose(trained["exact"], trained["none"], atol=1e-6)
    assert not torch.allclose(trained["exact"], trained["literal"], atol=1e-6)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("alpha", 1.5),
        ("alpha", -0.1),
        ("nu", 2.0),
        ("lambda_batch", -1.0),
        ("lambda_re", float("nan")),
        ("capacity", 0),
        ("capacity", 2.5),
        ("lr", 0.0),
        ("bank_batch", 0),
        ("update_every", 0),
        ("gradient", "some"),
        ("output", "best"),
        ("affinity", "cosine"),
        ("k", 0),
        ("sigma", -1.0),
        ("lam", 1.0),
        ("seed", -1),
        ("num_classes", 4),
        ("std", (0.5, 0.0, 0.5)),
        ("feature_layer", "nowhere"),
    ],
)
def test_bad_options_are_refused_by_name_when_the_adapter_is_made(option: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError), match=option):
        grotta.create("grotta", small_model(), **{option: value})


def test_a_loss_divided_by_the_classes_is_only_a_scale() -> None:
    plain, scaled = grotta.GRoTTA(small_model()), grotta.GRoTTA(small_model(), per_class=True)
    x = next(batches((16,)))
    plain(x)
    scaled(x)
    assert plain.last.loss == pytest.approx(5 * scaled.last.loss, rel=1e-5)


def test_copies_of_an_adapter_part_ways() -> None:
    adapter = grotta.GRoTTA(small_model())
    first, second = list(batches((16, 16)))
    adapter(first)
    other = copy.deepcopy(adapter)
    kept = other.state_dict()
    adapter(second)
    assert all(torch.equal(kept[key], value) for key, value in other.state_dict().items())
