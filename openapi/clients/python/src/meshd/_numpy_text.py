"""Programs in NumPy syntax: texts with a `def`, which the server traces for the types of the arguments, without JAX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arrays import Array, Part
from ._programs import Program

#: What such a text begins with, behind comments.
BEGINNING = re.compile(r"(?:\s*#[^\n]*\n|\s)*(?:def\s|@|import\s|from\s)")


def is_numpy_text(text: str) -> bool:
    return BEGINNING.match(text) is not None


class Keywords(dict[str, Any]):
    """Arguments by name, behind the others."""


@dataclass(repr=False)
class NumpyProgram(Program):
    """Its arguments are trees: dicts, lists and tuples of arrays, handles, numbers, texts and None."""

    format: str = "numpy"

    def encode(self, leaves: Sequence[Any]) -> list[Any]:
        return [map_leaves(_to_leaf, each) for each in leaves]


def call(text: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[NumpyProgram, list[Any]]:
    """The program, and its arguments with those by name at the end."""
    return NumpyProgram(text, (), ()), [*args, *([Keywords(kwargs)] if kwargs else [])]


def _to_leaf(value: Any) -> Any:
    # Numbers of Python are weakly typed, also there.
    if value is None or isinstance(value, (bool, int, float, str, Array, Part)) and not isinstance(value, np.generic):
        return value
    array = np.asarray(value)
    if array.dtype == object:
        raise TypeError(f"expected an array, a number, a text or a tree of them, got {type(value).__name__}")
    return array


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, dict):
        return type(tree)({key: map_leaves(change, each) for key, each in tree.items()})
    if isinstance(tree, (list, tuple)):
        return [map_leaves(change, each) for each in tree]
    return change(tree)


def leaves_of(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        for each in tree:
            yield from leaves_of(each)
    else:
        yield tree


def arrange(tree: Any, results: Sequence[Any]) -> Any:
    """The results as the server's `result_tree` says: numbers stand for them."""
    if isinstance(tree, bool) or not isinstance(tree, int):
        if isinstance(tree, dict):
            return {key: arrange(each, results) for key, each in tree.items()}
        if isinstance(tree, list):
            return tuple(arrange(each, results) for each in tree)
        return tree
    return results[tree]
