"""Output adaptation by the order of the stream: labels that are close in time are alike."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from grotta import functional as GF
from grotta._check import check_flag, check_in_unit_interval, check_positive, check_whole
from grotta.functional import stream_prior as time
from grotta.outputs.base import Output, OutputAdaptation
from grotta.outputs.registry import register

SAMPLES = 64  # rates, forgetting and penalties are per this many samples, whatever the size of a batch
BUCKETS = 256  # classes share rows of the confusion beyond this many, which bounds its size
# In nats per SAMPLES samples: what a hypothesis must gain to be preferred to a plainer one.
SHIFT_COSTS = 3.5  # any time scale, against a mix that does not change; times the logarithm of the number of classes
MOST_SHIFT = 20.0  # evidence for a time scale is not piled up beyond this: what is over is soon forgotten
MOST_DOUBT = 20.0  # the same of evidence for and against the running mean of the answers
MOST_BIAS = 2.0  # a class is taken to be answered at most this many times too often or too seldom
HEAT_COSTS = 0.5  # one degree of temperature
HEAT_GAINS = 0.03  # ... paid back by this part of all that time explains: there, mistakes come together too
IDENTITY = 0.7  # of the confusion that is assumed before any is seen
IDENTITY_WEIGHS = 5.0  # samples per label


class Reading(NamedTuple):
    """One batch as read from one state, and the state after it."""

    probs: Tensor  # (B, C)
    shift: Tensor  # how far the label mix is believed to change in time, in [0, 1]
    temperature: Tensor  # of the readers, on average
    before: Mapping[str, Tensor]
    after: dict[str, Tensor]


class _Numbers(dict[str, Tensor | float]):
    """The numbers of an output, and the reading behind them, so that it need not be made again to be observed."""

    reading: Reading


@register("stream")
class StreamPrior(OutputAdaptation):
    """Read each answer in the light of its neighbours in time, as far as the stream itself shows that this pays.

    The model: sample i has a label drawn from a mix q_i that changes in time, slowly or at once. The network's answer
    P_i speaks for label y with the likelihood P_i(y)^(1/T) / pi(y): the temperature T makes up for over-confidence and
    for mistakes that come together; pi, the running mean of the network's own answers, for its bias. q_i is the kernel
    mean of the labels around i, its own left out, so labels and mixes settle together in a few rounds.

    Nothing of this is set per stream. Several readers, one per temperature and speed of pi, read the same answers. In a
    reader, time scales, and a mix that does not change, are weighed by how well the neighbours predict an answer. The
    readers are weighed by held-out evidence: how well the labels a reader gave to the past predict the network's next
    answer through the confusion (answers given labels) that this reader has learned by then. Predicting answers
    directly would prefer T = 1, because a network's mistakes cluster in time as labels do; through the confusion, a
    cluster of mistakes is just what some label looks like. ``docs/stream-output.md`` has the derivation.

    Args:
        num_classes: of the predictions.
        temperatures: one reader for each.
        speeds: of the running mean, per 64 samples; each is paired with every temperature.
        scales: time scales in samples.
        window: past samples that are remembered.
        rounds: of settling labels and mixes.
        forgetting: of evidence and confusions, per 64 samples.
        doubting: take pi for an even mix while that would have predicted the answers better. After a long stretch of
            one class, pi is wrong for as long, and neighbours in time seem to explain what is only its mistake.

    >>> stream = StreamPrior(3)
    >>> probs = torch.tensor([[0.9, 0.05, 0.05]] * 30 + [[0.05, 0.9, 0.05]] * 30).repeat(20, 1)
    >>> probs[7::10] = torch.tensor([0.3, 0.3, 0.4])
    >>> for batch in probs.split(60):
    ...     answers = stream(batch, batch).probs.argmax(1)
    >>> answers[7::10]  # those that the network would have answered with the third class
    tensor([0, 0, 0, 1, 1, 1])
    """

    def __init__(
        self,
        num_classes: int,
        *,
        temperatures: Sequence[float] = (1.0, 2.0, 3.0, 4.0),
        speeds: Sequence[float] = (1 / 32,),
        scales: Sequence[float] = (4.0, 16.0, 64.0),
        window: int = 64,
        rounds: int = 6,
        forgetting: float = 0.95,
        doubting: bool = False,
    ) -> None:
        super().__init__(num_classes)
        self.temperatures = tuple(check_positive("temperatures", t) for t in temperatures)
        self.speeds = tuple(check_in_unit_interval("speeds", s) for s in speeds)
        self.scales = tuple(check_positive("scales", s) for s in scales)
        for name in ("temperatures", "speeds", "scales"):
            if not getattr(self, name):
                raise ValueError(f"{name} must have at least one value, got {getattr(self, name)}")
        self.window = check_whole("window", window, at_least=1)
        self.rounds = check_whole("rounds", rounds, at_least=1)
        self.forgetting = check_in_unit_interval("forgetting", forgetting)
        self.doubting = check_flag("doubting", doubting)
        self._constants: dict[str, Tensor] = {}
        self._kernels: tuple[tuple[object, ...], time.Neighbours] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the stream."""
        readers, classes = len(self.temperatures) * len(self.speeds), self.num_classes
        buckets = min(classes, BUCKETS)
        self._state = {
            "bias": torch.full((readers, classes), 1 / classes, device="cpu"),
            "raw": torch.zeros(0, readers, classes, device="cpu"),
            "labels": torch.zeros(0, readers, classes, device="cpu"),
            "scale_evidence": torch.zeros(readers, 1 + len(self.scales), device="cpu"),
            "answer_evidence": torch.zeros(readers, device="cpu"),
            "plain_evidence": torch.zeros((), device="cpu"),
            "confusion": torch.zeros(readers, buckets, buckets, device="cpu"),
            "answers": torch.ones(buckets, device="cpu"),
        }
        if self.doubting:
            self._state["bias_evidence"] = torch.zeros(readers, device="cpu")

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of the window, the biases, the confusions and the evidence."""
        return {name: tensor.clone() for name, tensor in self._state.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from ``state``; one that does not fit raises a ``ValueError`` and changes nothing."""
        if state.keys() != self._state.keys():
            raise ValueError(f"the state of the output 'stream' must have {sorted(self._state)}, got {sorted(state)}")
        for name, own in self._state.items():
            shape = state[name].shape
            known = 1 if name in ("raw", "labels") else 0  # as many samples as the window had
            if len(shape) != own.ndim or shape[known:] != own.shape[known:]:
                raise ValueError(f"{name!r} must have shape {tuple(own.shape)}, got {tuple(shape)}")
        self._state = {name: tensor.clone() for name, tensor in state.items()}

    def refine(self, probs: Tensor, features: Tensor) -> Output:
        """The answers (B, classes) as the stream around them reads."""
        reading = self._read(probs)
        numbers = _Numbers(shift=reading.shift, temperature=reading.temperature)
        numbers.reading = reading
        return Output(reading.probs, GF.imbalance_score(probs), None, numbers)

    def observe(self, probs: Tensor, features: Tensor, output: Output) -> None:
        """Move the window, the biases and the evidence on by this batch."""
        reading = getattr(output.numbers, "reading", None)
        if reading is None or reading.before is not self._state:  # other batches were observed since
            reading = self._read(probs)
        self._state = reading.after

    def _read(self, probs: Tensor) -> Reading:
        with torch.autocast(probs.device.type, enabled=False):  # sums of evidence are not for half precision
            return self._read_exactly(probs)

    def _read_exactly(self, probs: Tensor) -> Reading:
        before = self._state
        state = {name: tensor.to(probs) for name, tensor in before.items()}
        share = len(probs) / SAMPLES
        keep = self.forgetting**share
        temperature, speed = self._readers(probs)
        neighbours = self._neighbours(len(state["raw"]), probs)

        heated = (probs.clamp_min(1e-12).log()[:, None] / temperature[:, None]).softmax(2)  # (B, R, C)
        answered = torch.lerp(state["bias"], heated.mean(0), (1 - (1 - speed) ** share)[:, None])
        uniform = torch.full_like(answered, 1 / self.num_classes)
        bias = time.normalised(answered.clamp(uniform / MOST_BIAS, uniform * MOST_BIAS))
        if self.doubting:
            pays = self._bias_evidence(state, probs.argmax(1), keep)
            bias = torch.lerp(uniform, bias, pays.sigmoid()[:, None])
        likelihood = heated / bias
        raw = torch.cat([state["raw"], time.normalised(likelihood)])
        gain = (
            time.scale_evidence(likelihood, neighbours.around, raw, bias)
            - SHIFT_COSTS * math.log(self.num_classes) * share
        )
        evidence = keep * state["scale_evidence"]
        evidence[:, 1:] += gain
        evidence[:, 1:] -= (evidence[:, 1:].amax(1, keepdim=True) - MOST_SHIFT).clamp_min(0)
        trust = evidence.softmax(1)
        labels = time.settle_labels(likelihood, neighbours.around, trust, state["labels"], bias, self.rounds)
        remembered = torch.cat([state["labels"], labels])

        expected = _bucketed(time.local_mix(neighbours.before, trust, remembered, uniform))
        answers = probs.argmax(1) % BUCKETS
        explained = time.answer_evidence(expected, answers, _confusion(state["confusion"]))
        plain = (state["answers"] / state["answers"].sum())[answers].log().sum()
        counts = torch.zeros_like(state["confusion"]).index_add_(2, answers, expected.permute(1, 2, 0))
        after = {
            "bias": answered,
            "raw": raw[-self.window :],
            "labels": remembered[-self.window :],
            "scale_evidence": evidence,
            "answer_evidence": keep * state["answer_evidence"] + explained,
            "plain_evidence": keep * state["plain_evidence"] + plain,
            "confusion": keep * state["confusion"] + counts,
            "answers": torch.ones_like(state["answers"]).index_add_(0, answers, torch.ones_like(probs[:, 0]))
            + keep * (state["answers"] - 1),
        }
        if self.doubting:
            after["bias_evidence"] = pays
        weight = self._weigh(after, temperature)
        mixed = torch.einsum("r,brc->bc", weight, labels)
        shift = weight @ (1 - trust[:, 0])
        return Reading(mixed, shift, weight @ temperature, before, after)

    def _bias_evidence(self, state: Mapping[str, Tensor], answers: Tensor, keep: float) -> Tensor:
        """How much better the bias so far has predicted the network's answers than an even mix, in nats; (R,)."""
        gained = (state["bias"].clamp_min(1e-6) * self.num_classes).log()[:, answers].sum(1)
        return (keep * state["bias_evidence"] + gained).clamp(-MOST_DOUBT, MOST_DOUBT)

    def _weigh(self, state: Mapping[str, Tensor], temperature: Tensor) -> Tensor:
        """How far each reader is believed, by its evidence less what it costs to be bold; (R,), sums to 1."""
        evidence = state["answer_evidence"]
        samples = (state["answers"].sum() - len(state["answers"])) / SAMPLES
        gained = (evidence.max() - state["plain_evidence"]).clamp_min(0)
        costs = samples * HEAT_COSTS * temperature
        return (evidence - costs + HEAT_GAINS * gained * temperature).softmax(0)

    def _readers(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Temperature and speed (R,) of each reader."""
        pairs = [(t, s) for t in self.temperatures for s in self.speeds]
        pairs_tensor = self._constant("readers", pairs, like)
        return pairs_tensor[:, 0], pairs_tensor[:, 1]

    def _neighbours(self, past: int, like: Tensor) -> time.Neighbours:
        """The kernels for a batch after ``past`` remembered samples; a stream asks for the same ones over and over."""
        key = (past, len(like), like.device, like.dtype)
        if self._kernels is None or self._kernels[0] != key:
            scales = self._constant("scales", self.scales, like)
            self._kernels = key, time.time_neighbours(past, len(like), scales)
        return self._kernels[1]

    def _constant(self, name: str, values: Sequence[object], like: Tensor) -> Tensor:
        """The values as a tensor, copied to a device once."""
        known = self._constants.get(name)
        if known is None or known.device != like.device or known.dtype != like.dtype:
            known = self._constants[name] = torch.tensor(values, device=like.device, dtype=like.dtype)
        return known


def _bucketed(mix: Tensor) -> Tensor:
    """(B, R, C) with classes that share a bucket added up."""
    classes = mix.shape[2]
    if classes <= BUCKETS:
        return mix
    bucket = torch.arange(classes, device=mix.device) % BUCKETS
    return torch.zeros(*mix.shape[:2], BUCKETS, device=mix.device, dtype=mix.dtype).index_add_(2, bucket, mix)


def _confusion(counts: Tensor) -> Tensor:
    """Answers given labels (R, C, C): the counts, and a confusion near the identity for as long as there are few."""
    classes = counts.shape[1]
    near = torch.full_like(counts[0], (1 - IDENTITY) / (classes - 1)).fill_diagonal_(IDENTITY)
    return time.normalised(IDENTITY_WEIGHS * near + counts)
