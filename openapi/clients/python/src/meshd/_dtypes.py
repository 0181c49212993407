"""Element types: the server's names are NumPy's and ml_dtypes' own."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

NATIVE = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
#: Types that NumPy itself lacks; ml_dtypes has them under the same names.
EXTENDED = (
    "int2 int4 uint2 uint4 bfloat16 float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 "
    "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
).split()
#: Types of 2 and 4 bits travel as a byte an element.
NARROW = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8}
#: What safetensors names them; results of other types come as JSON with base64.
SAFETENSORS = {
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip


def to_numpy(name: str) -> np.dtype[Any]:
    """The NumPy dtype of a name of the server; of those that NumPy lacks it is ml_dtypes'."""
    if name in NATIVE:
        return np.dtype(name)
    if name not in EXTENDED:
        raise TypeError(f"{name!r} is no dtype that the server has")
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"NumPy has no {name}: install ml_dtypes") from None
    found: Any = getattr(ml_dtypes, name, None)
    if found is None:
        raise TypeError(f"this version of ml_dtypes has no {name}: install a newer one")
    dtype: np.dtype[Any] = np.dtype(found)
    return dtype


def name_of(dtype: npt.DTypeLike) -> str:
    """The server's name of a NumPy dtype. Raises TypeError for those that it does not have."""
    return _name_of(np.dtype(dtype))


@functools.lru_cache(maxsize=256)  # NumPy makes its name anew each time, which takes longer than a small array's bytes
def _name_of(dtype: np.dtype[Any]) -> str:
    name = dtype.name
    if name not in NATIVE and name not in EXTENDED:
        raise TypeError(f"a meshd server has no arrays of dtype {name}")
    return name


def size_of(name: str) -> int:
    """Bytes of an element as it travels."""
    return 1 if name in NARROW else to_numpy(name).itemsize


def to_bytes(array: npt.NDArray[Any]) -> memoryview:
    """The row-major little-endian bytes of an array, without a copy where it has that order already."""
    name = name_of(array.dtype)
    if name in NARROW:
        array = array.astype(NARROW[name])
    elif array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    array = np.ascontiguousarray(array)
    return array.reshape(-1).view(np.uint8).data


def from_bytes(data: Any, name: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """An array over bytes as they travel; a view of `data` where it may be one."""
    dtype = to_numpy(name)
    if len(data) == 0:
        return np.empty(shape, dtype)
    if name in NARROW:
        return np.frombuffer(data, NARROW[name]).reshape(shape).astype(dtype)
    return np.frombuffer(data, np.uint8).view(dtype).reshape(shape)
