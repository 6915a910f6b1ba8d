"""Finished cells with made-up numbers."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grotta.bench.records import BATCH_COLUMNS, to_bytes
from grotta.bench.results import RECORDS, CellResult, encode_result
from grotta.bench.spec import CellSpec

MakeResult = Callable[..., CellResult]
BATCHES_A_DOMAIN, BATCH = 6, 10


def made_up(method: str, gamma: float, errors: Mapping[str, float], **fields: Any) -> CellResult:
    """A result with these errors by domain; ``fields`` are of the spec or of the result."""
    own = {key: fields.pop(key) for key in ("model", "stream_hash", "provenance", "warnings") if key in fields}
    of_spec = {"dataset": "cifar10-c", **fields}
    spec = CellSpec(method=method, gamma=gamma, domains=tuple(errors), **of_spec)
    stream = f"{spec.dataset}{spec.domains}{gamma}{spec.stream_seed}"
    given = {
        "model": "cifar10_resnet",
        "stream_hash": hashlib.sha256(stream.encode()).hexdigest(),
        "provenance": "regenerated",
        "versions": {"grotta": "0.1", "torch": "2.6"},
        **own,
    }
    return CellResult(
        spec=spec,
        model_fingerprint="ab" * 32,
        error=sum(errors.values()) / len(errors),
        domain_errors=dict(errors),
        images=BATCHES_A_DOMAIN * BATCH * len(errors),
        classes=5,
        seconds=12.5,
        images_per_second=80.0,
        peak_memory_mb=300.0,
        **given,
    )


@pytest.fixture
def make_result() -> MakeResult:
    return made_up


def made_up_records(result: CellResult) -> dict[str, Any]:
    """Records whose errors a domain are as near as whole images come to those of the result."""
    generator = np.random.default_rng(int(result.spec.id[:8], 16))
    domains = len(result.spec.domains)
    batches, images = domains * BATCHES_A_DOMAIN, domains * BATCHES_A_DOMAIN * BATCH
    columns: dict[str, Any] = {name: np.zeros(batches, kind) for name, kind in BATCH_COLUMNS.items()}
    columns["batch"][:] = np.arange(batches)
    columns["domain"][:] = np.repeat(np.arange(domains), BATCHES_A_DOMAIN)
    columns["period"][:] = np.arange(batches) // 2
    columns["size"][:] = BATCH
    rates = np.array(list(result.domain_errors.values())) / 100
    columns["errors"][:] = generator.binomial(BATCH, rates[columns["domain"]])
    columns["zeta"][:] = generator.uniform(0.2, 0.9, batches)
    columns["lam"][:] = np.nan
    columns["bank_size"][:] = np.minimum(50, BATCH * (1 + np.arange(batches)))
    labels = generator.integers(result.classes, size=images).astype(np.uint16)
    wrong = np.concatenate([np.arange(BATCH) < n for n in columns["errors"]])
    return {**columns, "labels": labels, "predictions": np.where(wrong, (labels + 1) % result.classes, labels)}


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[[list[CellResult]], Path]:
    """Write results as finished cells to a run's directory, as the benchmark leaves them."""

    def write(results: list[CellResult]) -> Path:
        out = tmp_path / "runs"
        for result in results:
            directory = out / "cells" / result.spec.id
            directory.mkdir(parents=True)
            records = to_bytes(made_up_records(result))
            (directory / RECORDS).write_bytes(records)
            (directory / "result.json").write_bytes(encode_result(result, records))
        return out

    return write
