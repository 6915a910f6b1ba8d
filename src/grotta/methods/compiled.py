"""Networks run through ``torch.compile``, or as they are where that does not work."""

import types
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from grotta.nn import Network

Outputs = tuple[Tensor, Tensor]
Pass = Callable[[Network, Tensor], Outputs]


class Compiler:
    """Runs the networks of one adapter compiled, all of them by the same code; once that fails, eagerly from then on.

    Code is made for each kind of pass (with and without gradient, statistics moving and still) on its first batch,
    for every batch size except 1, which runs eagerly: compilers treat that size separately, and it costs little.
    """

    def __init__(self) -> None:
        self._without_gradient = torch.compile(_pass_with_own_code(), fullgraph=True)
        self._with_gradient = torch.compile(_pass_with_own_code(), fullgraph=True)
        self._works = True
        self._backward_works = False

    def run(self, network: Network, x: Tensor) -> Outputs:
        if not self._works or len(x) == 1 or not _compiles(network):
            return Network.run(network, x)
        torch._dynamo.maybe_mark_dynamic(x, 0)
        try:
            return self._run(network, x)
        except Exception as failure:
            # A batch or a model that is to blame fails here as well, with the error that it always gives.
            outputs = Network.run(network, x)
            self._works = False
            reason = " ".join(str(failure).split("\n")[:2])  # what raised, and why; pages of advice follow
            warnings.warn(
                f"compile=True has no effect, torch.compile failed ({reason}); "
                "the adapter runs without it, more slowly and with the same results",
                UserWarning,
                stacklevel=2,
            )
            return outputs

    def _run(self, network: Network, x: Tensor) -> Outputs:
        if not torch.is_grad_enabled():
            return self._without_gradient(network, x)
        if not self._backward_works:
            self._try_backward(network, x)
        return self._with_gradient(network, x)

    def _try_backward(self, network: Network, x: Tensor) -> None:
        """Compile the backward pass now, while it can still be done without; leaves no trace."""
        kept = [(buffer, buffer.clone()) for buffer in network.buffers()]
        trained = [p for p in network.parameters() if p.requires_grad]
        try:
            logits, _ = self._with_gradient(network, x)
            if logits.requires_grad:
                torch.autograd.grad(logits.sum(), trained, allow_unused=True)
        finally:
            with torch.no_grad():
                for buffer, value in kept:
                    buffer.copy_(value)
        self._backward_works = True


def _compiles(network: Network) -> bool:
    """Whether none of its layers asks to be left as it is."""
    known = network.__dict__.get("_compiles")
    if known is None:
        known = network.__dict__["_compiles"] = all(getattr(layer, "compiles", True) for layer in network.modules())
    return bool(known)


class _Tapped:
    """Where the tap on a compiled network leaves its features."""

    features: Tensor | None = None


class CompiledNetwork(Network):
    """A network whose passes a :class:`Compiler` runs."""

    def __init__(self, *parts: Any, compiler: Compiler) -> None:
        super().__init__(*parts)
        self.compiler = compiler
        self.tapped = _Tapped()  # compilers do not follow thread-local values

    def forward(self, x: Tensor) -> Outputs:
        return self.compiler.run(self, x)


def _pass_with_own_code() -> Pass:
    """``Network.run`` with a code object of its own.

    Compiled code is kept, and its amount limited, by code object: so an adapter does not use up the limit of others,
    and after a reset it uses again what it has.
    """
    run = Network.run
    return types.FunctionType(run.__code__.replace(), run.__globals__)
