"""Makes gradients/: what jax.vjp gives for the programs of programs/, for float32 and complex64 cases of ops/, and for functions of jax.lax
at points where they have no slope, or none that is a number (POINTS).

Run: python make/gradients.py programs|ops|points [-k WORD]
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
from jax.scipy import special

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 24_000  # bytes of all cotangents and gradients of a case
CUSTOM = {
    "adamw_bf16_master": "a gradient rounded to bfloat16 may be zero, where the square root of its square has none",
    "batched_branches": "the branches that were not taken are kept from the derivative by stop_gradient",
    "custom_derivatives": "custom_vjp, custom_jvp, stop_gradient",
}
CLOSE = {"float64": (1e-9, 1e-10), "complex128": (1e-9, 1e-10), "float32": (5e-4, 5e-5), "complex64": (5e-4, 5e-5),
         "float16": (2e-2, 2e-2), "bfloat16": (5e-2, 5e-2)}

INF, NAN = np.inf, np.nan
NUMBERS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, INF, -INF, NAN, 1e-30], np.float32)
PAIRS = [np.array(side, np.float32) for side in ([0, 0, 0, 0, 0, 1, -1, 2, -2, INF, 1, -0.0, 3, NAN, 1, INF, 2],
                                                 [0, 1, 2, -1, 0.5, 0, 0, 0, 2, 0, INF, 1, 3, 1, NAN, INF, 0])]
COMPLEXES = np.array([0, 1, -1, 1j, -1j, 3 + 4j, -2 - 1j, 0.5 - 0.5j], np.complex64)
TIES = np.array([[2, 2, -1, 0, 2], [0, 0, 0, 0, 0], [INF, 1, INF, -INF, 3]], np.float32)
LINE, OUTSIDE = np.array([1, -2, 3, 0.5, 4], np.float32), np.array([0, 5, -1, -7, 4], np.int32)
WHOLE = np.array([0, 1, 2, -1, 0, 3, 0, 2, 2, 0, 0], np.int32)
# By case: functions, each with arguments of its own.
POINTS = {
    "numbers": [(f, (NUMBERS,)) for f in (
        lax.abs, lax.sign, lax.exp, lax.expm1, lax.log, lax.log1p, lax.sqrt, lax.rsqrt, lax.cbrt, lax.sin, lax.tan, lax.asin, lax.acos, lax.atan,
        lax.asinh, lax.acosh, lax.atanh, lax.tanh, lax.square, lax.floor, lax.round, lax.erf, lax.lgamma, lax.is_finite,
        lambda x: 1 / x, lambda x: x ** 2, lambda x: x ** 3, lambda x: lax.clamp(-1.0, x, 1.0), lambda x: lax.clamp(1.0, x, -1.0),
        lambda x: lax.pow(x, jnp.zeros_like(x)), lambda x: lax.pow(x, WHOLE), lambda x: lax.pow(jnp.full_like(x, 0.0), x),
        lambda x: jnp.where(x > 0, jnp.sqrt(x), 0), lambda x: jnp.abs(x) ** 1.5, lambda x: jnp.hypot(x, 0.0))],
    "pairs": [(f, tuple(PAIRS)) for f in (lax.max, lax.min, lax.pow, lax.div, lax.atan2, lax.rem, lambda x, y: jnp.abs(x - y), jnp.hypot)],
    "complexes": [(f, (COMPLEXES[1:],)) for f in (lax.abs, lambda x: 1 / x, lax.square, lax.conj)] + [(lax.abs, (COMPLEXES,))],
    "ties": [(f, (TIES,)) for f in (
        lambda x: jnp.max(x, 1), lambda x: jnp.min(x, 1), lambda x: jnp.sort(x, 1), lambda x: lax.top_k(x, 2)[0], lambda x: jnp.sum(jnp.abs(x), 1),
        lambda x: special.logsumexp(x[:2], 1), lambda x: jnp.median(x[:2], 1))],
    "outside": [(f, (LINE,)) for f in (
        lambda x: jnp.take(x, OUTSIDE), lambda x: jnp.take(x, OUTSIDE, mode="clip"), lambda x: jnp.take(x, OUTSIDE, mode="wrap"),
        lambda x: x.at[OUTSIDE].get(mode="clip"), lambda x: x.at[OUTSIDE].get(mode="fill", fill_value=0.0),
        lambda x: x.at[OUTSIDE].set(x), lambda x: x.at[OUTSIDE].add(x), lambda x: x.at[OUTSIDE].add(x, mode="clip"),
        lambda x: x.at[OUTSIDE].max(x), lambda x: lax.dynamic_slice(x, (4,), (3,)),
        lambda x: jax.vmap(lambda i: lax.dynamic_slice(x, (i,), (2,)))(OUTSIDE))],
}


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


def points(word):
    """Each function of a case takes and gives arrays of its own, so that no two gradients meet. Texts and values are in the documents."""
    (case.ROOT / "gradients" / "points").mkdir(parents=True, exist_ok=True)
    for name, functions in POINTS.items():
        values = [jnp.asarray(argument) for _, arguments in functions for argument in arguments]

        def all_of(*given):
            rest = iter(given)
            return [function(*[next(rest) for _ in arguments]) for function, arguments in functions]

        if word not in name:
            continue
        wanted = list(range(len(values)))
        results, cotangents, gradients = differentiate(lambda now: all_of(*now), values, wanted)
        document = {"case": f"gradients/points/{name}", "text": jax.jit(all_of, keep_unused=True).lower(*values).as_text(),
                    "values": [case.value(np.asarray(v)) for v in values], "arguments": wanted, "results": results,
                    "cotangents": [case.value(c) for c in cotangents],
                    "gradients": [{"value": case.value(g), "compare": compare_for(g)} for g in gradients]}
        (case.ROOT / "gradients" / "points" / f"{name}.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")
        print(f"{name}: {len(functions)} functions")


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
    parser.add_argument("kind", choices=["programs", "ops", "points"], help="each in a run of its own: one has x64 on")
    parser.add_argument("-k", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.kind == "points":
        return points(options.k)
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
