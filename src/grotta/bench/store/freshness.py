"""Is a finished cell still current? It is if the method's code, the weights and the data are what it was made with."""

import functools
from dataclasses import replace
from pathlib import Path

from grotta.bench.inputs.network import find_weights, load_network, short_fingerprint
from grotta.bench.inputs.opened import load_dataset, make_stream, read_labels, with_classes
from grotta.bench.spec import CellSpec
from grotta.bench.store.method_code import cell_digest
from grotta.bench.store.results import CellResult
from grotta.data import DamagedDataError


class Freshness:
    """Compares results with the current code, weights and data, each of which is read once."""

    def __init__(self, data_root: Path | None) -> None:
        self.data_root = data_root
        self._weights = functools.cache(self._read_weights)
        self._data = functools.cache(self._read_data)

    def change(self, result: CellResult) -> str:
        """What has changed since a cell ran, or ``""``; what is missing now counts as unchanged.

        No image is made for this: the digest of regenerated images is that of what they are made from.
        """
        spec = result.spec
        if result.method_fingerprint and cell_digest(spec) != result.method_fingerprint:
            return f"the code of method {spec.method} has changed"
        try:
            if self._weights(result.model, result.classes) != result.model_fingerprint:
                return f"the weights of {result.model} have changed"
        except Exception as error:  # a result outlives the file that it was made with, but not damage to it
            if self._is_here(result.model):
                return f"the weights of {result.model} cannot be read any more ({error})"
        # the method does not decide the stream
        drawn = replace(spec, method="", preset="", options=(), model="", seed=0, batch_size=1, label="stream")
        try:
            provenance, stream_hash, fingerprint = self._data(drawn, result.classes)
        except DamagedDataError as error:
            return f"the images of {spec.dataset} cannot be read any more ({error})"
        except Exception:
            return ""
        if provenance != result.provenance:
            return f"the images of {spec.dataset} were {result.provenance} and are now {provenance}"
        if stream_hash != result.stream_hash:
            return f"the labels of {spec.dataset} or their order have changed"
        if result.data_fingerprint and fingerprint != result.data_fingerprint:
            return f"the images of {spec.dataset} have changed"
        return ""

    def _is_here(self, model: str) -> bool:
        try:
            return Path(find_weights(model, self.data_root)[1]).is_file()
        except (OSError, ValueError):  # not even the data root is
            return False

    def _read_weights(self, model: str, classes: int) -> str:
        return short_fingerprint(load_network(model, classes, self.data_root))

    def _read_data(self, spec: CellSpec, classes: int) -> tuple[str, str, str]:
        dataset = with_classes(load_dataset(spec, self.data_root, download=False), classes)
        stream = make_stream(spec, read_labels(dataset), dataset.num_classes)
        return dataset.provenance, stream.hash, dataset.fingerprint()
