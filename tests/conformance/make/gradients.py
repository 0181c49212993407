"""Makes gradients/: what jax.vjp gives for the programs of programs/ and for float32 and complex64 cases of ops/.

Run: python make/gradients.py [-k WORD]
A case names a text of programs/ or ops/, the arguments and results that are differentiated, cotangents (normal, by a fixed seed) and
JAX's gradients. The functions are differentiated without shardings: JAX 0.10.2 partitions some gradients wrongly, and the answer must
not depend on shardings. Left out: programs with custom derivatives or stop_gradient, which a text does not have (CUSTOM says which).
"""
import argparse
import collections
import json
import pathlib
import warnings

import numpy as np

import case
import jax
import jax.numpy as jnp
from jax import lax

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 24_000  # bytes of all cotangents and gradients of a case
CUSTOM = {
    "adamw_bf16_master": "a gradient rounded to bfloat16 may be zero, where the square root of its square has none",
    "batched_branches": "the branches that were not taken are kept from the derivative by stop_gradient",
    "custom_derivatives": "custom_vjp, custom_jvp, stop_gradient",
}
CLOSE = {"float64": (1e-9, 1e-10), "complex128": (1e-9, 1e-10), "float32": (5e-4, 5e-5), "complex64": (5e-4, 5e-5),
         "float16": (2e-2, 2e-2), "bfloat16": (5e-2, 5e-2)}


def has_derivative(leaf):
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact)


def cotangent(like, rng):
    parts = rng.standard_normal(like.shape)
    if jnp.issubdtype(like.dtype, jnp.complexfloating):
        parts = parts + 1j * rng.standard_normal(like.shape)
    return np.asarray(parts).astype(like.dtype)


def compare_for(gradient):
    rtol, atol = CLOSE.get(str(gradient.dtype), (0.3, 0.1))  # eight bits and fewer
    finite = np.abs(np.asarray(gradient, np.complex128))
    finite = finite[np.isfinite(finite)]
    return case.close(rtol, atol * (float(finite.max()) if finite.size else 1.0))


def differentiate(function, leaves, wanted):
    """(results that have derivatives, cotangents, gradients) of function(*leaves) -> list of leaves."""
    def chosen(*values):
        now = list(leaves)
        for i, v in zip(wanted, values):
            now[i] = v
        return [r for r in function(now) if has_derivative(r)]

    outs = jax.eval_shape(lambda: function(list(leaves)))
    results = [i for i, r in enumerate(outs) if has_derivative(r)]
    rng = np.random.default_rng(0)
    cotangents = [cotangent(outs[i], rng) for i in results]
    _, pull = jax.vjp(chosen, *[leaves[i] for i in wanted])
    return results, cotangents, [np.asarray(g) for g in pull([jnp.asarray(c) for c in cotangents])]


def write(kind, name, arguments, results, cotangents, gradients):
    if sum(a.nbytes for a in cotangents + gradients) > LIMIT or not all(np.isfinite(np.asarray(g, np.complex128)).all() for g in gradients):
        return False
    target = case.ROOT / "gradients" / kind
    target.mkdir(parents=True, exist_ok=True)
    document = {"case": f"{kind}/{name}", "arguments": arguments, "results": results,
                "cotangents": [case.value(c) for c in cotangents],
                "gradients": [{"value": case.value(g), "compare": compare_for(g)} for g in gradients]}
    (target / f"{pathlib.PurePath(name).name}.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")
    return True


def without_shardings():
    """jax.jit and with_sharding_constraint that forget shardings; to be called before programs are imported."""
    lax.with_sharding_constraint = lambda x, *_: x
    jitted = jax.jit

    def jit(function=None, **options):
        options = {k: v for k, v in options.items() if k not in ("in_shardings", "out_shardings")}
        return jitted(function, **options) if function is not None else lambda f: jitted(f, **options)

    jax.jit = jit


def programs(word):
    without_shardings()
    import program
    for path in sorted(HERE.glob("programs_*.py")):
        __import__(path.stem)
    for name, builder in sorted(program.PROGRAMS.items()):
        if word not in name or name in CUSTOM:
            continue
        spec = builder()
        with spec.context():
            dynamic, named = spec.dynamic()
            leaves, tree = jax.tree.flatten((dynamic, named))
            kept = sorted(spec.function.lower(*spec.args, **spec.kwargs)._lowering.compile_args["kept_var_idx"])
            wanted = [i for i, leaf in enumerate(leaves) if i in kept and not program.is_key(leaf) and has_derivative(leaf)]

            def function(values):
                positional, by_name = jax.tree.unflatten(tree, values)
                rest = iter(positional)
                args = [a if i in spec.static else next(rest) for i, a in enumerate(spec.args)]
                return jax.tree.leaves(spec.function(*args, **{**spec.kwargs, **by_name}))

            if wanted:
                yield "programs", name, [kept.index(i) for i in wanted], lambda: differentiate(function, leaves, wanted)


def ops(word):
    import ops as made  # turns x64 on
    groups = collections.defaultdict(list)
    for harness in made.test_harnesses.all_harnesses:
        if not any(limit.filter(device="cpu", dtype=harness.dtype) for limit in harness.jax_unimplemented):
            groups[harness.group_name].append(harness)
    for group, harnesses in sorted(groups.items()):
        harnesses.sort(key=lambda h: made.rank(h.fullname))
        for harness in harnesses[:8]:
            path = case.ROOT / "ops" / group / (made.file_name(harness) + ".mlir")
            if word not in group or group == "stop_gradient" or group in made.FREE_RESULTS or harness.dtype not in (np.float32, np.complex64) or not path.exists():
                continue
            if group in ("min", "max") and harness.dtype == np.complex64:
                continue  # comparisons and selections in the text, where JAX shares the cotangent of equal numbers
            args = harness.dyn_args_maker(np.random.RandomState(int(made.rank(harness.fullname)[:8], 16)))
            leaves, tree = jax.tree.flatten(args)
            wanted = [i for i, leaf in enumerate(leaves) if has_derivative(np.asarray(leaf))]
            if wanted:
                yield "ops", f"{group}/{path.stem}", wanted, lambda: differentiate(
                    lambda values: jax.tree.leaves(harness.dyn_fun(*jax.tree.unflatten(tree, values))), leaves, wanted)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["programs", "ops"], help="each in a run of its own: one has x64 on")
    parser.add_argument("-k", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = {"programs": programs, "ops": ops}[options.kind](options.k)
    written, left_out = 0, []
    for kind, name, arguments, make in cases:
        try:
            made = make()
        except Exception:  # JAX has no derivative of it
            left_out.append(name)
            continue
        written += bool(made[0]) and write(kind, name, arguments, *made)
    print(f"{written} cases; without a derivative in JAX: {' '.join(left_out)}")


if __name__ == "__main__":
    main()
