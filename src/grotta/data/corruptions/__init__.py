"""Common corruptions on whole batches and from a seed: the fifteen of CIFAR-C and ImageNet-C, and registered ones."""

# Imported for what they register.
from grotta.data.corruptions import blur, digital, elastic, noise, weather  # noqa: F401
from grotta.data.corruptions.apply import corrupt
from grotta.data.corruptions.registry import (
    BENCHMARK_DOMAINS,
    SCALES,
    SEVERITIES,
    Scale,
    corruption,
    find_corruption,
    list_corruptions,
)

CORRUPTIONS = BENCHMARK_DOMAINS

__all__ = [
    "BENCHMARK_DOMAINS",
    "CORRUPTIONS",
    "SCALES",
    "SEVERITIES",
    "Scale",
    "corrupt",
    "corruption",
    "find_corruption",
    "list_corruptions",
]
