"""The caller's model, and the networks that a method makes of it."""

from collections.abc import Sequence
from typing import get_args

from torch import nn

from grotta._check import check_flag, check_one_of
from grotta.methods.arguments import (
    check_channels,
    check_field,
    check_model,
    settle_classifier,
    warn_of_normalisation,
)
from grotta.methods.compiled import CompiledNetwork, Compiler
from grotta.methods.fixed import fixed_network
from grotta.nn import Network, NormFactory, own_affine, replace_norms, shared_copy
from grotta.nn.convert import by_reference
from grotta.nn.logits import Ending, Field


class WrappedModel:
    """A model that can be adapted, with what is known about it."""

    def __init__(
        self,
        model: nn.Module,
        *,
        num_classes: int | None,
        mean: Sequence[float] | None,
        std: Sequence[float] | None,
        feature_layer: str | None,
        logits: Field,
        ends_in: Ending | None,
        compile: bool,
    ) -> None:
        self.model = check_model(model)
        self.logits = check_field(logits)
        self.ends_in: Ending | None = ends_in if ends_in is None else check_one_of("ends_in", ends_in, get_args(Ending))
        self.mean, self.std = check_channels("mean", mean), check_channels("std", std)
        warn_of_normalisation(self.model, given=mean is not None or std is not None)
        self.feature_layer, self.num_classes = settle_classifier(self.model, feature_layer, num_classes, self.logits)
        self.compiler = Compiler() if check_flag("compile", compile) else None
        self._warned_of_hooks = False

    def network(self, norm: NormFactory | None) -> Network:
        """A network on the model's weights, with own norm layers made by ``norm`` if it is given."""
        body = self._body(norm)
        if norm is not None:
            own_affine(body)
        return self._with_tap(body)

    def fixed(self, norm: NormFactory | None) -> Network:
        """A network on the model's weights that never changes, shared among adapters unless it is compiled."""

        def make() -> Network:
            return self._with_tap(self._body(norm and by_reference(norm))).requires_grad_(False)

        if self.compiler is not None:  # its code belongs to one adapter
            return make()
        channels = [None if values is None else tuple(values) for values in (self.mean, self.std)]
        return fixed_network(self.model, (norm, self.feature_layer, *channels, self.logits, self.ends_in), make)

    def _body(self, norm: NormFactory | None) -> nn.Module:
        body = shared_copy(self.model, warn=not self._warned_of_hooks)
        self._warned_of_hooks = True
        return body if norm is None else replace_norms(body, norm)

    def _with_tap(self, body: nn.Module) -> Network:
        ends_in: Ending = self.ends_in or "logits"
        parts = (body, self.feature_layer, self.mean, self.std, self.logits, ends_in)
        return Network(*parts) if self.compiler is None else CompiledNetwork(*parts, compiler=self.compiler)
