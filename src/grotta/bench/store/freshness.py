"""Whether a finished cell still stands: the weights and the data that it would run on today are those it ran on."""

import functools
from dataclasses import replace
from pathlib import Path

from grotta import data
from grotta.bench.cell.inputs import load_model, make_stream, short_fingerprint
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult


class Present:
    """The weights and the data as they are now, each looked at once."""

    def __init__(self, data_root: Path | None) -> None:
        self.data_root = data_root
        self._fingerprint = functools.cache(self._read_fingerprint)
        self._data = functools.cache(self._read_data)

    def change(self, result: CellResult) -> str:
        """What has changed since a cell ran, or ``""``; what is not there any more, or unreadable, has not changed.

        No image is made for it: a digest of regenerated ones is that of all they are made of.
        """
        try:
            if self._fingerprint(result.model, result.classes) != result.model_fingerprint:
                return f"the weights of {result.model} have changed"
        except Exception:  # a result outlives the file that it was made with
            pass
        # the method does not decide the stream
        spec = replace(result.spec, method="", preset="", options=(), model="", seed=0, batch_size=1, label="stream")
        try:
            provenance, stream_hash, fingerprint = self._data(spec)
        except Exception:
            return ""
        if provenance != result.provenance:
            return f"the images of {spec.dataset} are now {provenance}, then they were {result.provenance}"
        if stream_hash != result.stream_hash:
            return f"the labels of {spec.dataset} or their order have changed"
        if result.data_fingerprint and fingerprint != result.data_fingerprint:
            return f"the images of {spec.dataset} have changed"
        return ""

    def _read_fingerprint(self, model: str, classes: int) -> str:
        return short_fingerprint(load_model(model, classes, self.data_root))

    def _read_data(self, spec: CellSpec) -> tuple[str, str, str]:
        dataset = data.load(
            spec.dataset, root=self.data_root, domains=spec.domains, image_size=spec.image_size, download=False
        )
        labels = tuple(dataset.labels(domain) for domain in dataset.domains)
        return dataset.provenance, make_stream(spec, labels, dataset.num_classes).hash, dataset.fingerprint()
