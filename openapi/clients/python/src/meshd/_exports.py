"""Programs as bytes: what `jax.export` serializes, MLIR bytecode. They run without JAX."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._numpy_text import NumpyProgram
from ._programs import Slot, slot_of, to_argument

if TYPE_CHECKING:
    from ._client import Client

#: What the server's trees have for leaves: an argument of @main, and one that the function does not use.
LEAF, DROPPED = "*", "-"


@dataclass(repr=False)
class Artifact(NumpyProgram):
    """A program of which the server has the bytes. Its arguments are trees, where the export says so."""

    format: str = "export"
    data: bytes = b""

    def store(self, client: Client, *, again: bool = False) -> dict[str, Any]:
        with self._lock:
            if self.document is None or again:
                headers = {"Content-Type": "application/octet-stream"}
                self.document = client._transport.json("POST", "/v1/programs", body=self.data, headers=headers)
            return self.document

    def encode(self, leaves: Sequence[Any]) -> list[Any]:
        document = self.document or {}
        slots = [slot_of(each) for each in document["arguments"]]
        trees = document.get("in_tree", [LEAF] * len(slots))
        if len(leaves) != len(trees):
            raise TypeError(
                f"the program takes {len(trees)} arguments {trees}, with those by name as one; got {len(leaves)}"
            )
        numbered = iter(enumerate(slots))
        return [
            fit(tree, each, numbered, f"argument {i}") for i, (tree, each) in enumerate(zip(trees, leaves, strict=True))
        ]


def call(client: Client, data: bytes, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Artifact, list[Any]]:
    """The program, which the server keeps from the first call on, and its arguments: those by name are the last."""
    key = hashlib.sha256(data).hexdigest()
    with client._shared.lock:
        program = client._shared.artifacts.setdefault(key, Artifact("", (), (), data=data))
    program.store(client)
    return program, [*args, *([kwargs] if kwargs else [])]


def fit(tree: Any, value: Any, slots: Iterator[tuple[int, Slot]], where: str) -> Any:
    """A value as the server's tree of it says; leaves have the types of the program's arguments."""
    if tree == LEAF:
        number, slot = next(slots)
        return to_argument(value, slot, number)
    if tree is None or tree == DROPPED:
        return None
    if isinstance(tree, dict):
        if not isinstance(value, Mapping) or set(value) != set(tree):
            raise TypeError(f"{where} is a dict of {sorted(tree)}, got {_what(value)}")
        return {key: fit(tree[key], value[key], slots, f"{where}[{key!r}]") for key in tree}
    if not isinstance(value, (list, tuple)) or len(value) != len(tree):
        raise TypeError(f"{where} is a list or tuple of {len(tree)}, got {_what(value)}")
    return [fit(each, inner, slots, f"{where}[{i}]") for i, (each, inner) in enumerate(zip(tree, value, strict=True))]


def _what(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"one of {sorted(map(str, value))}"
    return f"{len(value)}" if isinstance(value, (list, tuple)) else type(value).__name__
