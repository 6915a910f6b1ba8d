"""Output adaptation by the order of the stream: labels that are close in time are alike."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from grotta import functional as GF
from grotta._check import check_in_unit_interval, check_positive, check_whole
from grotta.functional import stream_prior as time
from grotta.outputs.base import Domain, Output, OutputAdaptation
from grotta.outputs.domain_bias import mix_after, no_bias, read_bias, surely_false
from grotta.outputs.registry import register

SAMPLES = 64  # rates, forgetting and penalties are per this many samples, whatever the size of a batch
BUCKETS = 256  # classes share rows of the confusion beyond this many, which bounds its size
USUAL = 512  # samples that the usual mix of answers is a mean of
# In nats per SAMPLES samples, times the logarithm of the number of classes.
SHIFT_COSTS = 2.0  # what a time scale must gain, against a mix that does not change
READING_COSTS = 1.0  # what a reader must gain, against answers that go out as they came
MOST_SHIFT = 20.0  # evidence for or against all of these is not piled up beyond this: what is over is soon forgotten
HELD = 256  # samples of a new domain whose evidence does not count where nothing spoke for reading before
HEATS = (1.0, 2.0, 4.0, 8.0, 16.0)  # between these, the temperature is found at which a reader believes the answers
# What readers are judged by.
JUDGED = ("answer_evidence", "unread_evidence", "unsuspected", "confidence", "kept", "samples")
IDENTITY = 0.7  # of the confusion that is assumed before any is seen
IDENTITY_WEIGHS = 5.0  # samples per label
TINY = 1e-12  # share of a class in the usual mix, at least
SURPRISE = 0.02  # chance that an answer is one that the usual mix does not foresee


class Reading(NamedTuple):
    """One batch as read from one state, and the state after it."""

    probs: Tensor  # (B, C)
    shift: Tensor  # how far the label mix is believed to change in time, in [0, 1]
    temperature: Tensor  # of the readers, on average
    before: Mapping[str, Tensor]
    after: dict[str, Tensor]


class Usual(NamedTuple):
    """What is usual: what neighbours in time must predict better than."""

    base: Tensor  # (C,), the mix of answers
    after: dict[str, Tensor]


class Constants(NamedTuple):
    """What does not change from batch to batch, as tensors like the answers."""

    neighbours: time.Neighbours
    running: time.Running
    temperatures: Tensor  # (R,)
    heats: Tensor
    heat_logs: Tensor
    even: Tensor  # (C,)
    nothing: Tensor  # (1,), zero
    confusion: Tensor  # (C, C), counts that are assumed before any answer is seen


class _Numbers(dict[str, Tensor | float]):
    """The numbers of an output, and the reading behind them, so that it need not be made again to be observed."""

    reading: Reading
    domain: Domain | None


@register("stream")
class StreamPrior(OutputAdaptation):
    """Read each answer in the light of its neighbours in time, as far as the stream itself shows that this pays.

    The model: sample i has a label drawn from a mix q_i that changes in time, slowly or at once. The network's answer
    P_i speaks for label y with the likelihood P_i(y)^(1/T) / pi(y): the temperature T makes up for over-confidence and
    for mistakes that come together; pi, the running mean of the network's own answers, for its bias. q_i is the kernel
    mean of the labels around i, its own left out, so labels and mixes settle together in a few rounds.

    Nothing of this is set per stream. Time scales are weighed by how much better the neighbours predict an answer than
    the usual mix of answers does. Several readers, one per temperature, read the same answers. They are weighed by
    held-out evidence: how well the labels a reader gave to the past predict the network's next answer through the
    confusion (answers given labels) that this reader has learned by then. Predicting answers directly would prefer
    T = 1, because a network's mistakes cluster in time as labels do; through the confusion, a cluster of mistakes is
    just what some label looks like. The answers that a reader overrules must be those that the network was unsure of:
    one that overrules sure answers as readily is too hot. And all of them compete with the answers as they came, which
    the usual mix predicts. ``docs/stream-output.md`` has the derivation.

    Args:
        num_classes: of the predictions.
        temperatures: one reader for each.
        speed: of the running mean of the answers of a domain in the long run, per 64 samples; 0: no bias is learned.
        scales: time scales in samples.
        bases: how many samples the mix that does not change is worth, beside the neighbours; one kernel for each of
            these and each time scale.
        window: past samples that are remembered.
        rounds: of settling labels and mixes.
        forgetting: of evidence and confusions, per 64 samples.

    >>> stream = StreamPrior(3)
    >>> probs = torch.tensor([[0.9, 0.05, 0.05]] * 30 + [[0.05, 0.9, 0.05]] * 30).repeat(20, 1)
    >>> probs[7::10] = torch.tensor([0.3, 0.3, 0.4])
    >>> for batch in probs.split(60):
    ...     answers = stream(batch, batch).probs.argmax(1)
    >>> answers[7::10]  # those that the network would have answered with the third class
    tensor([0, 0, 0, 1, 1, 1])
    """

    knows_domains = True

    def __init__(
        self,
        num_classes: int,
        *,
        temperatures: Sequence[float] = (1.0, 2.0, 3.0, 4.0),
        speed: float = 1 / 32,
        scales: Sequence[float] = (4.0, 16.0, 64.0),
        bases: Sequence[float] = (1.0, 8.0, 64.0),
        window: int = 64,
        rounds: int = 6,
        forgetting: float = 0.95,
    ) -> None:
        super().__init__(num_classes)
        self.temperatures = tuple(check_positive("temperatures", t) for t in temperatures)
        self.speed = check_in_unit_interval("speed", speed)
        self.scales = tuple(check_positive("scales", s) for s in scales)
        self.bases = tuple(check_positive("bases", b) for b in bases)
        for name in ("temperatures", "scales", "bases"):
            if not getattr(self, name):
                raise ValueError(f"{name} must have at least one value, got {getattr(self, name)}")
        self.window = check_whole("window", window, at_least=1)
        self.rounds = check_whole("rounds", rounds, at_least=1)
        self.forgetting = check_in_unit_interval("forgetting", forgetting)
        self._constants: tuple[tuple[object, ...], Constants] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the stream."""
        readers, classes = len(self.temperatures), self.num_classes
        buckets = min(classes, BUCKETS)
        self._state = {
            **no_bias(readers, classes),
            "raw": torch.zeros(0, classes, device="cpu"),
            "labels": torch.zeros(0, readers, classes, device="cpu"),
            "scale_evidence": torch.zeros(1 + len(self.scales) * len(self.bases), device="cpu"),
            "usual": torch.full((classes,), 1 / classes, device="cpu"),
            "usual_evidence": torch.zeros((), device="cpu"),
            "seen": torch.zeros((), device="cpu"),
            "held": torch.zeros((), device="cpu"),  # samples whose evidence is yet to be left out
            "for_reading": torch.zeros((), device="cpu"),  # what speaks for the best reader and time scale, at most
            "unread_evidence": torch.zeros((), device="cpu"),
            "answer_evidence": torch.zeros(readers, device="cpu"),
            "confusion": torch.zeros(readers, buckets, buckets, device="cpu"),
            "unsuspected": torch.zeros(readers, device="cpu"),
            "confidence": torch.zeros(len(HEATS), device="cpu"),  # sums over the recent stream, by heat
            "kept": torch.zeros(readers, device="cpu"),  # how many of these answers each reader has left as they were
            "samples": torch.zeros((), device="cpu"),
        }

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of the window, the biases, the confusions and the evidence."""
        return {name: tensor.clone() for name, tensor in self._state.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from ``state``; one that does not fit raises a ``ValueError`` and changes nothing."""
        if state.keys() != self._state.keys():
            raise ValueError(f"the state of the output 'stream' must have {sorted(self._state)}, got {sorted(state)}")
        for name, own in self._state.items():
            shape = state[name].shape
            known = int(name in ("raw", "labels"))  # as many samples as the window had
            if len(shape) != own.ndim or shape[known:] != own.shape[known:]:
                raise ValueError(f"{name!r} must have shape {tuple(own.shape)}, got {tuple(shape)}")
        if len(state["raw"]) != len(state["labels"]):
            raise ValueError(
                f"'raw' and 'labels' must be of as many samples, got {len(state['raw'])} and {len(state['labels'])}"
            )
        self._state = {name: tensor.clone() for name, tensor in state.items()}

    def refine(self, probs: Tensor, features: Tensor, domain: Domain | None = None) -> Output:
        """The answers (B, classes) as the stream around them reads."""
        reading = self._read(probs, domain)
        numbers = _Numbers(shift=reading.shift, temperature=reading.temperature)
        numbers.reading, numbers.domain = reading, domain
        return Output(reading.probs, GF.imbalance_score(probs), None, numbers)

    def observe(self, probs: Tensor, features: Tensor, output: Output, domain: Domain | None = None) -> None:
        """Move the window, the biases and the evidence on by this batch; ``domain``: where it comes from, as of now."""
        reading = getattr(output.numbers, "reading", None)
        if reading is None or reading.before is not self._state:  # other batches were observed since
            reading = self._read(probs, getattr(output.numbers, "domain", None) if domain is None else domain)
        self._state = reading.after

    def _read(self, probs: Tensor, domain: Domain | None) -> Reading:
        with torch.autocast(probs.device.type, enabled=False):  # sums of evidence are not for half precision
            return self._read_exactly(probs, domain)

    def _read_exactly(self, probs: Tensor, domain: Domain | None) -> Reading:
        before = self._state
        state = _all_like(before, probs)
        share = len(probs) / SAMPLES
        keep = self.forgetting**share
        fixed = self._fixed(len(state["raw"]), probs)
        neighbours, temperature = fixed.neighbours, fixed.temperatures
        answers = probs.argmax(1)
        held = self._held(state, domain)
        usual = self._usual(state, probs, answers, fixed, keep, held)

        below = time.below_best(probs)
        heated = time.heated(below, temperature)  # (B, R, C)
        favoured, biases = read_bias(state, heated, domain, SAMPLES / self.speed if self.speed else 0)
        base = time.normalised(favoured)
        likelihood = heated / favoured
        raw = torch.cat([state["raw"], probs])
        gain = time.scale_evidence(probs / usual.base, neighbours.around, raw, usual.base)
        gain = gain - SHIFT_COSTS * math.log(self.num_classes) * share
        scales = _bounded(_faded(state["scale_evidence"][1:], keep, gain), MOST_SHIFT)
        waits = held > 0
        may_wait = not surely_false(waits)
        if may_wait:
            scales = torch.where(waits, state["scale_evidence"][1:], scales)
        evidence = torch.cat((fixed.nothing, scales))  # that of the mix that does not change is zero
        trust = evidence.softmax(0)
        around, past = time.trusted(neighbours.both, trust)
        labels = time.settle_labels(likelihood, around, state["labels"], base, self.rounds)
        remembered = torch.cat([state["labels"], labels])
        expected = time.local_mix(past, remembered, state["usual"].expand_as(base))

        after = {
            **state,
            **usual.after,
            **self._predicted(state, probs, answers, expected, fixed, keep),
            **self._overruled(state, below, answers, labels, fixed, keep),
            **biases,
            "raw": raw[-self.window :],
            "labels": remembered[-self.window :],
            "scale_evidence": evidence,
        }
        if may_wait:
            after.update({name: torch.where(waits, state[name], after[name]) for name in JUDGED})
            after["held"] = (held - len(probs)).clamp_min(0)
        read = self._read_evidence(after)
        bounded = _bounded(read, MOST_SHIFT)
        after["answer_evidence"] = after["answer_evidence"] + (bounded - read)
        after["for_reading"] = torch.minimum(bounded.max(), scales.max())
        weight = self._weigh(bounded, fixed.nothing)
        readers, read = weight[1:], weight[1:].sum()
        mixed = torch.addcmul((labels * readers[:, None]).sum(1), weight[0], probs)
        shift = read * trust[1:].sum()
        after.update(mix_after(state, mixed))
        return Reading(mixed, shift, readers @ temperature / read.clamp_min(1e-12), before, after)

    def _held(self, state: Mapping[str, Tensor], domain: Domain | None) -> Tensor:
        """Of how many samples, from the first of this batch on, the evidence is left out; 0-dim.

        Whether labels cluster is a fact about the stream. A network that is lost in a new domain and always answers the
        same looks like labels that cluster, until the usual mix of answers is known there.
        """
        if domain is None or surely_false(domain.begins):
            return state["held"]
        return torch.where(domain.begins, HELD * (state["for_reading"] < 0), state["held"])

    def _usual(
        self,
        state: Mapping[str, Tensor],
        probs: Tensor,
        answers: Tensor,
        fixed: Constants,
        keep: float,
        held: Tensor,
    ) -> Usual:
        """The usual mix of answers, as far as it predicts them better than an even one; the first ones count more."""
        size, classes = len(probs), self.num_classes
        seen = state["seen"] + size if surely_false(held) else torch.where(held == HELD, 0, state["seen"]) + size
        mean = torch.lerp(
            state["usual"], probs.mean(0), (size / (seen + SAMPLES)).clamp_min(1 - math.exp(-size / USUAL))
        )
        gained = (state["usual"].clamp_min(1e-6) * classes).log().index_select(0, answers).sum()
        pays = _faded(state["usual_evidence"], keep, gained).clamp(-MOST_SHIFT, MOST_SHIFT)
        far = pays.sigmoid()
        base = time.normalised(torch.lerp(fixed.even, mean, far).clamp_min(TINY))
        mixes = time.running_mix(torch.lerp(base, state["usual"], far), probs, fixed.running)
        # In rows of the confusion, as readers explain them: which of its classes it was is asked of neither.
        if classes > BUCKETS:
            mixes, answers = _bucketed(mixes[:, None])[:, 0], _bucket(answers, classes)
        foreseen = ((1 - SURPRISE) * mixes.gather(1, answers[:, None]) + SURPRISE / mixes.shape[1]).log().sum()
        unread = _faded(state["unread_evidence"], keep, foreseen)
        return Usual(base, {"usual": mean, "usual_evidence": pays, "seen": seen, "unread_evidence": unread})

    def _predicted(
        self,
        state: Mapping[str, Tensor],
        probs: Tensor,
        answers: Tensor,
        expected: Tensor,
        fixed: Constants,
        keep: float,
    ) -> dict[str, Tensor]:
        """How well the mixes that readers expected (B, R, C) predict the answers, and their confusions after these."""
        expected, answers = _bucketed(expected), _bucket(answers, self.num_classes)
        counts = state["confusion"]
        explained = time.answer_evidence(expected, answers, time.normalised(fixed.confusion + counts))
        even = 1 / self.num_classes
        sure = (probs.amax(1) - even) / (1 - even)  # an answer that says nothing teaches nothing
        answered = torch.zeros_like(expected[:, 0]).scatter_(1, answers[:, None], sure[:, None])
        counts = torch.addmm(counts.flatten(0, 1), expected.flatten(1).T, answered, beta=keep).view_as(counts)
        return {"answer_evidence": _faded(state["answer_evidence"], keep, explained), "confusion": counts}

    def _overruled(
        self,
        state: Mapping[str, Tensor],
        below: Tensor,
        answers: Tensor,
        labels: Tensor,
        fixed: Constants,
        keep: float,
    ) -> dict[str, Tensor]:
        """Whether the answers that readers overrule are those that the network was unsure of.

        It is asked at the heat at which the answers are as sure, on average, as a reader finds them right.
        """
        kept = labels.gather(2, answers[:, None, None].expand(-1, labels.shape[1], 1))[:, :, 0]  # (B, R)
        confidence = _faded(state["confidence"], keep, time.heated_confidence(below, fixed.heats).sum(1))
        all_kept = _faded(state["kept"], keep, kept.sum(0))
        samples = keep * state["samples"] + len(labels)
        heat = time.matching_heat(all_kept, fixed.heat_logs, confidence)
        suspected = time.unsuspected(time.heated_confidence(below, heat).T, kept)
        return {
            "unsuspected": _faded(state["unsuspected"], keep, suspected),
            "confidence": confidence,
            "kept": all_kept,
            "samples": samples,
        }

    def _read_evidence(self, state: Mapping[str, Tensor]) -> Tensor:
        """What speaks for each reader, against answers that go out as they came; (R,), in nats."""
        costs = state["samples"] * (READING_COSTS * math.log(self.num_classes) / SAMPLES)
        return state["answer_evidence"] - state["unsuspected"].clamp_min(0) - costs - state["unread_evidence"]

    def _weigh(self, read: Tensor, nothing: Tensor) -> Tensor:
        """How far the answers as they came, and each reader, are believed, given what speaks for readers; (1 + R,)."""
        return torch.cat((nothing, read)).softmax(0)

    def _fixed(self, past: int, like: Tensor) -> Constants:
        """The constants for a batch after ``past`` remembered samples; a stream asks for the same over and over."""
        key = (past, len(like), like.device, like.dtype)
        kept = self._constants  # looked at once: several threads may ask
        if kept is None or kept[0] != key:
            tensor = partial(torch.tensor, device=like.device, dtype=like.dtype)
            heats = tensor(HEATS)
            constants = Constants(
                neighbours=time.time_neighbours(past, len(like), tensor(self.scales), tensor(self.bases)),
                running=time.running_weights(len(like), USUAL, like),
                temperatures=tensor(self.temperatures),
                heats=heats,
                heat_logs=heats.log(),
                even=tensor(1 / self.num_classes).expand(self.num_classes),
                nothing=tensor([0.0]),
                confusion=_first_confusion(min(self.num_classes, BUCKETS), like),
            )
            self._constants = kept = key, constants
        return kept[1]


def _bounded(evidence: Tensor, most: float) -> Tensor:
    """Evidence moved as a whole, so that the largest is within ``most`` of zero."""
    best = evidence.max()
    return evidence + (best.clamp(-most, most) - best)


def _faded(before: Tensor, keep: float, new: Tensor) -> Tensor:
    """What is kept of a sum, and what is new."""
    return torch.add(new, before, alpha=keep)


def _all_like(state: Mapping[str, Tensor], like: Tensor) -> Mapping[str, Tensor]:
    """The state on the device and of the type of ``like``, as it usually is already, all of it or nothing."""
    if (state["bias"].device, state["bias"].dtype) == (like.device, like.dtype):
        return state
    return {name: tensor.to(like) for name, tensor in state.items()}


def _bucketed(mix: Tensor) -> Tensor:
    """(B, R, C) with classes that share a bucket added up."""
    classes = mix.shape[2]
    if classes <= BUCKETS:
        return mix
    bucket = torch.arange(classes, device=mix.device) % BUCKETS
    return torch.zeros(*mix.shape[:2], BUCKETS, device=mix.device, dtype=mix.dtype).index_add_(2, bucket, mix)


def _bucket(answers: Tensor, classes: int) -> Tensor:
    """The buckets of answers out of so many classes."""
    return answers if classes <= BUCKETS else answers % BUCKETS


def _first_confusion(classes: int, like: Tensor) -> Tensor:
    """Counts of answers given labels, near the identity: what a confusion is for as long as few answers are known."""
    other = IDENTITY_WEIGHS * (1 - IDENTITY) / (classes - 1)
    return like.new_full((classes, classes), other).fill_diagonal_(IDENTITY_WEIGHS * IDENTITY)
