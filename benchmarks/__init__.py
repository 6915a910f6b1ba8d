"""Speed and memory of grotta, as ratios: ``python -m benchmarks --help``."""
