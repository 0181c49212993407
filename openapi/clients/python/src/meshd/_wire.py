"""Values as they travel: JSON values, forms with raw parts, safetensors."""

from __future__ import annotations

import base64
import json
import math
import secrets
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _dtypes

NDArray = npt.NDArray[Any]


def encode_value(array: NDArray) -> dict[str, Any]:
    """The server's VALUE of an array, its bytes as base64."""
    data = base64.b64encode(_dtypes.to_bytes(array)).decode()
    return {"dtype": _dtypes.name_of(array.dtype), "shape": list(array.shape), "base64": data}


def decode_value(value: Mapping[str, Any]) -> NDArray:
    """The array of a VALUE with base64 or data."""
    name, shape = value["dtype"], tuple(value["shape"])
    if "base64" in value:
        return _dtypes.from_bytes(bytearray(base64.b64decode(value["base64"])), name, shape)
    dtype = _dtypes.to_numpy(name)
    flat = list(_elements(value["data"], len(shape), dtype.kind == "c"))
    # By way of a type that Python's numbers fit into: ml_dtypes has no strings and no complex.
    if dtype.kind == "c":
        return np.array([complex(*map(float, pair)) for pair in flat], dtype).reshape(shape)
    if dtype.kind in "biu" or name in _dtypes.NARROW:
        whole: list[Any] = [int(each) for each in flat]
        return np.array(whole, None if not whole or dtype.kind != "V" else np.int64).astype(dtype).reshape(shape)
    return np.array([float(each) for each in flat], np.float64).astype(dtype).reshape(shape)


def _elements(data: Any, depth: int, is_complex: bool) -> Iterable[Any]:
    if depth == 0:
        yield data
    else:
        for each in data:
            yield from _elements(each, depth - 1, is_complex)


Buffer = bytes | memoryview


def form(document: Any, parts: Iterable[tuple[str, list[Buffer]]]) -> tuple[dict[str, str], list[Buffer]]:
    """Headers and buffers of multipart/form-data: `document` as the part request, others as bytes."""
    boundary = secrets.token_hex(16)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="request"\r\nContent-Type: application/json\r\n\r\n'
    ).encode()
    buffers: list[Buffer] = [head + json.dumps(document, separators=(",", ":")).encode()]
    for name, data in parts:
        buffers.append(
            (
                f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n'
                "Content-Type: application/octet-stream\r\n\r\n"
            ).encode()
        )
        buffers += data
    buffers.append(f"\r\n--{boundary}--\r\n".encode())
    return {"Content-Type": f"multipart/form-data; boundary={boundary}"}, buffers


def write_safetensors(arrays: Mapping[str, NDArray]) -> list[Buffer]:
    """The buffers of a safetensors file; its dtypes have names there."""
    names = {dtype: name for name, dtype in _dtypes.SAFETENSORS.items()}
    head, at = {}, 0
    for name, array in arrays.items():
        size = bytes_of(array.shape, _dtypes.name_of(array.dtype))
        entry = {"dtype": names[_dtypes.name_of(array.dtype)], "shape": array.shape, "data_offsets": [at, at + size]}
        head[name] = entry
        at += size
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [struct.pack("<Q", len(text)) + text, *(_dtypes.to_bytes(array) for array in arrays.values())]


def read_safetensors(data: memoryview) -> dict[str, NDArray]:
    """The arrays of a safetensors file, as views of `data` where they are aligned."""
    (length,) = struct.unpack_from("<Q", data)
    head = json.loads(bytes(data[8 : 8 + length]))
    out = {}
    for name, entry in head.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = _dtypes.SAFETENSORS[entry["dtype"]]
        shape = tuple(entry["shape"])
        out[name] = _dtypes.from_bytes(data[8 + length + begin : 8 + length + end], dtype, shape)
    return out


def bytes_of(shape: Iterable[int], name: str) -> int:
    """Bytes that an array of this shape takes on the way."""
    return math.prod(shape) * _dtypes.size_of(name)
