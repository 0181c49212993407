"""Program: a text with what is needed to call it: types of its arguments and results, trees, callbacks."""

from __future__ import annotations

import functools
import hashlib
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dtypes, _wire
from ._arrays import Array, Part

if TYPE_CHECKING:
    from ._client import Client


@dataclass(frozen=True)
class Slot:
    """Type of an argument or result of @main as it travels."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return _wire.bytes_of(self.shape, self.dtype)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def _as_they_are(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


#: Texts from this size on, such as those with large constants, travel once, if they are run again. Shorter ones are
#: read as fast as they are found by their id.
LONG_TEXT = 16 * 1024
#: The server stores texts up to 64 MiB; longer ones travel with each run.
LONGEST_STORED = 60 << 20


@dataclass(repr=False)
class Program:
    """A program of the server's language, lowered from a Python function or given as text."""

    text: str
    arguments: Sequence[Slot]
    results: Sequence[Slot]
    #: Makes the answer of a list of results.
    finish: Callable[[list[Any]], Any] = _as_they_are
    #: Tells the handles of results that stay on the server what they are to JAX.
    adopt: Callable[[list[Array]], None] = field(default=lambda handles: None)
    #: The Python functions that the text calls by their index.
    callbacks: Sequence[Callable[..., Any]] = ()
    #: Positions of the arguments that the text donates.
    donated: frozenset[int] = frozenset()
    #: The mesh to run on, where it is not devices 0, 1, 2, ...
    mesh: dict[str, Any] | None = None
    #: The server's document, once it is stored there.
    document: dict[str, Any] | None = None
    #: What the text is, where it is not StableHLO.
    format: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_used: bool = False

    def __repr__(self) -> str:
        if self.format is not None:
            return f"meshd.Program({self.format})"
        named = re.search(r"\bmodule @(\w+)", self.text[:1000])
        name = f"{named[1]}: " if named else ""
        types = (f"({', '.join(map(str, slots))})" for slots in (self.arguments, self.results))
        return f"meshd.Program({name}{' -> '.join(types)})"

    def is_sent_again(self) -> bool:
        """Whether its text is long and was run before, so that storing it saves more than it costs."""
        is_again, self._is_used = self._is_used, True
        return is_again and len(self.text) >= LONG_TEXT

    @property
    def can_be_stored(self) -> bool:
        return len(self.text) < LONGEST_STORED

    @property
    def source(self) -> dict[str, Any]:
        """The text as a request has it."""
        return {"text": self.text} if self.format is None else {"format": self.format, "text": self.text}

    @property
    def id(self) -> str | None:
        return None if self.document is None else str(self.document["id"])

    @functools.cached_property
    def mesh_axes(self) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
        """Names and sizes of the axes of each mesh that the text declares."""
        out = []
        for axes in re.findall(r"sdy\.mesh @\S+ = <\[([^\]]+)\]", self.text):
            pairs = re.findall(r'"((?:[^"\\]|\\.)*)"\s*=\s*(\d+)', axes)
            out.append((tuple(name for name, _ in pairs), tuple(int(size) for _, size in pairs)))
        return out

    def store(self, client: Client, *, again: bool = False) -> dict[str, Any]:
        """The server's document of the program, which is stored there at the first call."""
        with self._lock:
            if self.document is None or again:
                self.document = store_text(client, self.source)
            return self.document

    def encode(self, leaves: Sequence[Any]) -> list[Any]:
        """Arguments as arrays of the right dtype and shape, handles as they are."""
        if len(leaves) != len(self.arguments):
            raise TypeError(f"the program takes {len(self.arguments)} arguments, got {len(leaves)}")
        return [
            to_argument(leaf, slot, number)
            for number, (leaf, slot) in enumerate(zip(leaves, self.arguments, strict=True))
        ]


def to_argument(leaf: Any, slot: Slot, number: int) -> Any:
    dtype = _dtypes.to_numpy(slot.dtype)
    if isinstance(leaf, (Array, Part)):
        if leaf.dtype == dtype:
            return leaf
        wide = " (JAX has 64 bits with jax_enable_x64 only)" if leaf.dtype.itemsize == 2 * dtype.itemsize else ""
        raise TypeError(
            f"argument {number} of the program is {slot}, the array on the server is {leaf.dtype}{wide}: "
            f"put it there as {slot.dtype}"
        )
    array = np.asarray(leaf)
    if array.dtype != dtype:
        array = array.astype(dtype)
    if array.shape != slot.shape and -1 not in slot.shape and any(size >= 0 for size in slot.shape):
        raise TypeError(f"argument {number} of the program is {slot}, got shape {array.shape}")
    return array


def store_text(client: Client, source: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = client._transport.json("POST", "/v1/programs", source, text=source["text"])
    return document


def slot_of(parameter: dict[str, Any]) -> Slot:
    # Sizes that follow from the arguments, or from data, are negative.
    return Slot(parameter["dtype"], tuple(max(-1, size) for size in parameter["shape"]))


def from_text(client: Client, text: str) -> Program:
    """A program of StableHLO text; the server says what it takes and gives."""
    document = store_text(client, {"text": text})
    arguments = [slot_of(each) for each in document["arguments"]]
    donated = frozenset(i for i, each in enumerate(document["arguments"]) if each.get("donated"))
    results = [slot_of(each) for each in document["results"]]
    return Program(text, arguments, results, donated=donated, document=document)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
