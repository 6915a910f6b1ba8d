"""How a step is taken: everything between a call of an adapter and its method's three functions."""

import contextlib
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from grotta import functional as GF
from grotta._check import check_whole
from grotta.augment import check_viewable, strong_view
from grotta.methods.description import trained_parameters
from grotta.methods.finite import FiniteWatch, size_of
from grotta.methods.first_batch import warn_of_probabilities, watching_norms
from grotta.methods.inputs import check_images, ordinary, to_float
from grotta.methods.persistent import Persistent
from grotta.methods.precision import caller_autocast
from grotta.methods.rollback import Rollback
from grotta.methods.state import gather_state, restore_state
from grotta.methods.step import Batch, Learned, Pending, Prediction
from grotta.methods.step_info import StepInfo
from grotta.methods.wrapped import WrappedModel
from grotta.nn import Network
from grotta.nn.memory_format import channels_last_is_safe
from grotta.outputs import Output


class Stepping(Persistent, ABC):
    """Predicts with a method's ``infer`` and lets it ``learn``, in any thread and mode, completely or not at all."""

    trains_on_prediction: ClassVar[bool] = False  # whether ``infer`` records gradients for ``learn``
    augments: ClassVar[bool] = False  # whether ``infer`` or ``learn`` makes strong views, which not all images allow
    num_classes: int
    feature_layer: str
    check_input: bool
    wide: torch.dtype
    _generator: torch.Generator
    _wrapped: WrappedModel
    _unadapted: Network | None
    _format: torch.memory_format | None
    _prefers_channels_last: bool
    _finite: FiniteWatch
    _rollback: Rollback
    _wants_guard: bool
    beside: Network  # the source model, if a guard watches

    def __init__(self) -> None:
        super().__init__()
        self._drawing = threading.local()
        self._version = 0  # of the state: every change counts it up
        self._looked = False  # at how the model behaves on a real batch

    @abstractmethod
    def infer(self, inputs: Tensor) -> Prediction:
        """Predict ``inputs`` (B, C, H, W); no state may change."""

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Remember and adapt, given the prediction and the probabilities (B, classes) that go out."""
        return Learned()

    def _reading(self) -> contextlib.AbstractContextManager[None]:
        """The turn of a call that changes nothing; compiled networks are not run by two threads at once."""
        return self._turns.shared() if self._wrapped.compiler is None else self._turns.exclusive()

    @property
    def generator(self) -> torch.Generator:
        """What everything random is drawn from; while an answer is made, a copy for the thread that makes it."""
        own: torch.Generator = getattr(self._drawing, "generator", self._generator)
        return own

    @generator.setter
    def generator(self, generator: torch.Generator) -> None:
        self._generator = generator

    @contextlib.contextmanager
    def _drawing_from_a_copy(self) -> Iterator[torch.Generator]:
        self._drawing.generator = torch.Generator().set_state(self._generator.get_state())
        try:
            yield self._drawing.generator
        finally:
            del self._drawing.generator

    def _answer(self, x: Tensor, record: bool, copy: bool = False) -> Pending:
        """Predict ``x``; no state changes."""
        images = self._accept(x)
        self._finite.report()
        with (
            torch.inference_mode(False),
            torch.no_grad(),
            caller_autocast(self.device),
            self._drawing_from_a_copy() as generator,
        ):
            images = images.detach().clone() if copy else ordinary(images)
            before = self._generator.get_state()
            inputs, prediction = self._first_infer(images, record) if not self._looked else self._infer(images, record)
            logits = prediction.logits.detach()
            self._finite.check(logits, self._not_finite("predictions"))
            with torch.autocast(self.device.type, enabled=False):  # cheap, and needs the precision
                probs = logits.to(self.wide).softmax(1)
            source = None if self._guard is None else self.beside(inputs)[0].to(self.wide).softmax(1)
            answered = source if source is not None and self._guard is not None and self._guard.fallen else probs
            with torch.autocast(self.device.type, enabled=False):
                output = self._refined(answered, prediction)
            after = generator.get_state()
        draws = None if torch.equal(before, after) else (before, after)
        batch = Batch(images, inputs)
        return Pending(self, self._version, batch, prediction, probs, output, draws, source, answered)

    def _refined(self, probs: Tensor, prediction: Prediction) -> Output:
        """The output for probabilities; some adaptations ask which domain they are of."""
        features = prediction.features.to(self.wide)
        if self.output.knows_domains:
            return self.output.refine(probs, features, domain=prediction.domain)  # type: ignore[call-arg]
        return self.output.refine(probs, features)

    def _learn_from(self, pending: Pending) -> StepInfo:
        """Remember and adapt; the caller has an exclusive turn."""
        pending.claim(self)
        batch, prediction, output = pending.batch, pending.prediction, pending.output
        with torch.inference_mode(False), torch.no_grad(), caller_autocast(self.device):
            if pending.draws is not None and torch.equal(pending.draws[0], self.generator.get_state()):
                self.generator.set_state(pending.draws[1])
            if self.trains_on_prediction and pending.version != self._version:
                prediction = self._infer(batch.images, record=True)[1]  # the recorded pass was of other parameters
            self._version += 1
            start = gather_state(self) if self._guard is not None and self._guard.start is None else None
            learned = self._learn_or_undo(batch, prediction, output.probs)
            told = {"domain": learned.domain} if self.output.knows_domains and learned.domain is not None else {}
            self.output.observe(pending.answered, pending.prediction.features.to(self.wide), output, **told)
        self.step += 1
        guarded = self._consult_guard(pending, start)
        self.last = StepInfo(
            step=self.step,
            batch_size=len(batch.images),
            adapted=learned.adapted,
            zeta=output.zeta,
            lam=output.lam,
            loss=None if learned.loss is None else learned.loss.detach(),
            entropy=GF.entropy(pending.probs).mean(),
            confidence=pending.probs.amax(1).mean(),
            bank_size=learned.bank_size,
            extra={**output.numbers, **learned.numbers, **guarded},
        )
        return self.last

    @torch.inference_mode(False)
    @torch.no_grad()
    def _consult_guard(self, pending: Pending, start: dict[str, Tensor] | None) -> Mapping[str, Tensor | float]:
        """Show the guard the batch; roll back, or take a snapshot, if it says so."""
        guard = self._guard
        if guard is None or pending.source is None:
            return {"guard": 0.0, "rollbacks": 0.0} if self._wants_guard else {}
        guard.start = guard.start or start
        guard.watch(pending.source, pending.probs)
        numbers = guard.numbers()
        if guard.rollback_is_due():
            now = {"generator": self.generator.get_state(), "step": torch.tensor(self.step, device="cpu")}
            restore_state(self, {**guard.roll_back(), **now})
            self._version += 1
        elif guard.snapshot_is_due():
            guard.keep(gather_state(self))
        return {**numbers, "rollbacks": float(guard.rollbacks)}

    def _learn_or_undo(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Learn; undo a step that fails or leaves NaN or infinity, where that can be known at once."""
        if self._unadapted is not None:
            return Learned()
        if self.device.type == "cpu":
            self._rollback.mark(self)
        try:
            self._make_room_for(batch.images)
            learned = self.learn(batch, prediction, probs)
            if learned.loss is not None:
                self._finite.check(learned.loss, self._not_finite("loss"))
            if learned.adapted and (trained := trained_parameters(self.optimizer)):
                self._finite.check(size_of(trained), self._not_finite("parameters"))
        except BaseException:
            if self.device.type == "cpu":
                self._rollback.undo(self)
            raise
        return learned

    def _make_room_for(self, images: Tensor) -> None:
        """Images of another size than those remembered cannot join them: the memory starts over."""
        if self.memory is None or self.memory.image_shape in (None, tuple(images.shape[1:])):
            return
        warnings.warn(
            f"images have changed from {self.memory.image_shape} to {tuple(images.shape[1:])}: the memory starts over",
            UserWarning,
            stacklevel=5,
        )
        self.memory.clear()

    def _not_finite(self, what: str) -> str:
        if self.step == 0 and what == "predictions":
            return "the model's predictions hold NaN or infinity: look at its weights"
        return (
            f"the {what} hold NaN or infinity after {self.step} steps of {self.name!r}: it has diverged, as with too "
            "large a learning rate; this batch has changed nothing, reset() or load_state_dict() goes back further"
        )

    def _accept(self, x: object) -> Tensor:
        images = check_images(x, device=self.device, values=self.check_input)
        if self.augments:
            check_viewable(images)
        return images

    def _first_infer(self, images: Tensor, record: bool) -> tuple[Tensor, Prediction]:
        """As :meth:`_infer`, looking at how the model behaves."""
        with watching_norms(self) if self._wrapped.compiler is None else contextlib.nullcontext():
            inputs, prediction = self._infer(images, record)
        self._looked = True
        if self._wrapped.ends_in is None:
            warn_of_probabilities(prediction.logits.detach())
        return inputs, prediction

    def _infer(self, images: Tensor, record: bool) -> tuple[Tensor, Prediction]:
        """The first batch also settles the memory format: models that ``view`` their features need the plain one."""
        plain = torch.contiguous_format
        wanted = self._format or (torch.channels_last if self._prefers_channels_last else plain)
        if wanted is torch.channels_last and self._format is None and not channels_last_is_safe(self):
            wanted = plain
        drawn = self.generator.get_state()
        for memory_format in dict.fromkeys((wanted, plain)):
            inputs = to_float(images, self.dtype, memory_format)
            try:
                with torch.enable_grad() if record and self._unadapted is None else torch.inference_mode():
                    prediction = self.infer(inputs) if self._unadapted is None else Prediction(*self._unadapted(inputs))
                self._check_logits(prediction.logits, len(images))
            except Exception as error:
                self.generator.set_state(drawn)
                if not isinstance(error, RuntimeError | AssertionError) or isinstance(error, torch.OutOfMemoryError):
                    raise
                refusal = error
            else:
                self._format = memory_format
                return inputs, prediction
        raise ValueError(f"the model refuses x of shape {tuple(images.shape)}: {refusal}") from refusal

    def _check_logits(self, logits: Tensor, batch_size: int) -> None:
        if tuple(logits.shape) != (batch_size, self.num_classes):
            raise ValueError(
                f"the model must return logits of shape (batch, num_classes) = {(batch_size, self.num_classes)}, "
                f"got {tuple(logits.shape)}; if {self.feature_layer!r} is not its classifier, give feature_layer="
            )

    def strong_view(self, inputs: Tensor) -> Tensor:
        """A strong view of ``inputs``, of the network's type."""
        return strong_view(inputs, self.generator).to(self.dtype)

    def in_batches(self, images: Tensor, batch_size: int) -> Iterator[Tensor]:
        """Clean images of the source, checked, in the form that a network takes, ``batch_size`` at a time."""
        accepted = ordinary(check_images(images, device=self.device, values=True))
        return map(self.to_input, torch.split(accepted, check_whole("batch_size", batch_size, at_least=1)))

    def to_input(self, images: Tensor) -> Tensor:
        """Images out of a memory in the form that a network takes."""
        return to_float(images, self.dtype, self._format or torch.contiguous_format)
