"""An answer of the Open Inference Protocol v2, as JSON with raw tensors behind it where the client wants them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pydantic_core

from grotta.serve.protocol.request import CLASSES, OutputWish
from grotta.serve.protocol.tensors import Array, to_raw, type_name

HEADER_LENGTH = "Inference-Header-Content-Length"


def encode_infer(
    head: Mapping[str, Any], probs: Array, wishes: Sequence[OutputWish], labels: Sequence[str]
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of the answer ``probs`` (B, classes), with the entries of ``head`` before the outputs.

    >>> body, headers = encode_infer({"model_name": "m"}, np.array([[0.25, 0.75]], "f4"), [OutputWish()], "ab")
    >>> body.decode()
    '{"model_name":"m","outputs":[{"name":"probabilities","shape":[1,2],"datatype":"FP32","data":[0.25,0.75]}]}'
    """
    outputs, raw = [], []
    for wish in wishes:
        array = _values(wish, probs, labels)
        entry: dict[str, Any] = {"name": wish.name, "shape": list(array.shape), "datatype": type_name(array)}
        if wish.binary:
            raw.append(to_raw(array))
            entry["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            entry["data"] = array.ravel().tolist()
        outputs.append(entry)
    document = pydantic_core.to_json({**head, "outputs": outputs})
    if not raw:
        return document, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(document))}
    return b"".join([document, *raw]), headers


def _values(wish: OutputWish, probs: Array, labels: Sequence[str]) -> Array:
    if wish.name == CLASSES:
        return np.asarray(probs.argmax(1), "<i8")
    if not wish.top:
        return np.asarray(probs, "<f4")
    best = np.argsort(-probs, axis=1, kind="stable")[:, : wish.top]
    texts = [[f"{row[i]:f}:{i}:{labels[i]}" for i in order] for row, order in zip(probs, best)]
    return np.array(texts, dtype=object)
