#!/usr/bin/env python3
"""Writes fixtures/ and exports/: programs as text and as what jaxlib writes of them.

Needs JAX 0.10.2 and flatbuffers (pip install jax==0.10.2 flatbuffers); run in the root of the tree. With `all FOLDER` it writes the artifacts
of every program of tests/conformance and tests/cases to FOLDER, with a list of pairs for `artifact_tool compare`.
"""
import base64
import hashlib
import io
import json
import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

# No paths of this machine in what is written.
jax.config.update("jax_traceback_in_locations_limit", 0)

HERE = pathlib.Path("tests/artifacts")
NEWEST = stablehlo.get_current_version()
VERSIONS = ["0.9.0", "0.14.0", "0.15.0", "0.19.0", "1.0.0", "1.5.0", "1.11.0", NEWEST]
LARGEST = 6000  # bytes of a program's text
WANTED = 72


def sources():
    return sorted(pathlib.Path("tests/cases").rglob("*.mlir")) + sorted(pathlib.Path("tests/conformance").rglob("*.mlir"))


def artifacts_of(text):
    """{name: bytes} of a program: its bytecode, and portable artifacts of each version that has its ops; with other dialects
    mixed in where VHLO alone does not do."""
    out = {}
    with mlir.make_ir_context(), ir.Location.unknown():
        file = io.BytesIO()
        ir.Module.parse(text).operation.write_bytecode(file)
        out["bytecode"] = file.getvalue()
        for version in VERSIONS:
            try:
                out[version] = stablehlo.serialize_portable_artifact(ir.Module.parse(text), version)
            except Exception:
                try:
                    out[version + "-mixed"] = _jax.mlir.serialize_portable_artifact(ir.Module.parse(text), version, True)
                except Exception:
                    pass
    return out


def read_back(artifact):
    with mlir.make_ir_context(), ir.Location.unknown():
        return _jax.mlir.deserialize_portable_artifact(artifact).operation.get_asm()


def as_vhlo(artifact, generic):
    """VHLO as text, in one of the two forms that MLIR prints."""
    with mlir.make_ir_context(), ir.Location.unknown():
        return ir.Module.parse(artifact).operation.get_asm(print_generic_op_form=generic)


def write_vhlo():
    """The newest portable artifact of each fixture as VHLO text, every second one in the generic form."""
    (HERE / "vhlo").mkdir(exist_ok=True)
    for number, path in enumerate(sorted((HERE / "fixtures").glob("*.json"))):
        newest = [entry for entry in json.loads(path.read_text())["artifacts"] if entry["version"] == NEWEST]
        if newest:
            text = as_vhlo(base64.b64decode(newest[0]["base64"]), number % 2 == 1)
            (HERE / "vhlo" / (path.stem + ".mlir")).write_text(text)


def ops_of(text):
    """Names of ops, and of attributes, that the program has."""
    out = set()
    with mlir.make_ir_context(), ir.Location.unknown():
        def visit(op):
            out.add(op.name)
            for attribute in op.attributes:
                out.add(f"{op.name} {attribute.name if hasattr(attribute, 'name') else attribute}")
            return ir.WalkResult.ADVANCE
        ir.Module.parse(text).operation.walk(visit)
    return out


def write_fixtures():
    """A few programs that have all ops between them, the smallest first."""
    programs = []
    for path in sources():
        text = path.read_text()
        if len(text) > LARGEST:
            continue
        try:
            programs.append((len(text), path, ops_of(text)))
        except Exception:
            continue  # what jaxlib does not read
    programs.sort(key=lambda program: program[:2])
    seen, chosen = set(), []
    for _, path, ops in programs:
        if ops - seen and len(chosen) < WANTED:
            artifacts = artifacts_of(path.read_text())
            if len(artifacts) > 1 or ops - seen:
                seen |= ops
                chosen.append((path, artifacts))
    for path, artifacts in chosen:
        texts = {name: read_back(data) for name, data in artifacts.items() if name != "bytecode"}
        fixture = {"source": str(path), "bytecode": base64.b64encode(artifacts["bytecode"]).decode(), "artifacts": []}
        for name, data in artifacts.items():
            if name != "bytecode":
                fixture["artifacts"].append({"version": name, "text": texts[name], "base64": base64.b64encode(data).decode()})
        # Equal texts are written once.
        for i, entry in enumerate(fixture["artifacts"]):
            for j in range(i):
                if fixture["artifacts"][j].get("text") == entry["text"]:
                    entry["text_of"] = fixture["artifacts"][j]["version"]
                    del entry["text"]
                    break
        (HERE / "fixtures" / (path.stem + ".json")).write_text(json.dumps(fixture, indent=1) + "\n")
    print(len(chosen), "fixtures")


def value(array):
    array = np.asarray(array)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "base64": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def nested(tree):
    """Arguments as a client sends them: tuples are lists."""
    if isinstance(tree, dict):
        return {key: nested(tree[key]) for key in sorted(tree)}
    if isinstance(tree, (list, tuple)):
        return [nested(item) for item in tree]
    return None if tree is None else value(tree)


def write_export(name, exported, calls, note, **more):
    """`calls`: lists of arguments; JAX's results of each are written beside them."""
    case = {"note": note, "base64": base64.b64encode(bytes(exported.serialize())).decode(), "calls": [], **more}
    for arguments in calls:
        results = jax.tree.leaves(exported.call(*arguments)) if calls is not None and "cpu" in exported.platforms else []
        case["calls"].append({"arguments": nested(list(arguments)), "results": [value(result) for result in results]})
    (HERE / "exports" / (name + ".json")).write_text(json.dumps(case, indent=1) + "\n")


def write_symbolic_exports():
    """What JAX prints of symbolic shapes beside dynamic ops: operands of custom calls that are shapes, dynamic forms as custom calls, slices
    of known sizes at places that loops count."""
    f32 = np.float32
    square = jax.ShapeDtypeStruct(export.symbolic_shape("b, n, n"), f32)
    matrix = jax.ShapeDtypeStruct(export.symbolic_shape("b, n"), f32)
    spd = np.stack([np.diag(np.arange(1, 4, dtype=f32)) + 0.5, np.diag(np.arange(2, 5, dtype=f32)) + 0.25])

    def factors(s):
        return jnp.linalg.cholesky(s), jnp.linalg.eigvalsh(s), lax.linalg.lu(s), jnp.linalg.solve(s, s[..., :1])

    def sums(v):
        return jnp.cumsum(v, axis=1), lax.cummax(v, axis=0), lax.cumlogsumexp(v, axis=1), lax.reduce_window(
            v, 0.0, lax.add, (v.shape[0], 2), (1, 1), "VALID")

    def loops(v):
        return lax.scan(lambda c, row: (c * 0.5 + row, c.sum()), v[0] * 0, v), lax.map(jnp.sin, v), jnp.vectorize(jnp.sum, signature="(n)->()")(v)

    def bits(v):
        return jax.random.bits(jax.random.wrap_key_data(np.arange(4, dtype=np.uint32), impl="rbg"), v.shape)

    rows = np.random.default_rng(3).normal(size=(4, 5)).astype(f32)
    for name, function, shape, calls, note in (
            ("symbolic_linalg", factors, square, [(spd,), (spd[:1, :2, :2],)], "operands of LAPACK's calls that are shapes"),
            ("symbolic_windows", sums, matrix, [(rows,), (rows[:1, :3],)], "stablehlo.dynamic_reduce_window"),
            ("symbolic_loops", loops, matrix, [(rows,), (rows[:2, :3],)], "rows of a matrix by the number of an iteration"),
            ("symbolic_bits", bits, matrix, [(rows,), (rows[:1, :3],)], "stablehlo.dynamic_rng_bit_generator")):
        write_export(name, export.export(jax.jit(function))(shape), calls, note)


def write_exports():
    f32 = np.float32

    def layer(params, x, unused):
        return {"y": jnp.tanh(x @ params["w"] + params["b"]), "sums": (x.sum(), None, [x.max()])}

    params = {"w": np.arange(12, dtype=f32).reshape(3, 4) / 10, "b": np.ones(4, f32)}
    x = np.arange(6, dtype=f32).reshape(2, 3)
    dropping = jax.jit(layer, keep_unused=False)
    exported = export.export(dropping)(params, x, np.zeros(7, np.int32))
    write_export("trees_and_dropped_arguments", exported, [(params, x, np.zeros(7, np.int32))], "the third argument is not used")

    (b,) = export.symbolic_shape("b")
    exported = export.export(jax.jit(lambda a: a[::-1] - a.sum(axis=0) / a.shape[0]))(jax.ShapeDtypeStruct((b, 3), f32))
    write_export("symbolic_shape", exported, [(np.ones((4, 3), f32),), (np.arange(21, dtype=f32).reshape(7, 3),)], "one program for two shapes")
    m, n = export.symbolic_shape("m, n")
    exported = export.export(jax.jit(lambda a, c: (a @ c, jnp.concatenate([a, c.T]))))(
        jax.ShapeDtypeStruct((m, n), f32), jax.ShapeDtypeStruct((n, m), f32))
    write_export("symbolic_shapes", exported, [(np.arange(6, dtype=f32).reshape(2, 3), np.ones((3, 2), f32))], "two dimension variables")

    write_symbolic_exports()

    def by_platform(a):
        return lax.platform_dependent(a, cpu=lambda v: v + 1, tpu=lambda v: v + 2, default=lambda v: v + 3)

    exported = export.export(jax.jit(by_platform), platforms=["tpu", "cpu", "cuda"])(np.ones(3, f32))
    write_export("platforms", exported, [(np.ones(3, f32),)], "the index of cpu is 1")
    exported = export.export(jax.jit(by_platform), platforms=["tpu", "cpu"])(jax.ShapeDtypeStruct((b, 2), f32))
    write_export("platforms_symbolic", exported, [(np.ones((3, 2), f32),)], "a platform and a dimension variable")
    exported = export.export(jax.jit(by_platform), platforms=["tpu"])(np.ones(3, f32))
    write_export("refused_platform", exported, [], "for tpu alone", refused="unsupported_format")
    exported = export.export(jax.jit(lambda v: v * 2), platforms=["tpu"], disabled_checks=[export.DisabledSafetyCheck.platform()])(np.ones(3, f32))
    case_calls = [(np.ones(3, f32),)]
    write_export("platform_not_checked", exported, [], "for tpu alone, but the platform is not to be checked",
                 own_calls=[{"arguments": nested(list(case_calls[0])), "results": [value(np.full(3, 2, f32))]}])

    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    rows, columns = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "y"))
    exported = export.export(jax.jit(lambda a, c: jnp.tanh(a @ c), in_shardings=(rows, columns), out_shardings=NamedSharding(mesh, P("x", "y"))))(
        jax.ShapeDtypeStruct((8, 16), f32), jax.ShapeDtypeStruct((16, 8), f32))
    random = np.random.default_rng(7)
    a, c = random.normal(size=(8, 16)).astype(f32), random.normal(size=(16, 8)).astype(f32)
    sharded = export.deserialize(exported.serialize())
    write_export("shardings", exported, [], "eight devices, Shardy", own_calls=[
        {"arguments": nested([a, c]), "results": [value(jax.jit(sharded.call)(jax.device_put(a, rows), jax.device_put(c, columns)))]}])
    mapped = jax.jit(jax.shard_map(lambda v: lax.psum(v, "x") + lax.axis_index("y"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y")))
    exported = export.export(mapped)(jax.ShapeDtypeStruct((4, 8), f32))
    v = np.arange(32, dtype=f32).reshape(4, 8)
    write_export("shard_map", exported, [], "a manual computation", own_calls=[{"arguments": nested([v]), "results": [value(mapped(v))]}])

    exported = export.export(jax.jit(lambda s, g: (s - 0.5 * g, (s * g).sum()), donate_argnums=0))(x, x)
    write_export("donated", exported, [(x, x + 1)], "the first argument is given up")

    def draw(key, n):
        return jax.random.normal(key, (5,)) * n

    key = jax.random.key(3)
    exported = export.export(jax.jit(draw))(key, f32(2))
    case = [jax.random.key_data(key), f32(2)]
    write_export("keys", exported, [], "a key is its two words", own_calls=[{"arguments": nested(case), "results": [value(draw(key, f32(2)))]}])

    def factors(s):
        return jnp.linalg.cholesky(s), jnp.linalg.eigvalsh(s)

    spd = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], f32)
    exported = export.export(jax.jit(factors))(spd)
    write_export("lapack", exported, [(spd,)], "custom calls to LAPACK")

    table = np.random.default_rng(1).normal(size=(64, 65)).astype(f32)
    exported = export.export(jax.jit(lambda i: jnp.take(table, i, axis=0)))(np.array([3, 1], np.int32))
    write_export("large_constant", exported, [(np.array([3, 1, ], np.int32),)], "16 KiB of constants")

    def loop(v):
        return lax.fori_loop(0, 5, lambda i, s: jnp.where(s > 0, s * 0.5, s + i), v), lax.cond(v[0] > 0, jnp.sin, jnp.cos, v)

    exported = export.export(jax.jit(loop))(np.array([1, -1, 2], f32))
    write_export("loops", exported, [(np.array([1, -1, 2], f32),)], "while and case")
    exported = export.export(jax.jit(lambda v: (v.astype(jnp.bfloat16) * 3).astype(jnp.float16)))(x)
    write_export("half_floats", exported, [(x,)], "bfloat16 and float16")


def write_all(folder):
    folder.mkdir(parents=True, exist_ok=True)
    counts = {"programs": 0, "not read by jaxlib": 0, "artifacts": 0}
    with open(folder / "pairs.txt", "w") as pairs:
        for path in sources():
            name = hashlib.sha256(str(path).encode()).hexdigest()[:16]
            try:
                artifacts = artifacts_of(path.read_text())
            except Exception:
                counts["not read by jaxlib"] += 1
                continue
            counts["programs"] += 1
            for version, data in artifacts.items():
                file = folder / f"{name}.{version}"
                file.write_bytes(data)
                reference = path
                if version != "bytecode":
                    reference = folder / f"{name}.{version}.mlir"
                    reference.write_text(read_back(data))
                counts["artifacts"] += 1
                pairs.write(f"{reference}\t{file}\n")
    print(counts)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "all":
        write_all(pathlib.Path(sys.argv[2]))
    else:
        write_fixtures()
        write_vhlo()
        write_exports()
