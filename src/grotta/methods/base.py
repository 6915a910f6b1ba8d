"""The step that every method takes: predict, remember, adapt."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Never, Self, cast

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_flag, check_seed
from grotta.augment import check_viewable, strong_view
from grotta.methods.arguments import (
    check_channels,
    check_floats,
    check_model,
    check_option_names,
    settle_num_classes,
)
from grotta.methods.compiled import CompiledNetwork, Compiler
from grotta.methods.inputs import check_images, ordinary, to_float
from grotta.methods.output import Output, output_adaptation
from grotta.methods.precision import caller_autocast
from grotta.methods.state import Memory, gather_state, own_names, restore_state
from grotta.methods.step_info import StepInfo
from grotta.nn import Network, NormFactory, find_classifier, norm_layers, replace_norms, shared_copy


class Batch(NamedTuple):
    """One batch in its two forms."""

    images: Tensor  # (B, C, H, W) as they came, uint8 or float: what a memory stores
    inputs: Tensor  # (B, C, H, W) float in [0, 1]: what a network takes


class Prediction(NamedTuple):
    """What a method makes of a batch before it adapts to it."""

    logits: Tensor  # (B, classes)
    features: Tensor  # (B, d)


class Learned(NamedTuple):
    """What a method did with a batch; ``None`` where it has no such thing."""

    adapted: bool = False
    loss: Tensor | None = None
    bank_size: Tensor | int | None = None


class Adapter(nn.Module, ABC):
    """A classifier that adapts while it is used: call it on a batch and it predicts, remembers and adapts.

    A method is a subclass with three parts: ``build`` makes the networks, the memory and the optimizer; ``infer``
    predicts and changes nothing; ``learn`` remembers and adapts. Its ``__init__`` stores the method's own options
    and ends with ``self.reset()``.

    Options that every method takes:
        num_classes: of the model; inferred from its last linear layer.
        seed: of everything random in the method.
        mean, std: per channel, for a model that expects normalised input. The adapter itself takes [0, 1].
        feature_layer: name of the module whose input are the features; the last linear layer by default.
        output: adaptation of the predictions, ``None``, ``"bias_guided"`` or ``"laplacian"``; with ``k``,
            ``affinity``, ``sigma`` and ``lam`` as in ``grotta.functional``.
        check_input: look at every float batch for NaN, infinities and values outside [0, 1].
        channels_last: run the network in that memory format, the faster one for convolutions.
        compile: run the networks through ``torch.compile``: a slow first batch for faster ones after it, the results
            the same up to rounding. Where that fails, as without a C++ compiler, a warning says so, once.
    """

    name: ClassVar[str] = ""
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "official": {}}
    trains_on_prediction: ClassVar[bool] = False  # whether ``infer`` records gradients for ``learn``
    augments: ClassVar[bool] = False  # whether ``infer`` or ``learn`` makes strong views, which not all images allow
    reconstruction: ClassVar[bool] = False  # whether it is made from a paper alone, without public code to compare with

    last: StepInfo | None
    memory: Memory | None
    optimizer: torch.optim.Optimizer | None
    arguments: dict[str, Any]
    model: nn.Module
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
        k: int = 5,
        affinity: str = "knn",
        sigma: float = 1.0,
        lam: float | None = None,
        check_input: bool = True,
        channels_last: bool = True,
        compile: bool = False,
    ) -> None:
        super().__init__()
        model = check_model(model)
        object.__setattr__(self, "model", model)  # the caller's: referred to, not a sub-module of ours
        self.feature_layer, classifier = find_classifier(model, feature_layer)
        self.num_classes = settle_num_classes(num_classes, classifier)
        self.seed = check_seed(seed)
        self.mean, self.std = check_channels("mean", mean), check_channels("std", std)
        self.check_input = check_flag("check_input", check_input)
        self.adapt_output = output_adaptation(output, k=k, affinity=affinity, sigma=sigma, lam=lam)
        self._prefers_channels_last = check_flag("channels_last", channels_last)
        self._compiler = Compiler() if check_flag("compile", compile) else None
        self._warned_of_hooks = False
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
        images = self._accept(x)
        with torch.inference_mode(False), torch.no_grad(), caller_autocast(self.device):
            images = ordinary(images)
            inputs, prediction = self._infer(images, record=self.trains_on_prediction)
            probs, output = self._finish(prediction)
            learned = self.learn(Batch(images, inputs), prediction, output.probs)
        self.step += 1
        self._image_shape = tuple(images.shape[1:]) if self.memory is not None else None
        self.last = StepInfo(
            step=self.step,
            batch_size=len(images),
            adapted=learned.adapted,
            zeta=output.zeta,
            lam=output.lam,
            loss=None if learned.loss is None else learned.loss.detach(),
            entropy=GF.entropy(probs).mean(),
            confidence=probs.amax(1).mean(),
            bank_size=learned.bank_size,
        )
        return output.probs

    def predict(self, x: Tensor) -> Tensor:
        """The probabilities that calling the adapter would give, without remembering or adapting."""
        images = self._accept(x)
        drawn = self.generator.get_state()
        try:
            with torch.inference_mode(False), torch.no_grad(), caller_autocast(self.device):
                return self._finish(self._infer(ordinary(images), record=False)[1])[1].probs
        finally:
            self.generator.set_state(drawn)

    @torch.inference_mode(False)
    def reset(self) -> None:
        """Become as newly created: the source model, an empty memory, the first seed."""
        self.step = 0
        self.last = None
        self.memory = None
        self.optimizer = None
        self.generator = torch.Generator().manual_seed(self.seed)
        self.device, self.dtype = check_floats(self.model)
        self.wide = self.dtype  # of probabilities and losses
        self._format: torch.memory_format | None = None
        self._image_shape = None
        self.build()
        self._own = own_names(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything that the next call depends on to ``path`` (safetensors), at once or not at all."""
        from grotta.methods.checkpoint import save

        save(self, path)

    def network(self, norm: NormFactory | None = None) -> Network:
        """A network with the model's weights, shared by reference, and with its norm layers replaced by ``norm``."""
        body = shared_copy(self.model, warn=not self._warned_of_hooks)
        self._warned_of_hooks = True
        if norm is not None:
            body = replace_norms(body, norm)
            if not norm_layers(body):
                raise ValueError(
                    f"the model has no batch normalisation layer, which is what the method {self.name!r} adapts; "
                    "'source' and 'lame' do without"
                )
        parts = (body, self.feature_layer, self.mean, self.std)
        return Network(*parts) if self._compiler is None else CompiledNetwork(*parts, compiler=self._compiler)

    # State -----------------------------------------------------------------------------------------------------

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:  # type: ignore[override]
        """Copies of all that the next call depends on, as one flat dict of tensors.

        Weights that are shared with the model are not in it.
        """
        state: dict[str, Tensor] = {} if destination is None else destination
        state.update({prefix + key: tensor for key, tensor in gather_state(self).items()})
        return state

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False) -> None:
        """Go on from ``state_dict``; one that does not fit raises an error and changes nothing."""
        restore_state(self, state_dict)
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
                with torch.enable_grad() if record else torch.inference_mode():
                    prediction = self.infer(inputs)
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

    def _finish(self, prediction: Prediction) -> tuple[Tensor, Output]:
        probs = prediction.logits.detach().to(self.wide).softmax(1)
        return probs, self.adapt_output(probs, prediction.features.to(self.wide))

    def strong_view(self, inputs: Tensor) -> Tensor:
        """A strong view of ``inputs``, of the network's type."""
        return strong_view(inputs, self.generator).to(self.dtype)

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
