"""Random ops of the plain kinds, written into one scope: @main, a called function, a region, or a manual computation's body.

Each op takes values that the scope has and gives one or none; a value that is missing becomes a parameter of the scope. What opens
scopes of its own is in propagation_random_nested.py.
"""
from propagation_text import Tensor, Value

SIZES = (4, 8, 8, 16, 16, 32)


class Scope:
    """`axes`: name -> size of the mesh axes that annotations may use here."""

    def __init__(self, program, axes):
        self.program, self.random, self.module = program, program.random, program.module
        self.axes, self.values = dict(axes), []

    # Annotations

    def pieces(self):
        """Every axis, or two parts of it: (text, size)."""
        found = []
        for name, size in self.axes.items():
            if size >= 4 and self.random.random() < 0.12:
                found += [(f"{name}:(1)2", 2), (f"{name}:(2){size // 2}", size // 2)]
            else:
                found.append((name, size))
        self.random.shuffle(found)
        return found

    def annotation(self, shape, priorities=False, rest=True):
        """Axes dealt out to dimensions, mostly such that they divide; open dimensions more often than closed ones."""
        left, dims = self.pieces(), []
        for size in shape:
            mine = []
            while left and self.random.random() < 0.45 and (size % left[-1][1] == 0 or self.random.random() < 0.04):
                if mine and left[-1][0].split(":")[0] == mine[-1].split(":")[0]:
                    break  # two parts of one axis side by side would be one
                size = -(-size // left[-1][1])
                mine.append(left.pop()[0])
            is_open = self.random.random() < 0.6
            dim = " ".join(mine + ["?"] * is_open) or "-"
            if priorities and dim != "-" and self.random.random() < 0.15:
                dim += f" p{self.random.randint(1, 2)}"
            dims.append(dim)
        tail = ""
        if rest and left and self.random.random() < 0.12:
            tail = f"; {self.random.choice(['replicated', 'replicated', 'unreduced'])} {left[0][0]}"
        return ",".join(dims) + tail

    def sometimes(self, shape, chance):
        return self.annotation(shape) if shape and self.axes and self.random.random() < chance else None

    # Values

    def new_parameter(self, type_, annotated):
        """A value that comes from outside of the scope."""
        raise NotImplementedError

    def argument(self, shape=None, dtype="f32", annotated=0.75):
        if shape is None:
            shape = tuple(self.random.choice(SIZES) for _ in range(self.random.randint(1, 3)))
        value = self.new_parameter(Tensor(tuple(shape), dtype), annotated)
        if shape and dtype == "f32":
            self.values.append(value)
        return value

    def pick(self, rank=1):
        found = [v for v in self.values if len(v.shape) >= rank]
        return self.random.choice(found[::-1]) if found else self.argument(tuple(self.random.choice(SIZES) for _ in range(rank)))

    def partner(self, shape, dtype="f32"):
        """Another value of this shape, made where there is none."""
        found = [v for v in self.values if v.shape == tuple(shape) and v.type.dtype == dtype]
        return self.random.choice(found[::-1]) if found and self.random.random() < 0.7 else self.argument(shape, dtype, 0.5)

    # Ops

    def elementwise(self):
        a = self.pick()
        b = self.partner(a.shape)
        return self.module.binary(self.random.choice(["add", "multiply", "maximum"]), a, b, self.sometimes(a.shape, 0.05))

    def unary(self):
        a = self.pick()
        return self.module.unary(self.random.choice(["tanh", "negate", "exponential"]), a, s=self.sometimes(a.shape, 0.05))

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
        if a.shape[d] < 2:
            return None
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
        return self.module.dynamic_slice(a, starts, [max(n // 2, 1) if i == d else n for i, n in enumerate(a.shape)])

    def dynamic_update(self):
        a = self.pick()
        d = self.random.randrange(len(a.shape))
        update = self.partner(tuple(max(n // 2, 1) if i == d else n for i, n in enumerate(a.shape)))
        at = self.argument((), "i32")
        return self.module.dynamic_update_slice(a, update, [at for _ in a.shape])

    def constant_update(self):
        a = self.pick()
        d = self.random.randrange(len(a.shape))
        update = self.partner(tuple(max(n // 2, 1) if i == d else n for i, n in enumerate(a.shape)))
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
        if a.shape[-1] < 2:
            return None
        window = [1] * (len(a.shape) - 1) + [2]
        return self.module.reduce_window(a, window, strides=window)

    def convolution(self):
        batch, width, features, outputs = (self.random.choice(SIZES) for _ in range(4))
        groups = self.random.choice([1, 1, 2])
        kernel = self.partner((3, features // groups, outputs))
        return self.module.convolution(self.partner((batch, width, features)), kernel, labels="[b, 0, f]x[0, i, o]->[b, 0, f]",
                                       padding=[(1, 1)], feature_groups=groups)


    def constraint(self):
        a = self.pick()
        return self.module.constraint(a, self.annotation(a.shape))

    def barrier(self):
        a = self.pick()
        return self.module.propagation_barrier(a, self.random.choice(["NONE", "FORWARD", "BACKWARD"]))

    def two_at_once(self):
        a = self.pick()
        return self.module.barrier([a, self.pick()])

    def plain_kinds(self):
        return [self.unary, self.elementwise, self.elementwise, self.transpose, self.dot, self.dot, self.batched_dot, self.reduce,
                self.broadcast, self.reshape, self.reshape, self.concatenate, self.slice, self.pad, self.reverse, self.sort,
                self.rows, self.add_rows, self.dynamic_slice, self.dynamic_update, self.constraint, self.constant_update,
                self.batched_rows, self.replace_rows, self.masked, self.two_sums, self.softmax, self.sort_two, self.cholesky,
                self.pool, self.convolution, self.barrier, self.two_at_once]

    def kinds(self):
        return self.plain_kinds()

    def write(self, count):
        """Appends ops; gives the values that they made, the newest last."""
        made = []
        for _ in range(count):
            new = self.random.choice(self.kinds())()
            for value in new if isinstance(new, (list, tuple)) else [new]:
                if isinstance(value, Value) and value.type.dtype == "f32" and value.shape:
                    self.values.append(value)
                    made.append(value)
        return made
