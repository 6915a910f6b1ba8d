"""One adapter that learns and one that answers meanwhile."""

import threading
from collections.abc import Mapping

import torch
from torch import Tensor

from grotta.methods.base import Adapter
from grotta.serve.streams.gate import Gate


def learns(adapter: Adapter) -> bool:
    """Whether the method remembers or adapts at all.

    >>> import grotta
    >>> learns(grotta.create("source", grotta.checks.small_model()))
    False
    """
    return type(adapter).learn is not Adapter.learn


class Pair:
    """A stream's adapter, and its twin that answers with what was learned last while the next step is under way.

    Both share every weight with the model; the twin has norm states of its own and no memory. The learner sees each
    batch as a plain call, so its state is that of the library on the same batches, bit for bit. The twin is made before
    the first step, since making it takes as long as making the learner: until then the learner answers, as always with
    a method that does not learn.

    >>> import grotta
    >>> pair = Pair(grotta.create("tent", grotta.checks.small_model()))
    >>> x = torch.rand(4, 3, 12, 12)
    >>> before = pair.answer(x)
    >>> torch.equal(pair.learn(x), before), torch.equal(pair.answer(x), before)
    (True, False)
    """

    def __init__(self, learner: Adapter, gate: Gate | None = None) -> None:
        self.learner = learner
        self._gate = gate or Gate()
        self.learns = learns(learner)
        self._twin: Adapter | None = None
        self._lock = threading.Lock()
        self._watch()

    def answer(self, x: Tensor) -> Tensor:
        """Probabilities (B, classes) for ``x``, learned from later if at all."""
        with self._lock:
            if self.learns:
                return (self._twin or self.learner).predict(x)
            probs: Tensor = self.learner(x)
            return probs

    def learn(self, x: Tensor) -> Tensor:
        """Predict, remember and adapt, then answer with what was learned; returns the learner's probabilities."""
        if self.learns and self._twin is None:
            self._gate.stand_still()
            self._follow(type(self.learner)(self.learner.model, **self.learner.arguments))
        probs: Tensor = self.learner(x)
        self._follow()
        return probs

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from the learner's ``state``; one that does not fit changes nothing."""
        self.learner.load_state_dict(dict(state))
        self._follow()

    def reset(self) -> None:
        """Start over."""
        self.learner.reset()
        self._watch()  # its networks are new
        self._follow()

    def nbytes(self) -> int:
        """Bytes of both adapters beside the shared weights, about: norm states, memory and module trees."""
        parts = {name.partition(".")[0] for name in self.learner._own}  # the others are shared among streams
        trees = [part for name, part in self.learner.named_children() if name in parts]
        modules = sum(1 for tree in trees for _ in tree.modules()) * (1 + self.learns)
        store = getattr(self.learner.memory, "nbytes", 0)
        own = sum(tensor.nbytes for tensor in _own(self.learner)) * (1 + self.learns)
        return int(own + store + modules * _MODULE_BYTES)

    def _watch(self) -> None:
        """Have the learner look at the gate, unless that would break a compiled network into pieces."""
        if not self.learner.arguments.get("compile"):
            self._gate.watch(self.learner)

    def _follow(self, new: Adapter | None = None) -> None:
        """Give the twin the learner's norm states, its output adaptation's state, its count of steps and its draws."""
        if new is not None:
            self._guard = new._guard
        twin = new or self._twin
        if twin is None:
            return
        with self._lock, torch.inference_mode(False), torch.no_grad():
            torch._foreach_copy_(_own(twin), _own(self.learner))
            twin.output.load_state_dict(self.learner.output.state_dict())
            twin.step = self.learner.step
            twin.generator.set_state(self.learner.generator.get_state())
            # The learner's guard watches; the twin asks the source model, which costs a pass, only while it answers.
            fallen = self.learner._guard is not None and self.learner._guard.fallen
            twin._guard = self._guard if fallen else None
            if self._guard is not None:
                self._guard.fallen = fallen
            self._twin = twin


_MODULE_BYTES = 4096  # of a layer without its tensors; measured, see docs/serve.md


def _own(adapter: Adapter) -> list[Tensor]:
    """The parameters and buffers that are not the model's."""
    named = [*adapter.named_parameters(), *adapter.named_buffers()]
    return [tensor for name, tensor in named if name in adapter._own]
