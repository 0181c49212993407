"""NumPy's basic indexing as the slices that the server takes."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Fetch:
    """What to ask for, and how what comes becomes what was meant.

    `text` is the query `slice`, with positive steps and all dimensions; `sliced` is the shape of what comes; `after`
    indexes it (dimensions turned around, dropped and added), or is None where it is right as it is.
    """

    text: str
    sliced: tuple[int, ...]
    shape: tuple[int, ...]
    after: tuple[Any, ...] | None
    is_whole: bool

    @property
    def is_empty(self) -> bool:
        return 0 in self.sliced

    def finish(self, data: NDArray) -> NDArray:
        return data if self.after is None else data[self.after]

    def start(self, data: NDArray) -> NDArray:
        """The other way: what was meant as what the server takes."""
        if self.after is None:
            return data
        out = np.empty(self.sliced, data.dtype)
        out[self.after] = data
        return out


def fetch_of(index: Any, shape: tuple[int, ...]) -> Fetch | None:
    """None for indices by arrays, which the server does not do. Raises IndexError as NumPy does."""
    entries = index if isinstance(index, tuple) else (index,)
    if not all(each is None or each is Ellipsis or isinstance(each, slice) or _is_integer(each) for each in entries):
        return None
    named = sum(each is not None and each is not Ellipsis for each in entries)
    if named > len(shape):
        raise IndexError(f"{named} indices for an array of rank {len(shape)}")
    if sum(each is Ellipsis for each in entries) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not any(each is Ellipsis for each in entries):
        entries = (*entries, Ellipsis)
    fields: list[str] = []
    sliced: list[int] = []
    after: list[Any] = []
    dimension = 0
    for each in entries:
        if each is None:
            after.append(None)
            continue
        if each is Ellipsis:
            for size in shape[dimension : dimension + len(shape) - named]:
                fields.append(":")
                sliced.append(size)
                after.append(slice(None))
                dimension += 1
            continue
        size = shape[dimension]
        if isinstance(each, slice):
            begin, step, count = _positive(each, size)
            end = begin + (count - 1) * step + 1 if count else begin
            fields.append(":" if (begin, step, count) == (0, 1, size) else f"{begin}:{end}:{step}")
            sliced.append(count)
            is_backward = each.step is not None and operator.index(each.step) < 0
            after.append(slice(None, None, -1) if is_backward else slice(None))
        else:
            at = operator.index(each)
            if not -size <= at < size:
                raise IndexError(f"index {at} is out of bounds for axis {dimension} with size {size}")
            at += size if at < 0 else 0
            fields.append(f"{at}:{at + 1}")
            sliced.append(1)
            after.append(0)
        dimension += 1
    is_plain = all(isinstance(each, slice) and each == slice(None) for each in after)
    is_whole = all(field == ":" for field in fields)
    return Fetch(
        ",".join(fields), tuple(sliced), _shape_of(after, sliced), None if is_plain else tuple(after), is_whole
    )


def _is_integer(each: Any) -> bool:
    if isinstance(each, (bool, np.bool_)):
        return False
    try:
        operator.index(each)
    except TypeError:
        return False
    return not isinstance(each, np.ndarray) or each.ndim == 0


def _positive(each: slice, size: int) -> tuple[int, int, int]:
    """Begin, positive step and count of the elements that a slice names, in ascending order."""
    begin, end, step = each.indices(size)
    count = len(range(begin, end, step))
    return (begin, step, count) if step > 0 else (begin + (count - 1) * step if count else 0, -step, count)


def _shape_of(after: list[Any], sliced: list[int]) -> tuple[int, ...]:
    sizes = iter(sliced)
    out: list[int] = []
    for each in after:
        if each is None:
            out.append(1)
        elif isinstance(each, slice):
            out.append(next(sizes))
        else:
            next(sizes)
    return tuple(out)
