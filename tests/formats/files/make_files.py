#!/usr/bin/env python3
"""Writes the files of this folder with the real libraries: numpy 2.4.6, ml_dtypes 0.6.0, safetensors 0.8.0.

Run it with a Python that has them. values.json says what each holds: dtype, shape, and bytes as hex, as meshd keeps
them (int2 and int4 repeat their sign in the bits that ml_dtypes leaves 0).
"""
import io
import json
import pathlib

import ml_dtypes
import numpy as np
import safetensors

HERE = pathlib.Path(__file__).parent
# Files say nothing else than their size in bytes of these, but of float8_e5m2.
NARROW = ["int2", "int4", "uint2", "uint4", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
          "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "float6_e2m3fn",
          "float6_e3m2fn", "bfloat16"]
# What safetensors' TensorSpec calls them.
TENSORS = ["bool", "uint8", "int8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz",
           "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32", "complex64", "float64", "int64", "uint64"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def array_of(name):
    if name in ("int2", "int4", "uint2", "uint4"):
        info = ml_dtypes.iinfo(dtype_of(name))
        return np.array([[info.min, info.max, 0], [1, info.min, info.max]]).astype(dtype_of(name))
    if name.startswith(("float4_", "float6_")):
        largest = ml_dtypes.finfo(dtype_of(name)).max
        return np.array([[-largest, -1, -0.0], [0.5, 1, largest]], np.float32).astype(dtype_of(name))
    count = 6 * dtype_of(name).itemsize
    bits = np.arange(7, 7 + 37 * count, 37).astype(np.uint8) if name != "bool" else np.arange(count, dtype=np.uint8) % 2
    return np.frombuffer(bits.tobytes(), dtype_of(name)).reshape(2, 3)


def as_kept(array):
    if array.dtype.name in ("int2", "int4"):
        return array.astype(np.int8).tobytes().hex()
    return array.tobytes().hex()


def main():
    values = {}

    def note(file, name, array):
        values[file + (f"#{name}" if name else "")] = {"dtype": array.dtype.name, "shape": list(array.shape), "bytes": as_kept(array)}

    for name in NARROW:
        array = array_of(name)
        np.save(HERE / f"{name}.npy", array)
        note(f"{name}.npy", "", array)
    # A copy of what np.load gave, an array in Fortran order, and version 3 of the format.
    np.save(HERE / "bfloat16_void.npy", np.load(HERE / "bfloat16.npy"))
    note("bfloat16_void.npy", "", array_of("bfloat16"))
    np.save(HERE / "bfloat16_fortran.npy", np.asfortranarray(array_of("bfloat16")))
    note("bfloat16_fortran.npy", "", array_of("bfloat16"))
    with open(HERE / "bfloat16_v3.npy", "wb") as file:
        np.lib.format.write_array(file, array_of("bfloat16"), version=(3, 0))
    note("bfloat16_v3.npy", "", array_of("bfloat16"))
    members = {"w/kernel": array_of("bfloat16"), "w/scale": array_of("float8_e4m3fn"), "w/state": array_of("float8_e5m2"),
               "step": np.array(7, np.int32)}
    np.savez(HERE / "checkpoint.npz", **members)
    np.savez_compressed(HERE / "checkpoint_deflated.npz", **members)
    for file in ("checkpoint.npz", "checkpoint_deflated.npz"):
        for name, array in members.items():
            note(file, name, array)
    kept = {name: array_of(name) for name in TENSORS}
    specs = {name: safetensors.TensorSpec(dtype=name, shape=list(array.shape), data_ptr=array.ctypes.data, data_len=array.nbytes)
             for name, array in kept.items()}
    (HERE / "tensors.safetensors").write_bytes(bytes(safetensors.serialize(specs, metadata={"format": "pt"})))
    for name, array in kept.items():
        note("tensors.safetensors", name, array)
    four = np.zeros(2, np.uint8)
    spec = safetensors.TensorSpec(dtype="float4_e2m1fn_x2", shape=[2], data_ptr=four.ctypes.data, data_len=2)
    (HERE / "four_bits.safetensors").write_bytes(bytes(safetensors.serialize({"four": spec})))
    (HERE / "values.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
