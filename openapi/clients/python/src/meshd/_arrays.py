"""Array: a handle of an array on the server, which looks like one of NumPy's."""

from __future__ import annotations

import html
import operator
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _dtypes
from ._indexing import Fetch, fetch_of
from ._shardings import Sharding, normal_spec
from .errors_by_code import NotFound

if TYPE_CHECKING:
    from ._client import Client

NDArray = npt.NDArray[Any]
OCTETS = {"Accept": "application/octet-stream"}
PUT_OCTETS = {"Content-Type": "application/octet-stream"}


@dataclass(frozen=True)
class Shard:
    """What one device holds of an array."""

    array: Array
    device: int
    index: tuple[slice, ...]
    replica_id: int
    shape: tuple[int, ...]

    @property
    def data(self) -> NDArray:
        """Its part of the array, downloaded."""
        return self.array._fetch(f"/v1/arrays/{self.array.id}/shards/{self.device}", {}, self.shape)

    def __repr__(self) -> str:
        index = ", ".join(f"{each.start}:{each.stop}" for each in self.index)
        return f"Shard(device={self.device}, index=[{index}], replica_id={self.replica_id})"


@dataclass(frozen=True)
class Part:
    """A slice of a stored array as an argument of a run; its bytes stay on the server."""

    array: Array
    fetch: Fetch

    @property
    def shape(self) -> tuple[int, ...]:
        return self.fetch.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def __repr__(self) -> str:
        return f"meshd.Part([{self.fetch.text}] of {self.array!r})"


class _Parts:
    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Part:
        fetch = fetch_of(index, self._array.shape)
        if fetch is None or fetch.after is not None:
            raise IndexError(
                "a part of an argument is a slice of each dimension with a positive step; "
                f"got {index!r}, which the server cannot take from {self._array!r}"
            )
        return Part(self._array, fetch)


class Array:
    """An array that the server keeps.

    `np.asarray(a)` downloads it, once for each version; `a[2:5, ::2]` downloads what it names, `a[2:5] = x` replaces
    it. Arrays are arguments of runs without being downloaded, and so is `a.part[2:5]`. Any thread may use a handle.
    """

    def __init__(self, client: Client, document: dict[str, Any]) -> None:
        self._client = client
        self._document = document
        self._deleted: str | None = None
        self._cached: tuple[str, NDArray] | None = None
        self._finalizer: Any = None  # deletes it on the server when the handle is gone
        self._jax_mesh: Any = None  # the mesh that the caller knows it by
        self._spec_hint: tuple[Any, ...] | None = None  # of a result: what the run's answer said of it
        self._mesh_hints: Sequence[tuple[tuple[str, ...], tuple[int, ...]]] = ()  # axes that its mesh may have
        self._jax_type: Any = None  # shape and dtype to JAX, where it holds typed keys

    # What it is -------------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return str(self._document["id"])

    @property
    def name(self) -> str:
        return str(self._full()["name"])

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._document["shape"])

    @property
    def dtype(self) -> np.dtype[Any]:
        return _dtypes.to_numpy(self._document["dtype"])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.size * _dtypes.size_of(self._document["dtype"])

    @property
    def itemsize(self) -> int:
        return _dtypes.size_of(self._document["dtype"])

    @property
    def version(self) -> int:
        """Counts the changes of the data; asked for anew."""
        return int(self.refresh()._document["version"])

    @property
    def durability(self) -> str:
        """`durable` outlives a restart of the server, `memory` does not."""
        return str(self._full()["durability"])

    @property
    def sharding(self) -> Sharding | None:
        """How it is sharded over the server's devices; None for an array without mesh, which is on device 0."""
        document = self._full()
        if document["mesh"] is None:
            return None
        try:
            mesh = self._client._mesh_of_id(document["mesh"], self._jax_mesh)
        except NotFound:
            self._name_mesh(document["mesh"])
            mesh = self._client._mesh_of_id(document["mesh"], self._jax_mesh)
        said = document["sharding"]
        return Sharding(mesh, normal_spec(said.get("spec", [])), said.get("sdy"))

    def _name_mesh(self, wanted: str) -> None:
        """A result on a mesh that its program brought along: the server has not heard the mesh's own name yet."""
        devices = tuple(shard.device for shard in self.shards)
        for names, sizes in self._mesh_hints:
            if int(np.prod(sizes)) == len(devices):
                found = self._client.mesh(sizes, names, devices)
                if found.id == wanted:
                    return

    @property
    def shards(self) -> list[Shard]:
        """One for each device of its mesh."""
        items = self._json("GET", f"/v1/arrays/{self.id}/shards")["items"]
        return [
            Shard(
                self,
                item["device"],
                tuple(slice(begin, end) for begin, end in item["index"]),
                item["replica_id"],
                tuple(item["shape"]),
            )
            for item in items
        ]

    def refresh(self) -> Array:
        """Asks the server for what it is now."""
        self._document = self._json("GET", f"/v1/arrays/{self.id}")
        return self

    def is_deleted(self) -> bool:
        """Whether this handle was deleted or donated."""
        return self._deleted is not None

    def _full(self) -> dict[str, Any]:
        if "durability" not in self._document:
            self.refresh()
        return self._document

    def _check(self) -> None:
        if self._deleted is not None:
            raise RuntimeError(f"the array {self.id} was {self._deleted}")

    def _json(self, method: str, path: str, document: Any = None, **options: Any) -> Any:
        self._check()
        return self._client._transport.json(method, path, document, **options)

    # Its data ---------------------------------------------------------------------------------------------------------

    def _fetch(self, path: str, query: dict[str, str], shape: tuple[int, ...]) -> NDArray:
        self._check()
        answer = self._client._transport.request("GET", path, query=query, headers=OCTETS)
        return _dtypes.from_bytes(answer.body, self._document["dtype"], shape)

    def _download(self) -> NDArray:
        """The whole array; what was downloaded before is asked for again only if it changed since."""
        self._check()
        headers = dict(OCTETS)
        if self._cached is not None:
            headers["If-None-Match"] = self._cached[0]
        answer = self._client._transport.request("GET", f"/v1/arrays/{self.id}/data", headers=headers)
        if answer.status == 304 and self._cached is not None:
            return self._cached[1]
        data = _dtypes.from_bytes(answer.body, self._document["dtype"], self.shape)
        data.flags.writeable = False  # callers share it
        self._cached = (answer.headers.get("ETag") or "", data)
        return data

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        data = self._download()
        if dtype is not None and np.dtype(dtype) != data.dtype:
            if copy is False:
                raise ValueError(f"an array of {data.dtype} cannot be one of {np.dtype(dtype)} without a copy")
            return data.astype(dtype)
        return data.copy() if copy else data

    def __jax_array__(self) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(self._download())

    def __getitem__(self, index: Any) -> NDArray:
        fetch = fetch_of(index, self.shape)
        if fetch is None:  # boolean or integer arrays: NumPy's rules over all of it
            found: NDArray = np.asarray(self)[index]
            return found
        if fetch.is_whole:
            return np.asarray(fetch.finish(self._download()))
        if fetch.is_empty:
            return fetch.finish(np.empty(fetch.sliced, self.dtype))
        data = self._fetch(f"/v1/arrays/{self.id}/data", {"slice": fetch.text}, fetch.sliced)
        return fetch.finish(data)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Replaces a part: a new version of the array, whole for every reader."""
        fetch = fetch_of(index, self.shape)
        if fetch is None:
            raise IndexError(f"only slices and integers can be assigned to on the server, got {index!r}")
        data = np.broadcast_to(np.asarray(value, self.dtype), fetch.shape)
        if fetch.is_empty:
            return
        self._check()
        query = {} if fetch.is_whole else {"slice": fetch.text}
        answer = self._client._transport.request(
            "PUT",
            f"/v1/arrays/{self.id}/data",
            query=query,
            body=[_dtypes.to_bytes(np.ascontiguousarray(fetch.start(data)))],
            headers=PUT_OCTETS,
        )
        self._document = answer.json()

    @property
    def part(self) -> _Parts:
        """`a.part[2:5]` is the slice as an argument of a run; nothing is downloaded."""
        return _Parts(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array of rank 0")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def item(self) -> Any:
        return np.asarray(self).item()

    def tolist(self) -> Any:
        return np.asarray(self).tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        return operator.index(np.asarray(self)[()])

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def block_until_ready(self) -> Array:
        """Itself: the run that gave it is over."""
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Only what is not found otherwise. What NumPy's arrays have is for functions that run there, or for data.
            if name.startswith("_") or not hasattr(np.ndarray, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            call = "()" if callable(getattr(np.ndarray, name)) else ""
            raise AttributeError(
                f"a meshd.Array is a handle and has no {name!r}: m.run(lambda x: x.{name}{call}, a) runs on the "
                f"server, np.asarray(a).{name} is of its data, here"
            )

    # Copies ---------------------------------------------------------------------------------------------------------

    def __copy__(self) -> Array:
        return self  # a second handle would not keep it alive

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        """A copy of the data on the server, sharded alike, which lives as long as its handle if this one does so."""
        out: Array = self._client.run("def copy(x): return x", self, keep=self.durability)
        if self._finalizer is None:
            out.detach()
        out._jax_mesh, out._jax_type = self._jax_mesh, self._jax_type
        memo[id(self)] = out
        return out

    def __reduce__(self) -> Any:
        raise TypeError(
            "a meshd.Array is a handle of this process: pickle its data (np.asarray(a)), or its id (a.id), which "
            "m.array(id) takes in the other process; a.detach() leaves one there that was kept by a run"
        )

    # What is done with it ---------------------------------------------------------------------------------------------

    def delete(self) -> None:
        """Deletes it on the server."""
        self._json("DELETE", f"/v1/arrays/{self.id}")
        self._mark("deleted")

    def reshard(self, sharding: Any, *, name: str | None = None) -> Array:
        """A copy with another sharding; a PartitionSpec is over the mesh that the array has."""
        own = self.sharding
        to = self._client.sharding(sharding, None if own is None else own.mesh)
        body: dict[str, Any] = {"mesh": to.mesh.id, "spec": to.lists(self.ndim), "durability": self.durability}
        if name is not None:
            body["name"] = name
        out = Array(self._client, self._json("POST", f"/v1/arrays/{self.id}:reshard", body, keyed=True))
        out._jax_mesh = to.mesh.origin
        return out

    def detach(self) -> str:
        """Leaves it on the server when the handle is gone; its id."""
        if self._finalizer is not None:
            self._finalizer.detach()
            self._finalizer = None
            self._client._shared.garbage.disown(f"/v1/arrays/{self.id}")
        return self.id

    def _own(self) -> None:
        """From now on it is deleted when the handle is gone, with the process at the latest."""
        garbage, path = self._client._shared.garbage, f"/v1/arrays/{self.id}"
        garbage.own(path)
        self._finalizer = weakref.finalize(self, garbage.add, path)
        self._finalizer.atexit = False  # the garbage has an end of its own

    def _mark(self, how: str) -> None:
        self._deleted, self._cached = how, None
        if how == "donated" and self._finalizer is not None:
            self._finalizer()  # its document is left, without data
            self._finalizer = None
        self.detach()

    # Pictures ---------------------------------------------------------------------------------------------------------

    def visualize(self) -> str:
        """Its sharding as a drawing of characters."""
        self._check()
        answer = self._client._transport.request(
            "GET", f"/v1/arrays/{self.id}/sharding.txt", headers={"Accept": "text/plain"}
        )
        return bytes(answer.body).decode()

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        state = f", {self._deleted}" if self._deleted else ""
        return f"meshd.Array({self._document['dtype']}[{shape}], {self.id}{state})"

    def _repr_html_(self) -> str:
        title = f"<code>{html.escape(repr(self))}</code>"
        if self._deleted is not None:
            return title
        svg = self._client._transport.request(
            "GET", f"/v1/arrays/{self.id}/sharding.svg", headers={"Accept": "image/svg+xml"}
        )
        picture = bytes(svg.body).decode()
        where = html.escape(repr(self.sharding)) if self.sharding else "whole on device 0"
        return f"<div>{title}<br><small>{where}</small><div>{picture[picture.find('<svg') :]}</div></div>"
