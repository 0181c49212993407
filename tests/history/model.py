"""What the programs of the histories compute, by numpy, and what an array is after each of them."""
import numpy

GONE, LOST = "donated", "lost"


def product_of(seed):
    """The arguments of a product: int32[8,4] and int32[4,8]."""
    random = numpy.random.default_rng(seed)
    return random.integers(-1000, 1000, (8, 4), dtype=numpy.int32), random.integers(-1000, 1000, (4, 8), dtype=numpy.int32)


def reference(seed):
    x, w = product_of(seed)
    return (x @ w).tolist()


def updated(value, amount):
    return tuple((numpy.array(value, numpy.int32) + numpy.int32(amount)).tolist())


def donated(value, amount):
    return tuple((numpy.array(value, numpy.int32) * numpy.int32(2) + numpy.int32(amount)).tolist())


def after_job(state, what):
    """An array's state is None (not made), LOST (never will be), GONE, or (value, version); the value of what was never read is None."""
    kind, *rest = what
    if kind == "create":
        return ((rest[0], 1),) if state is None else None
    if kind == "lost":
        return (LOST,) if state in (None, LOST) else None
    if kind == "read":
        if rest[0] is None:
            return (state,) if state == GONE else None
        return (state,) if state not in (None, GONE, LOST) and state[0] == rest[0] else None
    if state in (None, GONE, LOST):
        return None
    value, version = state
    if kind == "update":
        amount, old, made = rest
        fits = old in (None, value) and made in (None, version + 1)
        return ((updated(value, amount), version + 1),) if fits else None
    amount, made = rest
    return (GONE,) if made is None or value is None or made == donated(value, amount) else None
