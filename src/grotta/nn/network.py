"""A classifier as the methods need it: images in, logits and features out."""

import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grotta.nn.caches import PassCaches
from grotta.nn.logits import Ending, Field, find_logits, to_logits
from grotta.nn.probe import Probed, outputs_of


def find_classifier(
    model: nn.Module, feature_layer: str | None = None, probed: Probed | None = None, num_classes: int | None = None
) -> tuple[str, nn.Module]:
    """Name and module of the layer whose input are the features: the one named, or the classifier.

    That is the last layer to run, linear or a 1x1 convolution, with ``num_classes`` outputs if there is one, according
    to a pass that was ``probed``; without one, the last linear layer, or else the last 1x1 convolution.

    >>> find_classifier(nn.Sequential(nn.Flatten(), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))[0]
    '3'
    """
    modules = dict(model.named_modules())
    if feature_layer is not None:
        if feature_layer not in modules:
            raise ValueError(
                f"feature_layer must be a module of the model, got {feature_layer!r}; its top ones are "
                f"{[name for name, _ in model.named_children()]}"
            )
        return feature_layer, modules[feature_layer]
    if probed is not None and probed.classifiers:
        fitting = [name for name, outputs in probed.classifiers.items() if outputs == num_classes]
        name = (fitting or list(probed.classifiers))[-1]
        return name, modules[name]
    candidates = [(name, module) for name, module in modules.items() if outputs_of(module) is not None]
    candidates.sort(key=lambda each: isinstance(each[1], nn.Linear))
    if not candidates:
        raise ValueError(
            "the model has no nn.Linear layer and no 1x1 convolution: say with feature_layer= which module's input are "
            "the features, and with num_classes= how many classes there are"
        )
    return candidates[-1]


class Network(nn.Module):
    """``body`` with input normalisation before it and a tap on the input of its classifier.

    ``forward`` takes float (B, C, H, W) in [0, 1] and returns the logits (B, classes) and the detached features
    (B, d); features with positions are averaged over them. ``logits`` names the field of what the body returns that
    holds them, and ``ends_in`` says whether they are logits already or went through
    a softmax or sigmoids.
    """

    mean: Tensor | None
    std: Tensor | None

    def __init__(
        self,
        body: nn.Module,
        feature_layer: str,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        logits: Field = None,
        ends_in: Ending = "logits",
    ) -> None:
        super().__init__()
        self.body = body
        self.feature_layer = feature_layer
        self.logits, self.ends_in = logits, ends_in
        self._caches: PassCaches | None = None  # unknown before the first pass
        self._one_pass = threading.RLock()
        self.tapped: Any = threading.local()  # where the tap leaves the features: two threads may be in one network
        body.get_submodule(feature_layer).register_forward_pre_hook(self._tap, with_kwargs=True)
        like = next(body.parameters(), torch.empty(0))
        for name, values in (("mean", mean), ("std", std)):
            channels = None if values is None else torch.as_tensor(values, dtype=like.dtype, device=like.device)
            self.register_buffer(name, None if channels is None else channels.view(1, -1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self._caches is not None and not self._caches.found:
            return self.run(x)
        with self._one_pass:  # what a pass leaves behind must be gone before the next
            caches = self._caches or PassCaches(self.body)
            try:
                return self.run(x)
            finally:
                if self._caches is None:
                    caches.look()
                    self._caches = caches
                caches.forget()

    def run(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """One pass: logits and features of ``x``."""
        self._check_channels(x)
        x = x.clone() if self.mean is None else x - self.mean  # a new tensor: some models write to their input
        if self.std is not None:
            x = x / self.std
        self.tapped.features = None
        logits = find_logits(self.body(x), self.logits)
        features: Tensor | None = self.tapped.features
        if features is None:
            raise RuntimeError(
                f"the layer {self.feature_layer!r} did not run in the model's forward, so it has no features: "
                "name the right one with feature_layer="
            )
        self.tapped.features = None
        return to_logits(logits, self.ends_in), features

    def _check_channels(self, x: Tensor) -> None:
        for name, values in (("mean", self.mean), ("std", self.std)):
            if values is not None and values.shape[1] not in (1, x.shape[1]):
                raise ValueError(f"x has {x.shape[1]} channels, but {name} is given for {values.shape[1]}")

    def _tap(self, module: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
        features = (args[0] if args else next(iter(kwargs.values()))).detach()
        if features.ndim > 2:  # positions are (B, positions, d) for a linear layer, (B, d, positions) for others
            linear = isinstance(module, nn.Linear)
            features = features.flatten(1, -2).mean(1) if linear else features.flatten(2).mean(2)
        self.tapped.features = features
