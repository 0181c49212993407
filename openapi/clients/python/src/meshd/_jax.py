"""Lowering of JAX functions at the client. All that depends on JAX, its inner names too, is in the files _jax*.py.

Inner names of JAX 0.10.2 that have no public twin, each checked where it is used:
`jitted._jit_info` (static arguments), `lowered._lowering.compile_args` (kept arguments, Python callbacks, types of
results), `const_args` and `_device_list` beside it, `jax._src.config.trace_context`.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _dtypes, _jax_devices, _jax_live
from ._arrays import Array, Part
from ._programs import Program, Slot
from ._shardings import is_named, mesh_of_jax


def is_loaded() -> bool:
    return sys.modules.get("jax") is not None


def nonfinite_checks() -> dict[str, bool]:
    """What a run is asked to look for, as JAX is configured: the fields of its request."""
    if not is_loaded():
        return {}
    import jax

    said = {"debug_nans": jax.config.jax_debug_nans, "debug_infs": jax.config.jax_debug_infs}
    return {name: True for name, is_on in said.items() if is_on}


def is_jitted(function: Any) -> bool:
    return callable(function) and hasattr(function, "trace") and hasattr(function, "lower")


def is_lowered(function: Any) -> bool:
    """Whether it is what `jax.jit(f).lower(...)` gives."""
    if not is_loaded():
        return False
    import jax

    return isinstance(function, jax.stages.Lowered)


def is_compiled(function: Any) -> bool:
    """Whether it is what `jax.jit(f).lower(...).compile()` gives."""
    if not is_loaded():
        return False
    import jax

    return isinstance(function, jax.stages.Compiled)


def is_exported(function: Any) -> bool:
    """Whether it is what `jax.export.export(jax.jit(f))(...)` gives."""
    if not is_loaded():
        return False
    from jax import export

    return isinstance(function, export.Exported)


def are_traced(tree: Any) -> bool:
    """Whether values of the tree are those of a function that JAX is tracing."""
    if not is_loaded():
        return False
    import jax

    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(tree))


class Lowerings:
    """Functions and what they were lowered to, for each structure and types of arguments. Used by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the function as it was given: jax.jit of it would keep it alive.
        self._programs: weakref.WeakKeyDictionary[Any, dict[Any, JaxProgram]] = weakref.WeakKeyDictionary()
        # By their identity: they have no hash where a shape has none.
        self._exported: dict[int, JaxProgram] = {}
        #: How often a function was lowered.
        self.count = 0

    def lower(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], live: bool = False
    ) -> tuple[JaxProgram, list[Any]]:
        """The program of a call, and the values that are its arguments. A function that is not jitted is. `live`:
        functions that give nothing back are called while the program runs, too."""
        __tracebackhide__ = True
        import jax

        jitted = function if is_jitted(function) else jax.jit(function)
        call = Call(jitted, args, kwargs)
        key = (call.key, live)
        program: JaxProgram | None = None
        can_keep = True
        try:
            with self._lock:
                program = self._programs.setdefault(function, {}).get(key)
        except TypeError:
            # A static argument without hash, of which JAX says so itself, or a callable without weak references.
            can_keep = False
        if program is None:
            program = call.lower(live)
            with self._lock:
                self.count += 1
                if can_keep:
                    self._programs.setdefault(function, {})[key] = program
        return program, program.pick(call.leaves)

    def of_lowered(self, lowered: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[JaxProgram, list[Any]]:
        """The program of a lowering that was made elsewhere, and the values that are its arguments."""
        import jax

        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        if tree != lowered.in_tree:
            raise TypeError(f"the function was lowered for the arguments {lowered.in_tree}, got {tree}")
        with self._lock:
            program = self._programs.setdefault(lowered, {}).get(None)
        if program is None:
            program = program_of(lowered, tree)
            with self._lock:
                self._programs[lowered][None] = program
        return program, program.pick(leaves)

    def of_exported(self, exported: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[JaxProgram, list[Any]]:
        """The program of an export for several devices, and the values that are its arguments."""
        import jax

        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        if tree != exported.in_tree:
            raise TypeError(f"the function was exported for the arguments {exported.in_tree}, got {tree}")
        if tuple(exported.platforms) != ("cpu",):
            raise TypeError(f"the function was exported for {exported.platforms}: export it with platforms=['cpu']")
        with self._lock:
            program = self._exported.get(id(exported))
        if program is None:
            kept = sorted(exported.module_kept_var_idx)
            program = JaxProgram(
                exported.mlir_module(),
                [slot_of(exported.in_avals[i]) for i in kept],
                [slot_of(aval) for aval in exported.out_avals],
                finish=_Finish(exported.out_tree, exported.out_avals),
                adopt=_Adopt(exported.out_avals, None),
                kept=kept,
            )
            with self._lock:
                self._exported[id(exported)] = program
            weakref.finalize(exported, self._exported.pop, id(exported), None)
        return program, program.pick(leaves)


@dataclass(repr=False)
class JaxProgram(Program):
    """A program with the numbers of the leaves that it takes; jit drops those that it does not need."""

    kept: Sequence[int] = ()
    #: Closed-over arrays that are arguments, before the others.
    constants: Sequence[Any] = ()

    def pick(self, leaves: Sequence[Any]) -> list[Any]:
        """Of all leaves of a call those that are the program's arguments, as they travel."""
        every = [*self.constants, *leaves]
        return [to_wire(every[i]) for i in self.kept]


class Call:
    """A call of a jitted function: its leaves, and the key of its lowering."""

    def __init__(self, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        import jax

        self._jitted = jitted
        static_numbers, static_names = static_of(jitted)
        numbers = {number + len(args) if number < 0 else number for number in static_numbers}
        dynamic = tuple(value for number, value in enumerate(args) if number not in numbers)
        named = {name: value for name, value in kwargs.items() if name not in static_names}
        self.leaves, self._tree = jax.tree_util.tree_flatten((dynamic, named))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in self.leaves):
            raise TypeError(
                "a run is no operation that JAX can trace: pass the whole function to m.run, also what jax.grad or "
                "jax.vmap made of it, or call a function of @m.jit, which becomes part of the one around it"
            )
        self._stand_ins = [stand_in(leaf) for leaf in self.leaves]
        # Static arguments stay, the others are rebuilt of stand-ins.
        values, more = jax.tree_util.tree_unflatten(self._tree, self._stand_ins)
        rest = iter(values)
        self._args = tuple(value if number in numbers else next(rest) for number, value in enumerate(args))
        self._kwargs = {name: more.get(name, value) for name, value in kwargs.items()}
        fixed = tuple((number, type(args[number]), args[number]) for number in sorted(numbers) if number < len(args))
        fixed_names = tuple((name, type(kwargs[name]), kwargs[name]) for name in sorted(kwargs) if name in static_names)
        types = tuple(type_key(each) for each in self._stand_ins)
        self.key = (self._tree, types, fixed, fixed_names, trace_context())

    def lower(self, live: bool) -> JaxProgram:
        __tracebackhide__ = True
        rules = _jax_live.parameters() if live else None
        traced = self._jitted.trace(*self._args, **self._kwargs)
        lowered = _jax_devices.lower(traced, lowering_platforms=("cpu",), _private_parameters=rules)
        return program_of(lowered, self._tree)


def program_of(lowered: Any, tree: Any) -> JaxProgram:
    """The program of a lowering. `tree` is that of the arguments at hand."""
    import jax

    try:
        return _read(lowered, tree)
    except (AttributeError, KeyError) as error:
        detail = f"this version of JAX ({jax.__version__}) lowers in another way than 0.10.2: {error!r}"
        raise TypeError(detail) from error


def _read(lowered: Any, tree: Any) -> JaxProgram:
    """The program of a lowering, by JAX's inner names."""
    inner = lowered._lowering
    facts = inner.compile_args
    if lowered.in_tree != tree:
        raise TypeError(
            f"jit sees the arguments {lowered.in_tree}, this package {tree}; "
            "pass a function that was jitted by jax.jit itself"
        )
    if facts.get("mut") is not None:
        raise TypeError("mutable arrays (jax.new_ref) as arguments or closed-over values cannot be sent to a server")
    constants = list(getattr(inner, "const_args", ()))
    kept = sorted(facts["kept_var_idx"])
    in_avals, out_avals = facts["global_in_avals"], facts["global_out_avals"]
    if len(in_avals) != len(kept):
        raise KeyError("kept_var_idx counts other arguments than global_in_avals")
    said = (*facts["in_shardings"], *facts["out_shardings"], *facts.get("intermediate_shardings", ()))
    named = [each for each in said if is_named(each)]
    meshes = [each.mesh for each in named if each.mesh.axis_names]
    context = facts.get("context_mesh")
    if context is not None and context.axis_names:
        meshes.append(context)
    donated = donated_of(lowered.compiler_ir())
    return JaxProgram(
        lowered.as_text(),
        [slot_of(aval) for aval in in_avals],
        [slot_of(aval) for aval in out_avals],
        finish=_Finish(lowered.out_tree, out_avals),
        adopt=_Adopt(out_avals, meshes[0] if meshes else None),
        callbacks=tuple(facts.get("host_callbacks") or ()),
        donated=donated,
        mesh=mesh_of_run(getattr(inner, "_device_list", None), meshes),
        kept=kept,
        constants=constants,
    )


class _Finish:
    """Results as JAX's function gives them: its tree, typed keys as key arrays."""

    def __init__(self, tree: Any, avals: Sequence[Any]) -> None:
        self._tree, self._avals = tree, avals

    def __call__(self, results: list[Any]) -> Any:
        return self._tree.unflatten([from_wire(each, aval) for each, aval in zip(results, self._avals, strict=True)])


class _Adopt:
    """Handles remember the mesh that the caller knows them by, and that they are keys."""

    def __init__(self, avals: Sequence[Any], mesh: Any) -> None:
        self._avals, self._mesh = avals, mesh

    def __call__(self, handles: list[Array]) -> None:
        for handle, aval in zip(handles, self._avals, strict=True):
            handle._jax_mesh = self._mesh
            if is_key(aval.dtype):
                handle._jax_type = (tuple(aval.shape), aval.dtype)


def static_of(jitted: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Static positions and names of a jitted function, each inferred from the other by its signature."""
    info = getattr(jitted, "_jit_info", None)
    if info is None:
        return (), ()  # where this is wrong, the trees differ and lower() says so
    return tuple(info.static_argnums), tuple(info.static_argnames)


def trace_context() -> Any:
    """What a lowering depends on beside its arguments: the configuration, the mesh in context."""
    try:
        from jax._src import config

        return config.trace_context()
    except (ImportError, AttributeError):
        import jax

        return (jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision)


def is_key(dtype: Any) -> bool:
    import jax

    return bool(jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key))


def kind_of_key(leaf: Any) -> str | None:
    """The implementation of typed keys, also of a handle of some; None for what is none."""
    if not is_loaded():
        return None
    import jax

    if isinstance(leaf, Array):
        dtype = None if leaf._jax_type is None else leaf._jax_type[1]
    else:
        dtype = leaf.dtype if isinstance(leaf, jax.Array) else None
    if dtype is None or not is_key(dtype):
        return None
    return str(dtype._impl.name)


def as_key(data: Any, implementation: str) -> Any:
    """Typed keys of their data, as handles or as JAX's; where JAX is not there, the data."""
    try:
        import jax
    except ImportError:
        return data
    wrapped = jax.eval_shape(
        lambda bits: jax.random.wrap_key_data(bits, impl=implementation), jax.ShapeDtypeStruct(data.shape, np.uint32)
    )
    if isinstance(data, Array):
        data._jax_type = (tuple(wrapped.shape), wrapped.dtype)
        return data
    return jax.random.wrap_key_data(np.asarray(data), impl=implementation)


def stand_in(leaf: Any) -> Any:
    """What to lower with in place of a leaf: its type without its data and, but for NamedSharding, its place."""
    import jax

    if isinstance(leaf, Part):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    if isinstance(leaf, Array):
        leaf._check()
        if leaf._jax_type is not None:
            return jax.ShapeDtypeStruct(*leaf._jax_type)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=named_sharding(leaf))
    if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
        sharding = leaf.sharding if is_named(leaf.sharding) and leaf.sharding.mesh.axis_names else None
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=jax.typeof(leaf).weak_type)
    return leaf


def named_sharding(array: Array) -> Any:
    """The NamedSharding of a handle that came with a JAX mesh, where JAX allows it: its axes divide the shape."""
    from jax.sharding import NamedSharding, PartitionSpec

    if array._jax_mesh is None:
        return None
    if array._spec_hint is not None:
        out = NamedSharding(array._jax_mesh, PartitionSpec(*array._spec_hint))
    else:
        sharding = array.sharding
        if sharding is None or sharding.sdy is not None:
            return None
        out = sharding.jax
    try:
        out.shard_shape(array.shape)
    except ValueError:
        return None  # uneven: the server takes it, from the array itself
    return out


def type_key(leaf: Any) -> Any:
    import jax

    aval = jax.typeof(leaf) if not isinstance(leaf, jax.ShapeDtypeStruct) else leaf
    return (tuple(aval.shape), aval.dtype, bool(getattr(aval, "weak_type", False)), getattr(leaf, "sharding", None))


def slot_of(aval: Any) -> Slot:
    import jax

    if is_key(aval.dtype):
        aval = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    if aval.dtype == jax.dtypes.float0:
        return Slot("bool", tuple(aval.shape))
    return Slot(_dtypes.name_of(aval.dtype), tuple(aval.shape))


def to_wire(leaf: Any) -> Any:
    """Typed keys as their data; all else as it is."""
    if is_loaded():
        import jax

        if isinstance(leaf, jax.Array) and is_key(leaf.dtype):
            return np.asarray(jax.random.key_data(leaf))
        if getattr(leaf, "dtype", None) == jax.dtypes.float0:
            return np.zeros(leaf.shape, bool)
    return leaf


def from_wire(result: Any, aval: Any) -> Any:
    import jax

    if isinstance(result, Array):
        return result
    if is_key(aval.dtype):
        return jax.random.wrap_key_data(result, impl=aval.dtype._impl)
    if aval.dtype == jax.dtypes.float0:
        return np.zeros(aval.shape, jax.dtypes.float0)
    return result


def donated_of(module: Any) -> frozenset[int]:
    """Positions, without tokens, of the arguments of @main that the text donates."""
    from jax.extend.mlir import ir

    with module.context:
        for operation in module.body.operations:
            attributes = operation.attributes
            if "sym_name" not in attributes or ir.StringAttr(attributes["sym_name"]).value != "main":
                continue
            if "arg_attrs" not in attributes:
                return frozenset()
            each = [ir.DictAttr(entry) for entry in ir.ArrayAttr(attributes["arg_attrs"])]
            values = [entry for entry in each if "jax.token" not in entry]
            marks = ("tf.aliasing_output", "jax.buffer_donor")
            return frozenset(i for i, entry in enumerate(values) if any(mark in entry for mark in marks))
    return frozenset()


def mesh_of_run(devices: Any, meshes: list[Any]) -> dict[str, Any] | None:
    """The mesh for the request where the program's is not devices 0, 1, 2, ..."""
    if devices is None or not meshes:
        return None
    ids = tuple(int(device.id) for device in devices)
    if ids == tuple(range(len(ids))):
        return None
    mesh = mesh_of_jax(meshes[0])
    if len(ids) != len(mesh.device_ids):
        return None
    return {"axis_names": list(mesh.axis_names), "shape": list(mesh.shape), "devices": list(ids)}
