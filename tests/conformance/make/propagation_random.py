"""Random small modules: does a running meshd give every value the sharding that Shardy gives it, and move no more bytes?

    python make/propagation_random.py --url http://127.0.0.1:8080 [--seed 1] [--count 200] [--keep DIR]

Each module has two to six ops of the common kinds over a few annotated arguments, sometimes a constraint, on one of several meshes.
Texts that Shardy does not take are left out. What differs is named with the seed that makes it again, and kept as a case in DIR.
Needs JAX, as propagation.py does.
"""
import argparse
import http.client
import json
import pathlib
import random
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))
import explain  # noqa: E402
from propagation_passes import Refused, Shardy  # noqa: E402
from propagation_text import Module  # noqa: E402

MESHES = {"x=2,y=4": "xy", "x=4,y=2": "xy", "x=2,y=2,z=2": "xyz", "x=8": "x"}
SIZES = (4, 8, 8, 16, 16, 32)


class Maker:
    """One module from one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        mesh = self.random.choice(sorted(MESHES))
        self.sizes = {part.split("=")[0]: int(part.split("=")[1]) for part in mesh.split(",")}
        self.module = Module(mesh)
        self.values = [self.argument() for _ in range(self.random.randint(1, 3))]

    def annotation(self, shape):
        """Axes dealt out to dimensions that they divide; open dimensions more often than closed ones."""
        axes, dims = list(self.sizes), []
        self.random.shuffle(axes)
        for size in shape:
            mine = []
            while axes and self.random.random() < 0.45 and size % self.sizes[axes[-1]] == 0:
                size //= self.sizes[axes[-1]]
                mine.append(axes.pop())
            dims.append(" ".join(mine + ["?"] * (self.random.random() < 0.6)) or "-")
        return ",".join(dims)

    def argument(self, shape=None, dtype="f32", annotated=0.75):
        if shape is None:
            shape = tuple(self.random.choice(SIZES) for _ in range(self.random.randint(1, 3)))
        note = self.annotation(shape) if shape and self.random.random() < annotated else None
        return self.module.argument("x".join([*map(str, shape), dtype]), note)

    def pick(self, rank=None):
        found = [v for v in self.values if rank is None or len(v.shape) >= rank]
        return self.random.choice(found) if found else self.argument(tuple(self.random.choice(SIZES) for _ in range(rank)))

    def partner(self, shape):
        """Another value of this shape, made where there is none."""
        found = [v for v in self.values if v.shape == shape]
        return self.random.choice(found) if found and self.random.random() < 0.7 else self.argument(shape, annotated=0.5)

    # Ops: each takes values that are there and gives one or none.

    def elementwise(self):
        a = self.pick()
        return self.module.binary(self.random.choice(["add", "multiply", "maximum"]), a, self.partner(a.shape))

    def unary(self):
        return self.module.unary(self.random.choice(["tanh", "negate", "exponential"]), self.pick())

    def transpose(self):
        a = self.pick(2)
        order = list(range(len(a.shape)))
        self.random.shuffle(order)
        return self.module.transpose(a, order)

    def dot(self):
        a = self.pick(2)
        d = self.random.randrange(len(a.shape))
        b = self.partner((a.shape[d], self.random.choice(SIZES)))
        return self.module.dot_general(a, b, contract=((d,), (0,)))

    def batched_dot(self):
        a = self.pick(3)
        b = self.partner((a.shape[0], a.shape[2], self.random.choice(SIZES)))
        return self.module.dot_general(a, b, batch=((0,), (0,)), contract=((2,), (1,)))

    def reduce(self):
        a = self.pick(1)
        dims = self.random.sample(range(len(a.shape)), self.random.randint(1, max(1, len(a.shape) - 1)))
        return self.module.reduce([a], sorted(dims), self.random.choice(["add", "maximum"]))

    def broadcast(self):
        a = self.pick()
        if len(a.shape) > 2:
            return None
        at = self.random.randint(0, len(a.shape))
        shape = a.shape[:at] + (self.random.choice(SIZES),) + a.shape[at:]
        return self.module.broadcast(a, shape, [d + (d >= at) for d in range(len(a.shape))])

    def reshape(self):
        a = self.pick()
        if len(a.shape) >= 2 and self.random.random() < 0.5:
            d = self.random.randrange(len(a.shape) - 1)
            return self.module.reshape(a, a.shape[:d] + (a.shape[d] * a.shape[d + 1],) + a.shape[d + 2:])
        d = self.random.randrange(len(a.shape))
        factor = self.random.choice([2, 4])
        if a.shape[d] % factor or len(a.shape) > 3:
            return None
        parts = (factor, a.shape[d] // factor)
        return self.module.reshape(a, a.shape[:d] + (parts if self.random.random() < 0.5 else parts[::-1]) + a.shape[d + 1:])

    def concatenate(self):
        a = self.pick()
        return self.module.concatenate([a, self.partner(a.shape)], self.random.randrange(len(a.shape)))

    def slice(self):
        a = self.pick()
        d = self.random.randrange(len(a.shape))
        start = self.random.choice([0, a.shape[d] // 2])
        return self.module.slice(a, [start if i == d else 0 for i in range(len(a.shape))],
                                 [start + a.shape[d] // 2 if i == d else n for i, n in enumerate(a.shape)])

    def pad(self):
        a = self.pick()
        d = self.random.randrange(len(a.shape))
        return self.module.pad(a, [0] * len(a.shape), [a.shape[d] * (i == d) for i in range(len(a.shape))])

    def reverse(self):
        a = self.pick()
        return self.module.reverse(a, [self.random.randrange(len(a.shape))])

    def sort(self):
        a = self.pick()
        return self.module.sort([a], self.random.randrange(len(a.shape)))

    def rows(self):
        a = self.pick(2)
        indices = self.argument((self.random.choice(SIZES), 1), "i32")
        return self.module.gather(a, indices, [1, *a.shape[1:]], offset=range(1, len(a.shape)), collapsed=[0], start_map=[0],
                                  index_vector_dim=1)

    def add_rows(self):
        a = self.pick(2)
        count = self.random.choice(SIZES)
        indices = self.argument((count, 1), "i32")
        return self.module.scatter([a], indices, [self.partner((count, *a.shape[1:]))], window=range(1, len(a.shape)), inserted=[0],
                                   scatter_map=[0], index_vector_dim=1)

    def dynamic_slice(self):
        a = self.pick()
        d = self.random.randrange(len(a.shape))
        starts = [self.module.constant("i32", "0") for _ in a.shape]
        return self.module.dynamic_slice(a, starts, [n // 2 if i == d else n for i, n in enumerate(a.shape)])

    def dynamic_update(self):
        a = self.pick()
        d = self.random.randrange(len(a.shape))
        update = self.partner(tuple(n // 2 if i == d else n for i, n in enumerate(a.shape)))
        at = self.argument((), "i32")
        return self.module.dynamic_update_slice(a, update, [at for _ in a.shape])

    def constant_update(self):
        a = self.pick()
        d = self.random.randrange(len(a.shape))
        update = self.partner(tuple(n // 2 if i == d else n for i, n in enumerate(a.shape)))
        starts = [self.module.constant("i32", str(n // 4 if i == d else 0)) for i, n in enumerate(a.shape)]
        return self.module.dynamic_update_slice(a, update, starts)

    def batched_rows(self):
        a = self.pick(2)
        indices = self.argument((a.shape[0], self.random.choice(SIZES), 1), "i32")
        return self.module.gather(a, indices, [1, 1, *a.shape[2:]], offset=range(2, len(a.shape)), collapsed=[1], start_map=[1],
                                  operand_batch=[0], indices_batch=[0], index_vector_dim=2)

    def replace_rows(self):
        a = self.pick(2)
        count = self.random.choice(SIZES)
        indices = self.argument((count, 1), "i32")
        return self.module.scatter([a], indices, [self.partner((count, *a.shape[1:]))], window=range(1, len(a.shape)), inserted=[0],
                                   scatter_map=[0], index_vector_dim=1, name=self.random.choice([None, "maximum", "multiply"]))

    def masked(self):
        a = self.pick()
        shape = "x".join(map(str, a.shape))
        rows = self.module.iota(f"{shape}xi32", self.random.randrange(len(a.shape)))
        limit = self.module.broadcast(self.module.constant("i32", "3"), a.shape, [])
        return self.module.select(self.module.compare(rows, limit), a, self.partner(a.shape))

    def two_sums(self):
        a = self.pick()
        return self.module.reduce([a, self.partner(a.shape)], [self.random.randrange(len(a.shape))])

    def softmax(self):
        a = self.pick(2)
        d = len(a.shape) - 1
        dims = list(range(d))
        top = self.module.reduce([a], [d], "maximum")
        top = top[0] if isinstance(top, list) else top
        e = self.module.unary("exponential", self.module.binary("subtract", a, self.module.broadcast(top, a.shape, dims)))
        total = self.module.reduce([e], [d])
        total = total[0] if isinstance(total, list) else total
        return self.module.binary("divide", e, self.module.broadcast(total, a.shape, dims))

    def sort_two(self):
        a = self.pick()
        return self.module.sort([a, self.partner(a.shape)], self.random.randrange(len(a.shape)))

    def cholesky(self):
        found = [v for v in self.values if len(v.shape) >= 2 and v.shape[-1] == v.shape[-2]]
        return self.module.cholesky(self.random.choice(found)) if found else None

    def pool(self):
        a = self.pick(2)
        window = [1] * (len(a.shape) - 1) + [2]
        return self.module.reduce_window(a, window, strides=window)

    def convolution(self):
        batch, width, features, outputs = (self.random.choice(SIZES) for _ in range(4))
        groups = self.random.choice([1, 1, 2])
        kernel = self.partner((3, features // groups, outputs))
        return self.module.convolution(self.partner((batch, width, features)), kernel, labels="[b, 0, f]x[0, i, o]->[b, 0, f]",
                                       padding=[(1, 1)], feature_groups=groups)

    def loop(self):
        a = self.pick()
        t, n, m = a.type, self.module.fresh(), self.module
        body = self.random.choice(["%y = stablehlo.tanh %v", f"%y = stablehlo.add %v, {self.partner(a.shape).name}"])
        zero = m.constant("i32", "0")
        m.line(f"{n}:2 = stablehlo.while(%v = {a.name}, %i = {zero.name}) : {t}, tensor<i32> cond {{")
        m.line("%c = stablehlo.constant dense<4> : tensor<i32>")
        m.line("%q = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>")
        m.line("stablehlo.return %q : tensor<i1>")
        m.line("} do {")
        m.line("%c = stablehlo.constant dense<1> : tensor<i32>")
        m.line("%j = stablehlo.add %i, %c : tensor<i32>")
        m.line(f"{body} : {t}")
        m.line(f"stablehlo.return %y, %j : {t}, tensor<i32>")
        m.line("}")
        return type(a)(f"{n}#0", t)

    def constraint(self):
        a = self.pick()
        return self.module.constraint(a, self.annotation(a.shape))

    def text(self):
        kinds = [self.elementwise, self.elementwise, self.unary, self.transpose, self.dot, self.dot, self.batched_dot, self.reduce,
                 self.broadcast, self.reshape, self.concatenate, self.slice, self.pad, self.reverse, self.sort, self.rows,
                 self.add_rows, self.dynamic_slice, self.dynamic_update, self.constraint, self.constant_update, self.batched_rows,
                 self.replace_rows, self.masked, self.two_sums, self.softmax, self.sort_two, self.cholesky, self.pool, self.loop,
                 self.convolution]
        arguments = set(self.values)
        for _ in range(self.random.randint(2, 6)):
            made = self.random.choice(kinds)()
            made = made[0] if isinstance(made, (list, tuple)) and made else made
            if made is not None and made.type.dtype == "f32" and made.shape:
                self.values.append(made)
        made = [v for v in self.values if v not in arguments]
        results = [made[-1]] + [v for v in made[:-1] if self.random.random() < 0.3] if made else [self.values[0]]
        return self.module.text(*results, shardings=[self.annotation(r.shape) if self.random.random() < 0.3 else None for r in results])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--keep", metavar="DIR", type=pathlib.Path)
    options = parser.parse_args()
    url = urllib.parse.urlsplit(options.url)
    connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=120)

    def post(path, body):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data) if data else {}

    tried, refused, differ, more = 0, 0, 0, 0
    with Shardy() as shardy:
        for seed in range(options.seed, options.seed + options.count):
            text = Maker(seed).text()
            try:
                case = shardy.run(text)
            except (Refused, RuntimeError):
                refused += 1
                continue
            case.pop("texts", None)
            tried += 1
            status, made = post("/v1/programs", {"format": "stablehlo", "text": text})
            if status < 300:
                status, made = post(f"/v1/programs/{made['id']}:explain", {})
            problem, moved, allowed = (f"HTTP {status}: {made.get('detail')}", 0, 0) if status >= 300 else explain.compare(case, made)
            differ += problem is not None
            more += moved > allowed
            if problem:
                print(f"DIFFERS seed {seed}: {problem}")
            if moved > allowed:
                print(f"MOVES MORE seed {seed}: {moved} bytes, Shardy {allowed}")
            if options.keep and (problem or moved > allowed):
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"seed_{seed}.mlir").write_text(text)
                (options.keep / f"seed_{seed}.json").write_text(json.dumps({"name": f"seed_{seed}", **case}, indent=1))
    print(f"{tried} modules, {refused} not taken by Shardy: {differ} have other shardings, {more} move more")
    return 1 if differ or more or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
