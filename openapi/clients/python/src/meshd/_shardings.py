"""Mesh and Sharding: the server's, and those of JAX that say the same."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Entry = "str | tuple[str, ...] | None"


@dataclass(frozen=True)
class Mesh:
    """Devices of the server along named axes. `m.mesh((4, 2), ("x", "y"))` makes one."""

    axis_names: tuple[str, ...]
    shape: tuple[int, ...]
    device_ids: tuple[int, ...]
    axis_types: tuple[str, ...] = ()
    id: str = ""
    #: The JAX mesh that it stands for, where it came from one.
    origin: Any = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        return len(self.device_ids)

    def sharding(self, *spec: str | Sequence[str] | None) -> Sharding:
        """`mesh.sharding("x", None)`: the first dimension over x."""
        return Sharding(self, normal_spec(spec))

    def document(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "axis_names": list(self.axis_names),
            "shape": list(self.shape),
            "devices": list(self.device_ids),
        }
        if self.axis_types:
            out["axis_types"] = list(self.axis_types)
        return out

    @property
    def jax(self) -> Any:
        """A JAX mesh of these axes: what it was made of, else an AbstractMesh, which needs no devices here."""
        if self.origin is not None:
            return self.origin
        from jax.sharding import AbstractMesh, AxisType

        types = tuple(AxisType[name.capitalize()] for name in self.axis_types or ("auto",) * len(self.shape))
        return AbstractMesh(self.shape, self.axis_names, axis_types=types)


@dataclass(frozen=True)
class Sharding:
    """How an array is sharded over a mesh: for each dimension the axes that it is sharded along."""

    mesh: Mesh
    spec: tuple[Any, ...] = ()
    #: What the server says where a spec cannot: open dimensions, parts of axes.
    sdy: str | None = None

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}={size}" for name, size in zip(self.mesh.axis_names, self.mesh.shape, strict=True))
        said = self.sdy if self.sdy is not None else f"P({', '.join(map(repr, self.spec))})"
        return f"Sharding({said} on {axes or 'one device'})"

    def query(self) -> dict[str, str]:
        """As the query of an upload has it: mesh, and spec with a field a dimension."""
        fields = ["" if axes is None else axes if isinstance(axes, str) else ".".join(axes) for axes in self.spec]
        return {"mesh": self.mesh.id, "spec": ",".join(fields)}

    def lists(self, rank: int) -> list[list[str]]:
        """As JSON has it: a list of axes for each dimension."""
        named = [[] if axes is None else [axes] if isinstance(axes, str) else list(axes) for axes in self.spec]
        return named + [[]] * (rank - len(named))

    @property
    def jax(self) -> Any:
        """The NamedSharding that says the same."""
        from jax.sharding import NamedSharding, PartitionSpec

        return NamedSharding(self.mesh.jax, PartitionSpec(*self.spec))


def normal_spec(spec: Sequence[Any]) -> tuple[Any, ...]:
    """Entries as None, a name or a tuple of several names."""
    out: list[Any] = []
    for entry in spec:
        if entry is None or isinstance(entry, str):
            out.append(entry)
            continue
        if not isinstance(entry, (list, tuple)):
            raise ValueError(f"a stored array has a sharding in every dimension; its spec has {entry!r}")
        names = tuple(entry)
        out.append(None if not names else names[0] if len(names) == 1 else names)
    return tuple(out)


def is_named(sharding: Any) -> bool:
    """Whether it is JAX's NamedSharding."""
    module = sys.modules.get("jax.sharding")
    return module is not None and isinstance(sharding, module.NamedSharding)


def is_spec(said: Any) -> bool:
    """Whether it is JAX's PartitionSpec."""
    module = sys.modules.get("jax.sharding")
    return module is not None and isinstance(said, module.PartitionSpec)


def mesh_in_context() -> Mesh | None:
    """What `jax.set_mesh` or `jax.sharding.use_abstract_mesh` has set; with the devices of the former."""
    from jax import sharding

    context = sharding.get_abstract_mesh()
    if context is None or context.empty:
        return None
    with contextlib.suppress(ValueError):  # JAX's, while it traces
        concrete = sharding.get_mesh()
        context = context if concrete.empty else concrete
    return mesh_of_jax(context)


def ids_of(devices: Any) -> tuple[int, ...]:
    """Of ids, devices of JAX and documents of the server, nested or not."""
    flat = np.asarray(devices, dtype=object).reshape(-1)
    found = (each["id"] if isinstance(each, dict) else getattr(each, "id", each) for each in flat)
    return tuple(int(each) for each in found)


def mesh_of_jax(mesh: Any) -> Mesh:
    """A JAX mesh as the server has it, without id. An AbstractMesh takes devices 0, 1, 2, ..."""
    names, sizes = tuple(map(str, mesh.axis_names)), tuple(mesh.axis_sizes)
    count = 1
    for size in sizes:
        count *= size
    devices = getattr(mesh, "devices", None) if type(mesh).__name__ == "Mesh" else None
    ids = tuple(range(count)) if devices is None else tuple(int(device.id) for device in devices.flat)
    types = tuple(each.name.lower() for each in mesh.axis_types)
    return Mesh(names, sizes, ids, types, origin=mesh)
