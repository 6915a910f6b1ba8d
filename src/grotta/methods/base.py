"""The step that every method takes: predict, remember, adapt."""

import contextlib
import inspect
import logging
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Never, Self, cast

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_flag, check_seed, check_type, check_whole
from grotta.augment import check_viewable, strong_view
from grotta.methods.arguments import (
    check_channels,
    check_floats,
    check_model,
    check_option_names,
    settle_num_classes,
    settle_output,
)
from grotta.methods.compiled import CompiledNetwork, Compiler
from grotta.methods.description import Description, describe
from grotta.methods.inputs import check_images, ordinary, to_float
from grotta.methods.precision import caller_autocast
from grotta.methods.state import Memory, gather_state, own_names, restore_state
from grotta.methods.step import Batch, Learned, Pending, Prediction
from grotta.methods.step_info import StepInfo
from grotta.methods.teacher import NothingToTrainError
from grotta.methods.turns import Turns
from grotta.nn import Network, NormFactory, find_classifier, own_affine, replace_norms, shared_copy
from grotta.outputs import OutputAdaptation

__all__ = ["Adapter", "Batch", "Learned", "Pending", "Prediction"]


class Adapter(nn.Module, ABC):
    """A classifier that adapts while it is used: call it on a batch and it predicts, remembers and adapts.

    A method is a subclass with three parts: ``build`` makes the networks, the memory and the optimizer; ``infer``
    predicts and changes nothing; ``learn`` remembers and adapts. Its ``__init__`` stores the method's own options
    and ends with ``self.reset()``.

    Several threads may call one adapter. Calls that change it (the call itself, ``learn_from``, ``reset``,
    ``load_state_dict``) run one after the other; calls that do not (``predict``, ``answer``, ``state_dict``, ``save``)
    run side by side between them. The results are those of some order of the calls, one after the other.

    Options that every method takes:
        num_classes: of the model; inferred from its last linear layer.
        seed: of everything random in the method.
        mean, std: per channel, for a model that expects normalised input. The adapter itself takes [0, 1].
        feature_layer: name of the module whose input are the features; the last linear layer by default.
        output: adaptation of the predictions, ``None`` or one of ``grotta.outputs.list_outputs()``.
        output_options: options of that adaptation, by name; ``k``, ``affinity``, ``sigma`` and ``lam`` may also be
            given as options of the adapter.
        check_input: look at every float batch for NaN, infinities and values outside [0, 1].
        channels_last: run the network in that memory format, the faster one for convolutions.
        compile: run the networks through ``torch.compile``: a slow first batch for faster ones after it, the results
            the same up to rounding. Where that fails, as without a C++ compiler, a warning says so, once.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""  # the name as people write it, in tables and figures
    place: ClassVar[int] = 1000  # rows of tables are sorted by it
    cost: ClassVar[float] = 7.0  # time of a step in forward passes of the source model, roughly
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "official": {}}
    trains_on_prediction: ClassVar[bool] = False  # whether ``infer`` records gradients for ``learn``
    augments: ClassVar[bool] = False  # whether ``infer`` or ``learn`` makes strong views, which not all images allow
    adapts_nothing: ClassVar[bool] = False  # whether it leaves the model as it is on purpose
    reconstruction: ClassVar[bool] = False  # whether it is made from a paper alone, without public code to compare with

    last: StepInfo | None
    memory: Memory | None
    optimizer: torch.optim.Optimizer | None
    arguments: dict[str, Any]
    model: nn.Module
    output: OutputAdaptation
    _image_shape: tuple[int, ...] | None
    _own: frozenset[str]

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
        output: str | None = None,
        output_options: Mapping[str, Any] | None = None,
        check_input: bool = True,
        channels_last: bool = True,
        compile: bool = False,
        **flat_output_options: Any,
    ) -> None:
        super().__init__()
        model = check_model(model)
        object.__setattr__(self, "model", model)  # the caller's: referred to, not a sub-module of ours
        self.feature_layer, classifier = find_classifier(model, feature_layer)
        self.num_classes = settle_num_classes(num_classes, classifier)
        self.seed = check_seed(seed)
        self.mean, self.std = check_channels("mean", mean), check_channels("std", std)
        self.check_input = check_flag("check_input", check_input)
        adaptation = settle_output(output, self.num_classes, output_options, flat_output_options)
        object.__setattr__(self, "output", adaptation)  # its state is saved under a name of its own, even if a module
        self._prefers_channels_last = check_flag("channels_last", channels_last)
        self._compiler = Compiler() if check_flag("compile", compile) else None
        self._warned_of_hooks = self._described = False
        self._turns = Turns()
        self._drawing = threading.local()
        self._version = 0  # of the state: every change counts it up
        self._prefix = ""  # inside of a module whose state is being loaded
        self.register_load_state_dict_post_hook(type(self)._forgive_missing)  # type: ignore[no-untyped-call]

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
        self._image_shape = None
        self._build()
        self._own = own_names(self)
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
        body = shared_copy(self.model, warn=not self._warned_of_hooks)
        self._warned_of_hooks = True
        if norm is not None:
            body = replace_norms(body, norm)
            own_affine(body)
        parts = (body, self.feature_layer, self.mean, self.std)
        return Network(*parts) if self._compiler is None else CompiledNetwork(*parts, compiler=self._compiler)

    # State -----------------------------------------------------------------------------------------------------

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:  # type: ignore[override]
        """Copies of all that the next call depends on, as one flat dict of tensors.

        Weights that are shared with the model are not in it.
        """
        state: dict[str, Tensor] = {} if destination is None else destination
        with self._turns.shared():
            state.update({prefix + key: tensor for key, tensor in gather_state(self).items()})
        return state

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False) -> None:
        """Continue from ``state_dict``; one that does not fit raises an error and changes nothing."""
        with self._turns.exclusive():
            restore_state(self, state_dict)
            self._version += 1
            self.last = None
            self._image_shape = None

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Tensor],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """What ``load_state_dict`` of a module calls for each part of it, here for an adapter as such a part."""
        self._prefix = prefix
        try:
            self.load_state_dict({key.removeprefix(prefix): tensor for key, tensor in state_dict.items()})
        except ValueError as error:
            error_msgs.append(f"{prefix.removesuffix('.')}: {error}")

    @staticmethod
    def _forgive_missing(adapter: nn.Module, keys: Any) -> None:
        """The networks inside have no entries of their own in a state: they are not missing from it."""
        prefix = cast(Adapter, adapter)._prefix
        keys.missing_keys[:] = [key for key in keys.missing_keys if not key.startswith(prefix)]

    # Inside a step ---------------------------------------------------------------------------------------------

    def _reading(self) -> contextlib.AbstractContextManager[None]:
        """The turn of a call that changes nothing; compiled networks are not run by two threads at once."""
        return self._turns.shared() if self._compiler is None else self._turns.exclusive()

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
        with (
            torch.inference_mode(False),
            torch.no_grad(),
            caller_autocast(self.device),
            self._drawing_from_a_copy() as generator,
        ):
            images = images.detach().clone() if copy else ordinary(images)
            before = self._generator.get_state()
            inputs, prediction = self._infer(images, record)
            probs = prediction.logits.detach().to(self.wide).softmax(1)
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
            self.output.observe(pending.probs, pending.prediction.features.to(self.wide), output)
            learned = Learned() if self._unadapted is not None else self.learn(batch, prediction, output.probs)
        self.step += 1
        self._image_shape = tuple(batch.images.shape[1:]) if self.memory is not None else None
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

    def _accept(self, x: object) -> Tensor:
        images = check_images(x, device=self.device, shape=self._image_shape, values=self.check_input)
        if self.augments:
            check_viewable(images)
        return images

    def _infer(self, images: Tensor, record: bool) -> tuple[Tensor, Prediction]:
        """The first batch also settles the memory format: models that ``view`` their features need the plain one."""
        plain = torch.contiguous_format
        wanted = self._format or (torch.channels_last if self._prefers_channels_last else plain)
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
        accepted = ordinary(check_images(images, device=self.device, shape=None, values=True))
        return map(self.to_input, torch.split(accepted, check_whole("batch_size", batch_size, at_least=1)))

    def to_input(self, images: Tensor) -> Tensor:
        """Images out of a memory in the form that a network takes."""
        return to_float(images, self.dtype, self._format or torch.contiguous_format)

    def train(self, mode: bool = True) -> Self:
        """Nothing: an adapter has one mode, whatever its parent does."""
        return self

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        probe = torch.empty(0, dtype=self.dtype, device=self.device)
        if (moved := fn(probe)).device == probe.device and moved.dtype == probe.dtype:
            return self
        raise RuntimeError("an adapter stays where its model is: move or cast the model, then wrap it again")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A second adapter in the same state, on the same model: weights stay shared."""
        twin = type(self)(self.model, **self.arguments)
        twin.load_state_dict(self.state_dict())
        return twin

    def __reduce__(self) -> Never:
        raise TypeError("adapters are not pickled: use save() and grotta.load()")

    def __repr__(self) -> str:
        options = "".join(f", {key}={value!r}" for key, value in self.arguments.items())
        return f"{type(self).__name__}({type(self.model).__name__}{options})"
