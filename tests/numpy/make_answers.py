"""Makes answers.json: what JAX gives for the programs of programs.py. Run it with a Python that has jax 0.10.2: python3 make_answers.py"""
import functools
import json
import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn, random
from jax.scipy import special

import programs

SCOPE = {"jax": jax, "jnp": jnp, "np": jnp, "lax": lax, "nn": nn, "random": random, "special": special, "functools": functools, "math": math, "partial": functools.partial, "vmap": jax.vmap, "grad": jax.grad, "value_and_grad": jax.value_and_grad}


def is_value(json_value):
    return isinstance(json_value, dict) and "data" in json_value


def leaf(value):
    """An argument as JAX gets it: bare numbers stay Python's."""
    if is_value(value):
        data = np.array(value["data"])
        if value["dtype"].startswith("complex"):
            data = np.ascontiguousarray(data, np.float64).view(np.complex128)[..., 0]  # not by arithmetic: NaN stays in its part
        return jnp.array(data.astype(jnp.dtype(value["dtype"])) if value["dtype"] != "bfloat16" else jnp.array(data, jnp.bfloat16))
    if isinstance(value, dict):
        return {name: leaf(item) for name, item in value.items()}
    if isinstance(value, list):
        return jnp.array(json.loads(json.dumps(value).replace('"NaN"', "NaN").replace('"Infinity"', "Infinity").replace('"-Infinity"', "-Infinity")))
    return value


def plain(x):
    """Elements as JSON: numbers, "NaN" and so on, [re, im]."""
    if isinstance(x, complex):
        return [plain(x.real), plain(x.imag)]
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else ("Infinity" if x > 0 else "-Infinity")
    return x


def answer(value):
    array = np.asarray(value)
    wide = array.astype(np.float64) if array.dtype.name in ("bfloat16", "float16") else array
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": [plain(x) for x in wide.ravel().tolist()]}


def run(source, arguments, options):
    scope = dict(SCOPE)
    text = programs.text_of(options.get("twin", source), arguments, options)
    exec(text, scope)
    names = [name for name in scope if name not in SCOPE and callable(scope[name]) and not name.startswith("__")]
    function = scope["main"] if "main" in names else scope[names[-1] if "f" not in names else "f"]
    parameters = function.__wrapped__ if hasattr(function, "__wrapped__") else function
    names = parameters.__code__.co_varnames[: parameters.__code__.co_argcount + parameters.__code__.co_kwonlyargcount]
    static = {(names[int(key)] if key.isdigit() else key): value for key, value in options.get("static", {}).items()}
    if hasattr(function, "__wrapped__"):
        return function(*[leaf(value) if not isinstance(value, int) else value for value in arguments])
    keywords = {name: leaf(value) for name, value in options.get("keywords", {}).items()}
    return jax.jit(functools.partial(function, **static))(*[leaf(value) for value in arguments], **keywords)


def main():
    answers = {}
    for number, (name, source, arguments, options) in enumerate(programs.CASES):
        if "refused" in options:
            continue
        try:
            result = run(source, arguments, options)
        except Exception as error:  # which case it was
            print(f"{number} {name}: {type(error).__name__}: {str(error)[:200]}")
            continue
        answers[str(number)] = {"name": name, "results": [answer(x) for x in jax.tree.leaves(result)]}
    path = pathlib.Path(__file__).with_name("answers.json")
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in answers.items())
    path.write_text("{\n" + lines + "\n}\n")
    print(f"{len(answers)} answers of jax {jax.__version__}")


if __name__ == "__main__":
    main()
