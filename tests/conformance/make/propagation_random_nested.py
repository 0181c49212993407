"""Random modules with scopes in scopes: called functions (shared ones too), loops, branches, manual computations.

    text = Program(Choices(seed=7)).text()
"""
import math

from propagation_random_scope import SIZES, Scope
from propagation_text import Module, Tensor, Value, sharding

MESHES = ("x=2,y=4", "x=4,y=2", "x=2,y=2,z=2", "x=8", "x=8,y=2", "x=4,y=4", "x=2,y=4,z=2")
DEPTH = 3


class Nesting(Scope):
    """A scope whose ops may open further ones."""

    def __init__(self, program, axes, depth):
        super().__init__(program, axes)
        self.depth = depth

    def kinds(self):
        plain = self.plain_kinds()
        if self.depth >= DEPTH:
            return plain
        # About one op in four opens a scope, whatever the count of plain kinds is.
        opening = [self.call, self.call, self.call, self.loop, self.case] + [self.manual] * 3 * bool(self.axes)
        return plain if self.random.random() < 1 - self.program.nesting else opening

    def steps(self):
        return self.random.randint(1, 3)

    def outcomes(self, made, count):
        """Values to hand back: of those just made, the newest first, else any."""
        made = made[::-1] or [self.pick()]
        return [self.random.choice(made) for _ in range(count)]

    # Regions: they see the values around them.

    def loop(self):
        carried = [self.pick() for _ in range(self.random.randint(1, 2))]
        module, n = self.module, self.module.fresh()
        types = ", ".join(str(v.type) for v in carried)
        inside = [Value(f"{n}i{i}", v.type) for i, v in enumerate(carried)]
        with module.block() as lines:
            scope = Region(self)
            scope.values += inside
            made = scope.write(self.steps())
            next_ = []
            for v in inside:
                fitting = [m for m in made[::-1] if m.shape == v.shape]
                next_.append(self.random.choice(fitting) if fitting else module.unary("tanh", v))
        zero = module.constant("i32", "0")
        entries = ", ".join(f"{i.name} = {v.name}" for i, v in zip(inside, carried))
        module.line(f"{n}:{len(carried) + 1} = stablehlo.while({entries}, {n}c = {zero.name}) : {types}, tensor<i32> cond {{")
        module.line(f"{n}l = stablehlo.constant dense<4> : tensor<i32>")
        module.line(f"{n}q = stablehlo.compare LT, {n}c, {n}l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>")
        module.line(f"stablehlo.return {n}q : tensor<i1>")
        module.line("} do {")
        module.line(f"{n}o = stablehlo.constant dense<1> : tensor<i32>")
        module.line(f"{n}j = stablehlo.add {n}c, {n}o : tensor<i32>")
        module.lines += lines
        module.line(f"stablehlo.return {', '.join(v.name for v in next_)}, {n}j : {types}, tensor<i32>")
        module.line("}")
        return [Value(f"{n}#{i}", v.type) for i, v in enumerate(carried)]

    def case(self):
        shape = self.pick().shape
        index = self.argument((), "i32")
        module, n, branches = self.module, self.module.fresh(), []
        for _ in range(2):
            with module.block() as lines:
                scope = Region(self)
                scope.values += self.values
                made = scope.write(self.steps())
                fitting = [m for m in made[::-1] if m.shape == shape]
                out = self.random.choice(fitting) if fitting else module.unary("negate", scope.partner(shape))
            branches.append((lines, out))
        module.line(f'{n} = "stablehlo.case"({index.name}) ({{')
        for i, (lines, out) in enumerate(branches):
            module.lines += lines
            module.line(f"stablehlo.return {out.name} : {out.type}")
            module.line("}, {" if i == 0 else f"}}) : (tensor<i32>) -> {out.type}")
        return Value(n, branches[0][1].type)

    # Calls

    def call(self):
        fitting = [f for f in self.program.functions if not f.used - set(self.axes)]
        if self.program.made < 3 and not (fitting and self.random.random() < 0.5):
            function = Function(self)
            fitting = [function] if not function.used - set(self.axes) else []
        if not fitting:
            return None
        function = self.random.choice(fitting[::-1])
        operands = [self.partner(t.shape, t.dtype) for t in function.takes]
        notes = None
        if self.random.random() < 0.1:
            notes = [self.annotation(t.shape, rest=False) for t in function.gives]
        return self.module.call(function.name, operands, function.gives, notes)

    # Manual computations

    def manual(self):
        axes = list(self.axes)
        self.random.shuffle(axes)
        manual = axes[:self.random.randint(1, len(axes))]
        body = Manual(self, manual)
        module = self.module
        with module.block() as lines:
            for _ in range(self.random.randint(1, 2)):
                body.take(self.pick())
            made = body.write(self.steps())
            outs = body.outcomes(made, self.random.randint(1, 2))
        given = [body.outer(v.shape) for v in outs]
        n = module.fresh()
        types = [Tensor(shape, "f32") for shape, _ in given]
        listed = lambda parts: ", ".join(parts)
        module.line(f"{n}{f':{len(outs)}' if len(outs) > 1 else ''} = sdy.manual_computation("
                    f"{listed(o.name for o, _, _ in body.taken)}) in_shardings=[{listed(s for _, _, s in body.taken)}] "
                    f"out_shardings=[{listed(sharding(s, len(shape)) for shape, s in given)}] manual_axes={{"
                    f"{listed(chr(34) + a + chr(34) for a in self.axes if a in manual)}}} ("
                    f"{listed(f'{i.name}: {i.type}' for _, i, _ in body.taken)}) {{")
        module.lines += lines
        module.line(f"sdy.return {listed(o.name for o in outs)} : {listed(str(o.type) for o in outs)}")
        module.line(f"}} : ({listed(str(o.type) for o, _, _ in body.taken)}) -> ({listed(map(str, types))})")
        return [Value(n if len(outs) == 1 else f"{n}#{i}", t) for i, t in enumerate(types)]


class Main(Nesting):
    def new_parameter(self, type_, annotated):
        note = None
        if type_.shape and self.random.random() < annotated:
            note = self.annotation(type_.shape, priorities=self.program.priorities)
        return self.module.argument(type_, note)


class Region(Nesting):
    """Of a loop or branch."""

    def __init__(self, around):
        super().__init__(around.program, around.axes, around.depth + 1)
        self.around = around

    def new_parameter(self, type_, annotated):
        return self.around.argument(type_.shape, type_.dtype, annotated)


class Function(Nesting):
    """A function, written when it is made."""

    def __init__(self, around):
        super().__init__(around.program, around.axes, around.depth + 1)
        self.parameters = []
        self.program.made += 1
        self.name = f"f{self.program.made}"
        with self.module.block() as lines:
            for _ in range(self.random.randint(1, 2)):
                shape = around.pick().shape
                self.argument(shape)
            outs = self.outcomes(self.write(self.steps()), self.random.randint(1, 2))
        notes = [self.sometimes(v.shape, 0.15) for v in outs]
        attached = lambda note, t: f" {{sdy.sharding = #sdy.sharding{sharding(note, t.rank)}}}" if note else ""
        arguments = ", ".join(f"{v.name}: {v.type}{attached(note, v.type)}" for v, note in self.parameters)
        results = ", ".join(f"{v.type}{attached(note, v.type)}" for v, note in zip(outs, notes))
        visibility = "" if self.random.random() < 0.1 else "private "
        made = [f"  func.func {visibility}@{self.name}({arguments}) -> ({results}) {{", *lines,
                f"    return {', '.join(v.name for v in outs)} : {', '.join(str(v.type) for v in outs)}", "  }"]
        self.module.functions += made
        self.takes, self.gives = [v.type for v, _ in self.parameters], [v.type for v in outs]
        # Axes that only this text names matter: a manual computation around a call owns its axes.
        text = "\n".join(made)
        self.used = {a for a in self.program.axes if f'"{a}"' in text}
        for other in self.program.functions:
            if f"@{other.name}}}" in text:
                self.used |= other.used
        self.program.functions.append(self)

    def new_parameter(self, type_, annotated):
        value = Value(f"%arg{len(self.parameters)}", type_)
        self.parameters.append((value, self.sometimes(type_.shape, annotated * 0.25)))
        return value


class Manual(Nesting):
    """The body of a manual computation: sees only what it takes, with the axes that are not manual."""

    def __init__(self, around, manual):
        super().__init__(around.program, {n: s for n, s in around.axes.items() if n not in manual}, around.depth + 1)
        self.around, self.cutting, self.taken = around, {n: s for n, s in around.axes.items() if n in manual}, []
        self.prefix = self.module.fresh()

    def note(self, cuts, shape):
        """A sharding with `cuts` (manual axes of each dimension) in front of free ones."""
        free = self.annotation(shape, rest=False).split(",")
        return ", ".join(" ".join(filter(None, [" ".join(c), f.strip() if f.strip() != "-" or not c else ""])) for c, f in zip(cuts, free))

    def deal(self, dims):
        """Manual axes for each of `dims` dimensions."""
        cuts = [[] for _ in range(dims)]
        for axis in self.cutting:
            if dims and self.random.random() < 0.7:
                cuts[self.random.randrange(dims)].append(axis)
        return cuts

    def parts(self, cut):
        return math.prod(self.cutting[a] for a in cut)

    def bind(self, operand, local, cuts):
        inside = Value(f"{self.prefix}a{len(self.taken)}", Tensor(local, operand.type.dtype))
        self.taken.append((operand, inside, sharding(self.note(cuts, local) if local else "", len(local))))
        return inside

    def take(self, operand):
        cuts = [[a for a in c] for c in self.deal(len(operand.shape))]
        local = []
        for size, cut in zip(operand.shape, cuts):
            while size % self.parts(cut):
                cut.pop()
            local.append(size // self.parts(cut))
        self.values.append(self.bind(operand, tuple(local), cuts))

    def new_parameter(self, type_, annotated):
        """A local value: cut out of a larger one around."""
        cuts = self.deal(len(type_.shape))
        shape = tuple(n * self.parts(c) for n, c in zip(type_.shape, cuts))
        return self.bind(self.around.argument(shape, type_.dtype, annotated), type_.shape, cuts)

    def outer(self, local):
        """Shape and sharding around of a value that the body gives."""
        cuts = self.deal(len(local))
        return tuple(n * self.parts(c) for n, c in zip(local, cuts)), self.note(cuts, local)


class Program:
    """One module. `nesting`: how often an op opens a scope."""

    def __init__(self, choices, nesting=0.25):
        self.random, self.nesting = choices, nesting
        mesh = choices.choice(MESHES)
        self.axes = {part.split("=")[0]: int(part.split("=")[1]) for part in mesh.split(",")}
        self.module, self.functions, self.made = Module(mesh), [], 0
        self.priorities = choices.random() < 0.2
        self.main = Main(self, self.axes, 0)

    def text(self):
        for _ in range(self.random.randint(1, 3)):
            self.main.argument()
        made = self.main.write(self.random.randint(2, 6))
        results = [made[-1]] + [v for v in made[:-1] if self.random.random() < 0.3] if made else [self.main.values[0]]
        notes = [self.main.annotation(r.shape, self.priorities) if self.random.random() < 0.3 else None for r in results]
        return self.module.text(*results, shardings=notes)


__all__ = ["Program", "SIZES"]
