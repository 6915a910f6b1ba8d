"""The step that every method takes: predict, remember, adapt."""

import inspect
import logging
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from grotta._check import check_flag, check_seed, check_type
from grotta.methods.arguments import check_floats, check_option_names, settle_output
from grotta.methods.description import Description, describe
from grotta.methods.finite import FiniteWatch
from grotta.methods.guard import Guard
from grotta.methods.rollback import Rollback
from grotta.methods.state import own_names
from grotta.methods.step import Batch, Learned, Pending, Prediction
from grotta.methods.step_info import StepInfo
from grotta.methods.stepping import Stepping
from grotta.methods.teacher import NothingToTrainError
from grotta.methods.wrapped import WrappedModel
from grotta.nn import Network, NormFactory
from grotta.nn.logits import Ending, Field

__all__ = ["Adapter", "Batch", "Learned", "Pending", "Prediction"]


class Adapter(Stepping):
    """A classifier that adapts while it is used: call it on a batch and it predicts, remembers and adapts.

    A method is a subclass with three parts: ``build`` makes the networks, the memory and the optimizer; ``infer``
    predicts and changes nothing; ``learn`` remembers and adapts. Its ``__init__`` stores the method's own options
    and ends with ``self.reset()``.

    Several threads may call one adapter. Calls that change it (the call itself, ``learn_from``, ``reset``,
    ``load_state_dict``) run one at a time; calls that do not (``predict``, ``answer``, ``state_dict``, ``save``)
    run concurrently between them. The results are those of some serial order of the calls.

    Options that every method takes:
        num_classes: of the model; inferred from what it returns or from its classifier.
        seed: of everything random in the method.
        mean, std: per channel, for a model that expects normalised input. The adapter itself takes [0, 1].
        feature_layer: name of the module whose input are the features; the classifier by default, which is the last
            linear layer or 1x1 convolution.
        logits: name or place of the logits in what the model returns, if that is not a tensor; an entry or attribute
            ``logits``, or the first of a tuple, is found without it.
        ends_in: ``"softmax"`` for a model that returns probabilities, ``"sigmoid"`` for one that returns a probability
            for each class by itself, ``"logits"`` for one that only looks as if it did; ``None`` warns if the first
            batch looks like probabilities.
        output: adaptation of the predictions, ``None`` or one of ``grotta.outputs.list_outputs()``.
        output_options: options of that adaptation, by name; ``k``, ``affinity``, ``sigma`` and ``lam`` may also be
            given as options of the adapter.
        check_input: look at every float batch for NaN, infinities and values outside [0, 1].
        channels_last: run the network in that memory format, the faster one for convolutions.
        compile: run the networks through ``torch.compile``: a slow first batch, then faster ones, with the same
            results up to rounding. Where that fails, as without a C++ compiler, a warning says so, once.
        guard: run the source model too, answer with it while adaptation seems to hurt, and go back to the last good
            state if adaptation has collapsed (``docs/guard.md``); costs one forward pass.
    """

    title: ClassVar[str] = ""  # the name as people write it, in tables and figures
    place: ClassVar[int] = 1000  # rows of tables are sorted by it
    cost: ClassVar[float] = 7.0  # time of a step in forward passes of the source model, roughly
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "official": {}}
    contains_source: ClassVar[bool] = False  # whether its predictions include the source's: it needs no guard
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
        guard: bool = False,
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
        self._wants_guard = check_flag("guard", guard)
        self._described = False

    # What a method defines -------------------------------------------------------------------------------------

    @abstractmethod
    def build(self) -> None:
        """Make networks (with :meth:`network`), memory and optimizer, as for a new stream."""

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
        self._build_guard()
        self._own = own_names(self)
        self._finite, self._rollback = FiniteWatch(), Rollback()
        if not self._described:
            self._say_what_adapts()

    def _build(self) -> None:
        """Build the method's parts or, for a model with nothing to train, the model alone."""
        before = set(self._modules)
        self._unadapted: Network | None = None
        try:
            self.build()
        except NothingToTrainError:
            for name in set(self._modules) - before:
                del self._modules[name]
            self.memory, self.optimizer = None, None
            self._unadapted = self.network()

    def _build_guard(self) -> None:
        self._guard: Guard | None = None
        if self._wants_guard and self._unadapted is None and not (self.contains_source or self.adapts_nothing):
            self._guard = Guard(self.num_classes, device=self.device, dtype=self.wide)
            self.beside = self.fixed_network()

    def _say_what_adapts(self) -> None:
        self._described = True
        description = self.describe()
        logging.getLogger("grotta").info("%s", description)
        if not description.adapts and not self.adapts_nothing:
            warnings.warn(
                f"method {self.name!r} finds nothing to adapt in {type(self.model).__name__}, which has "
                f"{description.lacks}: its predictions are the source model's",
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
        """Write everything that the next call depends on to ``path`` (safetensors), completely or not at all."""
        from grotta.methods.checkpoint import save

        save(self, path)

    def network(self, norm: NormFactory | None = None) -> Network:
        """A network with the model's weights, shared by reference.

        With ``norm``, its batch normalisations are replaced by layers that it makes, and normalisation layers of other
        kinds get their own affine parameters.
        """
        return self._wrapped.network(norm)

    def fixed_network(self, norm: NormFactory | None = None) -> Network:
        """As :meth:`network`, for one that never changes: it has no state, and all adapters of a model share it."""
        return self._wrapped.fixed(norm)
