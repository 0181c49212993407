"""Checkpoints: trees of arrays below a prefix, written and read in one request each."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dtypes, _jax, _trees, errors_by_code
from ._arrays import PUT_OCTETS, Array, NDArray
from ._wire import Buffer, read_safetensors, write_safetensors

if TYPE_CHECKING:
    from ._client import Client


def folder(prefix: str) -> str:
    if not prefix:
        raise ValueError("a checkpoint has a prefix, such as 'run7/step100'")
    return prefix if prefix.endswith("/") else prefix + "/"


def _array_of(name: str, value: Any) -> NDArray:
    array = np.asarray(_jax.to_wire(value) if _jax.is_loaded() and not isinstance(value, Array) else value)
    try:
        _dtypes.name_of(array.dtype)
    except TypeError as error:
        raise TypeError(f"the leaf {name!r} of the checkpoint ({type(value).__name__}): {error}") from None
    return array


def _file_of(arrays: dict[str, NDArray]) -> tuple[list[Buffer], list[tuple[str, str]]]:
    """A file of them, and what its names alone do not say."""
    written = set(_dtypes.SAFETENSORS.values())
    if all(_dtypes.name_of(array.dtype) in written for array in arrays.values()):
        return write_safetensors(arrays), []
    # Types that safetensors has no name for: .npz, whose members say "void" of those that NumPy lacks.
    file, hints = io.BytesIO(), []
    bare = {}
    for name, array in arrays.items():
        dtype = _dtypes.name_of(array.dtype)
        if dtype in _dtypes.EXTENDED:
            array = array.view(f"V{array.dtype.itemsize}")
            hints.append(("dtype_for", f"{name}={dtype}"))
        bare[name] = array
    np.savez(file, allow_pickle=False, **bare)
    return [file.getbuffer()], hints


def save(client: Client, prefix: str, tree: Any, durability: str) -> None:
    at = folder(prefix)
    leaves, structure = _trees.flatten(tree)
    arrays = {name: _array_of(name, value) for name, value in leaves.items()}
    arrays[_trees.STRUCTURE] = np.frombuffer(_trees.encode(structure), np.uint8)
    body, hints = _file_of(arrays)
    query: list[tuple[str, Any]] = [("prefix", at), ("unique", "true"), ("replace", "true"), ("durability", durability)]
    client._upload("POST", "/v1/arrays:import", [*query, *hints], body, PUT_OCTETS)
    # What an earlier checkpoint had beside these.
    kept = {at + name for name in arrays}
    for array in client.arrays(prefix=at):
        if array.name not in kept:
            array.delete()


def export(client: Client, prefix: str) -> dict[str, NDArray]:
    """The arrays that the names below the prefix address, by what follows it."""
    try:
        answer = client._transport.request("GET", "/v1/arrays:export", query={"prefix": prefix})
        return read_safetensors(answer.body)
    except errors_by_code.NotAcceptable:  # a dtype that safetensors has no name for
        found = addressed(client.arrays(prefix=prefix))
        return {name[len(prefix) :] or name: np.asarray(array) for name, array in found.items()}


def addressed(arrays: Sequence[Array]) -> dict[str, Array]:
    """By name, of several the newest that has data."""
    out: dict[str, Array] = {}
    for array in sorted(arrays, key=lambda each: each.id):  # ids ascend with time
        if array._document["state"] == "ready":
            out[array.name] = array
    return out


def load(client: Client, prefix: str, like: Any, keep: bool) -> Any:
    at = folder(prefix)
    found: dict[str, Any]
    if keep:
        found = {name[len(at) :]: array for name, array in addressed(client.arrays(prefix=at)).items()}
        if not found:
            raise errors_by_code.NotFound(f"there is no checkpoint at {at!r}", status=404)
    else:
        found = dict(export(client, at))

    def leaf(name: str) -> Any:
        if name not in found:
            raise KeyError(f"the checkpoint {at!r} has no {name!r}; it has {sorted(set(found) - {_trees.STRUCTURE})}")
        return found[name]

    if like is not None:
        return _trees.build_like(like, leaf)
    if _trees.STRUCTURE not in found:
        return {name: leaf(name) for name in sorted(found)}  # a file that somebody imported
    return _trees.build(json.loads(np.asarray(found[_trees.STRUCTURE]).tobytes()), leaf)
