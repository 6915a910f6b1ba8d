"""The step that every method takes: predict, remember, adapt."""

import contextlib
import inspect
import logging
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_flag, check_seed, check_type, check_whole
from grotta.augment import check_viewable, strong_view
from grotta.methods.arguments import check_floats, check_option_names, settle_output
from grotta.methods.description import Description, describe, trained_parameters
from grotta.methods.finite import FiniteWatch, size_of
from grotta.methods.first_batch import warn_of_softmax, watching_norms
from grotta.methods.inputs import check_images, ordinary, to_float
from grotta.methods.persistent import Persistent
from grotta.methods.precision import caller_autocast
from grotta.methods.rollback import Rollback
from grotta.methods.state import own_names
from grotta.methods.step import Batch, Learned, Pending, Prediction
from grotta.methods.step_info import StepInfo
from grotta.methods.teacher import NothingToTrainError
from grotta.methods.wrapped import WrappedModel
from grotta.nn import Network, NormFactory
from grotta.nn.logits import Field
from grotta.nn.memory_format import channels_last_is_safe
from grotta.nn.network import Ending

__all__ = ["Adapter", "Batch", "Learned", "Pending", "Prediction"]


class Adapter(Persistent, ABC):
    """A classifier that adapts while it is used: call it on a batch and it predicts, remembers and adapts.

    A method is a subclass with three parts: ``build`` makes the networks, the memory and the optimizer; ``infer``
    predicts and changes nothing; ``learn`` remembers and adapts. Its ``__init__`` stores the method's own options
    and ends with ``self.reset()``.

    Several threads may call one adapter. Calls that change it (the call itself, ``learn_from``, ``reset``,
    ``load_state_dict``) run one after the other; calls that do not (``predict``, ``answer``, ``state_dict``, ``save``)
    run side by side between them. The results are those of some order of the calls, one after the other.

    Options that every method takes:
        num_classes: of the model; inferred from what it returns or from its classifier.
        seed: of everything random in the method.
        mean, std: per channel, for a model that expects normalised input. The adapter itself takes [0, 1].
        feature_layer: name of the module whose input are the features; the classifier by default, which is the last
            linear layer or 1x1 convolution.
        logits: name or place of the logits in what the model returns, if that is not a tensor; an entry or attribute
            ``logits``, or the first of a tuple, is found without.
        ends_in: ``"softmax"`` for a model that returns probabilities, ``"logits"`` for one that does not although it
            may look so; ``None`` warns if the first batch looks like probabilities.
        output: adaptation of the predictions, ``None`` or one of ``grotta.outputs.list_outputs()``.
        output_options: options of that adaptation, by name; ``k``, ``affinity``, ``sigma`` and ``lam`` may also be
            given as options of the adapter.
        check_input: look at every float batch for NaN, infinities and values outside [0, 1].
        channels_last: run the network in that memory format, the faster one for convolutions.
        compile: run the networks through ``torch.compile``: a slow first batch for faster ones after it, the results
            the same up to rounding. Where that fails, as without a C++ compiler, a warning says so, once.
    """

    title: ClassVar[str] = ""  # the name as people write it, in tables and figures
    place: ClassVar[int] = 1000  # rows of tables are sorted by it
    cost: ClassVar[float] = 7.0  # time of a step in forward passes of the source model, roughly
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "official": {}}
    trains_on_prediction: ClassVar[bool] = False  # whether ``infer`` records gradients for ``learn``
    augments: ClassVar[bool] = False  # whether ``infer`` or ``learn`` makes strong views, which not all images allow
    adapts_nothing: ClassVar[bool] = False  # whether it leaves the model as it is on purpose
    reconstruction: ClassVar[bool] = False  # whether it is made from a paper alone, without public code to compare with

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the arguments as given, for :meth:`save`."""
        self = super().__new__(cls)
        check_option_names(cls, kwargs)
        given = inspect.signature(cls.__init__).bind(self, *args, **kwargs).kwargs
        object.__setattr__(self, "arguments", given)
        return self

    def __init__(
        self,
        model: nn.Module,
        *,
        num_classes: int | None = None,
        seed: int = 0,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        feature_layer: str | None = None,
        logits: Field = None,
        ends_in: Ending | None = None,
        output: str | None = None,
        output_options: Mapping[str, Any] | None = None,
        check_input: bool = True,
        channels_last: bool = True,
        compile: bool = False,
        **flat_output_options: Any,
    ) -> None:
        super().__init__()
        self._wrapped = WrappedModel(
            model,
            num_classes=num_classes,
            mean=mean,
            std=std,
            feature_layer=feature_layer,
            logits=logits,
            ends_in=ends_in,
            compile=compile,
        )
        object.__setattr__(self, "model", self._wrapped.model)  # the caller's: referred to, not a sub-module of ours
        self.feature_layer, self.num_classes = self._wrapped.feature_layer, self._wrapped.num_classes
        self.mean, self.std = self._wrapped.mean, self._wrapped.std
        self.seed = check_seed(seed)
        self.check_input = check_flag("check_input", check_input)
        adaptation = settle_output(output, self.num_classes, output_options, flat_output_options)
        object.__setattr__(self, "output", adaptation)  # its state is saved under a name of its own, even if a module
        self._prefers_channels_last = check_flag("channels_last", channels_last)
        self._described = self._looked = False
        self._drawing = threading.local()
        self._version = 0  # of the state: every change counts it up

    # What a method defines -------------------------------------------------------------------------------------

    @abstractmethod
    def build(self) -> None:
        """Make networks (with :meth:`network`), memory and optimizer, as for a stream that begins."""

    @abstractmethod
    def infer(self, inputs: Tensor) -> Prediction:
        """Predict ``inputs`` (B, C, H, W); no state may change."""

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Remember and adapt, given the prediction and the probabilities (B, classes) that go out."""
        return Learned()

    # What a user calls -----------------------------------------------------------------------------------------

    def forward(self, x: Tensor) -> Tensor:
        """Predict, remember and adapt: ``x`` (B, C, H, W), uint8 or float in [0, 1], to probabilities (B, classes)."""
        with self._turns.exclusive():
            pending = self._answer(x, self.trains_on_prediction)
            self._learn_from(pending)
        return pending.output.probs

    def predict(self, x: Tensor) -> Tensor:
        """The probabilities that calling the adapter would give, without remembering or adapting."""
        with self._reading():
            return self._answer(x, record=False).output.probs

    def answer(self, x: Tensor) -> tuple[Tensor, Pending]:
        """The first half of a call: probabilities (B, classes), and what :meth:`learn_from` needs to do the rest.

        Nothing changes, as with :meth:`predict`. The two halves, one directly after the other, give the same bits as
        the call. The pending batch holds copies: ``x`` and the probabilities may be overwritten meanwhile.

        >>> import grotta
        >>> adapter = grotta.create("tent", grotta.checks.small_model())
        >>> probs, pending = adapter.answer(torch.rand(4, 3, 12, 12))
        >>> adapter.step, adapter.learn_from(pending).step
        (0, 1)
        """
        with self._reading():
            pending = self._answer(x, self.trains_on_prediction, copy=True)
        return pending.output.probs.clone(), pending

    def learn_from(self, pending: Pending) -> StepInfo:
        """The second half of a call: remember and adapt to a batch that :meth:`answer` answered.

        Several batches may be answered before the first is learned from. Each is then learned with the prediction made
        when it was answered, which is what goes into the memory and into teachers' targets. Methods that minimise a
        function of their own prediction (TENT and its kin) take its gradient at the present parameters: if these have
        moved since the answer, they pass the batch through the network again. Random draws that the answer made are
        taken to have happened unless another batch has been learned from since. A pending batch can be learned from
        once, before or after a ``reset`` or ``load_state_dict``.
        """
        check_type("pending", pending, Pending, "what answer() returned")
        with self._turns.exclusive():
            return self._learn_from(pending)

    def reset(self) -> None:
        """Become as newly created: the source model, an empty memory, the first seed."""
        with self._turns.exclusive(), torch.inference_mode(False):
            self._reset()

    def _reset(self) -> None:
        self._version += 1
        self.step = 0
        self.last = None
        self.memory = None
        self.optimizer = None
        self.generator = torch.Generator().manual_seed(self.seed)
        self.output.reset()
        self.device, self.dtype = check_floats(self.model)
        self.wide = self.dtype  # of probabilities and losses
        self._format: torch.memory_format | None = None
        self._build()
        self._own = own_names(self)
        self._finite, self._rollback = FiniteWatch(), Rollback()
        if not self._described:
            self._say_what_adapts()

    def _build(self) -> None:
        """Build the method's parts or, on a model with nothing that it trains, the model alone."""
        before = set(self._modules)
        self._unadapted: Network | None = None
        try:
            self.build()
        except NothingToTrainError:
            for name in set(self._modules) - before:
                del self._modules[name]
            self.memory, self.optimizer = None, None
            self._unadapted = self.network()

    def _say_what_adapts(self) -> None:
        self._described = True
        description = self.describe()
        logging.getLogger("grotta").info("%s", description)
        if not description.adapts and not self.adapts_nothing:
            warnings.warn(
                f"method {self.name!r} finds nothing to adapt in {type(self.model).__name__}, which has "
                f"{'no batch normalisation layer' if description.layers else 'no normalisation layer'}: "
                "its predictions are the source model's",
                UserWarning,
                stacklevel=5,
            )

    def describe(self) -> Description:
        """What is adapted: layers by kind, parameters trained, what is shared with the model, and bytes.

        >>> import grotta
        >>> description = grotta.create("tent", grotta.checks.small_model()).describe()
        >>> description.layers, description.trained
        ({'BatchNorm': 2}, 28)
        """
        with self._turns.shared():
            return describe(
                self,
                self.model,
                self.optimizer,
                method=self.name,
                memory_bytes=0 if self.memory is None else self.memory.nbytes,
                output=self.output.name or None,
            )

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything that the next call depends on to ``path`` (safetensors), at once or not at all."""
        from grotta.methods.checkpoint import save

        save(self, path)

    def network(self, norm: NormFactory | None = None) -> Network:
        """A network with the model's weights, shared by reference.

        With ``norm``, its batch normalisations are replaced by layers that it makes, and normalisation layers of other
        kinds get their own affine parameters.
        """
        return self._wrapped.network(norm)

    # Inside a step ---------------------------------------------------------------------------------------------

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
            with torch.autocast(self.device.type, enabled=False):  # little work, which needs the precision
                probs = logits.to(self.wide).softmax(1)
                output = self.output.refine(probs, prediction.features.to(self.wide))
            after = generator.get_state()
        draws = None if torch.equal(before, after) else (before, after)
        return Pending(self, self._version, Batch(images, inputs), prediction, probs, output, draws)

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
            learned = self._learn_or_undo(batch, prediction, output.probs)
            self.output.observe(pending.probs, pending.prediction.features.to(self.wide), output)
        self.step += 1
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
            extra={**output.numbers, **learned.numbers},
        )
        return self.last

    def _learn_or_undo(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Learn; a step that fails, or that leaves NaN or infinity, is undone where that can be known at once."""
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
            warn_of_softmax(prediction.logits.detach())
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
                if not isinstance(error, RuntimeError) or isinstance(error, torch.OutOfMemoryError):
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
