"""Prometheus metrics: names with the prefix ``grotta_``, and only labels with few values (never a stream's name)."""

import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Everything that is counted, on a registry of its own.

    >>> metrics = Metrics()
    >>> metrics.images.labels("m").inc(64)
    >>> [line for line in metrics.text().decode().splitlines() if line.startswith("grotta_images_total{")]
    ['grotta_images_total{model="m"} 64.0']
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def count(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"grotta_{name}", text, labels, registry=self.registry)

        def time(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(f"grotta_{name}_seconds", text, labels, registry=self.registry, buckets=_SECONDS)

        self.requests = count("requests", "Requests, by route and status.", "route", "status")
        self.images = count("images", "Images answered.", "model")
        self.answer = time("answer", "From the whole request to the whole answer.", "model")
        self.adaptation = time("adaptation", "One step of a learner.", "model")
        self.adapted = count("adapted", "Batches learned from.", "model")
        self.skipped = count("adaptation_skipped", "Batches answered but not learned from: full queue.", "model")
        self.dropped = count("adaptation_dropped", "Waiting batches dropped by a reset, import or delete.", "model")
        self.failed = count("adaptation_failed", "Steps of a learner that raised an error.", "model")
        self.started = count("streams_started", "Streams that began anew.", "model")
        self.restored = count("streams_restored", "Streams that came back from disk.", "model")
        self.evicted = count("streams_evicted", "Streams that went to disk.", "model")
        self.saved = count("checkpoints", "Checkpoints written.", "model")
        self.saving = time("checkpoint", "Writing one checkpoint.", "model")
        self.unsaved = count("checkpoints_failed", "Checkpoints that could not be written.", "model")
        self.guard = count("guard_events", "What the guard did.", "model", "event")
        self.refused = count("refused", "Requests refused because too many were waiting.")
        self.handovers = count("streams_handed_over", "Streams given to another server.", "model")

    def watch(self, read: Callable[[], Mapping[str, Mapping[tuple[str, ...], float]]]) -> None:
        """Ask ``read`` for the present value of gauges: ``{"name|help|labels": {label values: value}}``."""
        self.registry.register(_Gauges(read))

    def text(self) -> bytes:
        """All metrics in the text format."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    def __init__(self, read: Callable[[], Mapping[str, Mapping[tuple[str, ...], float]]]) -> None:
        self._read = read

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        for description, values in self._read().items():
            name, text, *labels = description.split("|")
            gauge = GaugeMetricFamily(f"grotta_{name}", text, labels=labels)
            for key, value in values.items():
                gauge.add_metric(key, value)
            yield gauge


def resident_bytes() -> int:
    """Memory of this process."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
