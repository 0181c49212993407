"""Makes promotion.txt: for each pair of types what JAX 0.10.2 promotes them to. A line: a b result; weak types end in *, none is -. Pairs without a
type of 64 bits are promoted without x64, as JAX does by default; where there is one, which JAX would truncate then, with x64, and a weak result is the
32 bit type that Python's numbers have."""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import dtypes

NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
         "float8_e4m3fn", "int4", "uint4"]
TYPES = [(name, False) for name in NAMES] + [("int32", True), ("float32", True), ("complex64", True), ("int8", True), ("float16", True)]


class Typed:
    def __init__(self, name, weak):
        self.dtype, self.weak_type = np.dtype(getattr(jnp, name) if name != "bool" else bool), weak


def shown(name, weak):
    return name + ("*" if weak else "")


def main():
    dtypes._dtype_and_weaktype = lambda x: (x.dtype, x.weak_type)
    lines = []
    for a in TYPES:
        for b in TYPES:
            try:
                with jax.enable_x64("64" in a[0].replace("complex64", "") + b[0].replace("complex64", "") or "complex128" in (a[0], b[0])):
                    dtype, weak = dtypes.lattice_result_type(Typed(*a), Typed(*b))
                if weak and a[0] != b[0]:
                    dtype = {"float64": "float32", "complex128": "complex64"}.get(str(dtype), dtype)
                result = shown(np.dtype(dtype).name, weak)
            except dtypes.TypePromotionError:
                result = "-"
            lines.append(f"{shown(*a)} {shown(*b)} {result}")
    pathlib.Path(__file__).with_name("promotion.txt").write_text("\n".join(lines) + "\n")
    print(len(lines), "pairs of jax", jax.__version__)


if __name__ == "__main__":
    main()
