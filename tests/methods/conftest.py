"""A tiny network and the obvious way to compute with it, for tests that compare a method with its formulas."""

from collections.abc import Callable, Iterable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grotta.methods import create

Weights = dict[str, Tensor]
Norm = Callable[[Tensor, str, Weights], Tensor]


class TinyNet(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.norm2 = nn.Conv2d(4, 6, 3, bias=False), nn.BatchNorm2d(6)
        self.head = nn.Linear(6, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        return self.head(x.mean((2, 3)))


def tiny_net(classes: int = 5, dtype: torch.dtype = torch.float64, seed: int = 1) -> TinyNet:
    """Random weights and random statistics, with logits that differ from image to image."""
    generator = torch.Generator().manual_seed(seed)
    net = TinyNet(classes).to(dtype)
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if "num_batches" in name:
                continue
            noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            if name.endswith("running_var") or (name.startswith("norm") and name.endswith("weight")):
                tensor.copy_(0.5 + noise.abs())
            else:
                tensor.copy_(noise * (3.0 if name == "head.weight" else 0.5))
    return net.eval()


def batch_norm_by_hand(x: Tensor, name: str, w: Weights, eps: float = 1e-5) -> Tensor:
    """Mean and biased variance of each channel of the batch, one channel after the other."""
    channels = []
    for c in range(x.shape[1]):
        values = x[:, c]
        mean = values.sum() / values.numel()
        var = ((values - mean) ** 2).sum() / values.numel()
        channels.append((values - mean) / (var + eps).sqrt() * w[f"{name}.weight"][c] + w[f"{name}.bias"][c])
    return torch.stack(channels, 1)


def forward_by_hand(w: Weights, x: Tensor, norm: Norm = batch_norm_by_hand) -> tuple[Tensor, Tensor]:
    """Logits and features of TinyNet with the weights ``w``."""
    x = norm(F.conv2d(x, w["conv1.weight"], padding=1), "norm1", w).clamp_min(0)
    x = norm(F.conv2d(x, w["conv2.weight"]), "norm2", w).clamp_min(0)
    features = x.sum((2, 3)) / (x.shape[2] * x.shape[3])
    return features @ w["head.weight"].T + w["head.bias"], features


class AdamByHand:
    """m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, w -= lr m^ / (sqrt(v^) + eps), as published."""

    def __init__(self, lr: float) -> None:
        self.lr, self.steps = lr, 0
        self.first: dict[str, Tensor] = {}
        self.second: dict[str, Tensor] = {}

    def step(self, w: Weights, loss: Tensor, names: Iterable[str]) -> None:
        names = list(names)
        gradients = torch.autograd.grad(loss, [w[name] for name in names])
        self.steps += 1
        for name, gradient in zip(names, gradients):
            m = 0.9 * self.first.get(name, torch.zeros_like(gradient)) + 0.1 * gradient
            v = 0.999 * self.second.get(name, torch.zeros_like(gradient)) + 0.001 * gradient**2
            self.first[name], self.second[name] = m, v
            m, v = m / (1 - 0.9**self.steps), v / (1 - 0.999**self.steps)
            w[name] = (w[name] - self.lr * m / (v.sqrt() + 1e-8)).detach().requires_grad_()


def leaf_weights(net: nn.Module) -> Weights:
    """Copies of all parameters of ``net``, to be differentiated and replaced, and of its statistics."""
    weights = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
    return weights | {name: b.clone() for name, b in net.named_buffers()}


class ByHand:
    affine = ("norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias")
    parameters = ("conv1.weight", *affine[:2], "conv2.weight", *affine[2:], "head.weight", "head.bias")
    net = staticmethod(tiny_net)
    leaf_weights = staticmethod(leaf_weights)
    forward = staticmethod(forward_by_hand)
    batch_norm = staticmethod(batch_norm_by_hand)
    Adam = AdamByHand

    @staticmethod
    def images(n: int, seed: int = 0, dtype: torch.dtype = torch.float64, size: int = 8) -> Tensor:
        """Random images whose pixels are exact in every floating-point type that a memory may keep them in."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(257, (n, 3, size, size), generator=generator).to(dtype) / 256

    @classmethod
    def assert_adam_on(cls, method: str, objective: Callable[[Tensor], Tensor]) -> None:
        """Each step predicts on batch statistics, then takes one step of Adam down ``objective(logits)``."""
        net = cls.net()
        adapter = create(method, net, lr=0.01)
        weights, adam = cls.leaf_weights(net), cls.Adam(lr=0.01)
        for step in range(3):
            x = cls.images(7, seed=step)
            logits, _ = cls.forward(weights, x)
            torch.testing.assert_close(adapter(x), logits.softmax(1).detach(), rtol=0, atol=1e-10)
            loss = objective(logits)
            assert adapter.last is not None
            assert adapter.last.loss == pytest.approx(loss.item(), abs=1e-10)
            adam.step(weights, loss, cls.affine)
            cls.assert_same(adapter.student, weights, cls.affine)

    @staticmethod
    def assert_same(network: nn.Module, w: Weights, names: Iterable[str], atol: float = 1e-10) -> None:
        """The parameters and statistics ``names`` of a method's network are those computed by hand."""
        state = network.state_dict()
        for name in names:
            torch.testing.assert_close(state[f"body.{name}"], w[name].detach(), rtol=0, atol=atol)


@pytest.fixture
def by_hand() -> type[ByHand]:
    """Tiny network, images, and slow reference arithmetic in float64."""
    return ByHand
