"""Tensors on the wire: the data types of the Open Inference Protocol, as JSON lists or as raw bytes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grotta.serve.errors import bad

Array = NDArray[Any]
TYPES: dict[str, np.dtype[Any]] = {
    "UINT8": np.dtype("u1"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "INT64": np.dtype("<i8"),
}


def check_shape(shape: object, most: int) -> tuple[int, ...]:
    """``shape`` as sizes, if it is a list of positive whole numbers for at most ``most`` values."""
    if not isinstance(shape, list) or not 1 <= len(shape) <= 8:
        raise bad("shape must be a list of one to eight sizes")
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in shape):
        raise bad("shape must hold whole numbers of at least 1")
    if (count := math.prod(shape)) > most:
        raise bad(f"shape {shape} has {count} values, at most {most} are accepted")
    return tuple(shape)


def wire_type(datatype: object, accepted: Sequence[str]) -> np.dtype[Any]:
    """The type behind a ``datatype``, if it is one of the accepted ones."""
    if not isinstance(datatype, str) or datatype not in accepted:
        raise bad(f"datatype must be one of {', '.join(accepted)}, got {str(datatype)[:40]!r}")
    return TYPES[datatype]


def from_raw(raw: memoryview, kind: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Values from raw little-endian bytes; the number of bytes must be that of the shape.

    >>> from_raw(memoryview(b"\\x00\\x00\\x80\\x3f"), TYPES["FP32"], (1, 1))
    array([[1.]], dtype=float32)
    """
    needed = math.prod(shape) * kind.itemsize
    if len(raw) != needed:
        raise bad(
            f"a tensor of shape {list(shape)} and {kind.itemsize}-byte values takes {needed} bytes, got {len(raw)}"
        )
    return np.frombuffer(raw, kind).reshape(shape)


def from_json(data: object, kind: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Values from a JSON list, flat or nested as the shape is.

    >>> from_json([[1, 2], [3, 4]], TYPES["UINT8"], (2, 2)).tolist()
    [[1, 2], [3, 4]]
    """
    if not isinstance(data, list):
        raise bad("data must be a list of numbers")
    try:
        array = np.array(data)
    except (ValueError, OverflowError) as error:
        raise bad("data must be a flat list of numbers, or one nested as the shape is") from error
    if array.dtype.kind not in "iuf":
        raise bad("data must hold numbers only")
    if array.ndim != 1 and array.shape != shape:
        raise bad(f"data is nested as {list(array.shape)}, but shape is {list(shape)}")
    if array.size != math.prod(shape):
        raise bad(f"shape {list(shape)} takes {math.prod(shape)} values, data has {array.size}")
    if kind.kind == "f":
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused with the other pixels
            return array.astype(kind).reshape(shape)
    if array.dtype.kind == "f" or array.min() < np.iinfo(kind).min or array.max() > np.iinfo(kind).max:
        limits = np.iinfo(kind)
        raise bad(f"data must hold whole numbers from {limits.min} to {limits.max}")
    return array.astype(kind).reshape(shape)


def to_raw(array: Array) -> bytes:
    """The bytes of ``array``; strings as a length of four bytes and their UTF-8 each.

    >>> to_raw(np.array(["ab"], dtype=object))
    b'\\x02\\x00\\x00\\x00ab'
    """
    if array.dtype != object:
        return array.tobytes()
    encoded = [text.encode() for text in array.ravel()]
    return b"".join(len(text).to_bytes(4, "little") + text for text in encoded)


def type_name(array: Array) -> str:
    """The protocol's name for the type of ``array``."""
    return "BYTES" if array.dtype == object else next(name for name, kind in TYPES.items() if kind == array.dtype)
