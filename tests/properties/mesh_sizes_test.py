#!/usr/bin/env python3
"""Programs over meshes of several sizes equal the same programs without meshes, bit by bit: random programs of integers whose values are
laid out over meshes that are subsets of each other, overlap, are disjoint, have one device, or sizes that do not divide each other. Each
has constraints, ops with annotations, loops, branches and manual computations with collectives over every mesh. The device list of a run
is 0, 1, 2, ..., then another one that the request names. What :partition prints of a program runs, and gives the same, too; it is refused by
name where devices make no groups of one size.

mesh_sizes_test.py BINARY [COUNT] [SEED]
"""
import http.client
import json
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
from server import Meshd  # noqa: E402

COUNT, SEED = 25, 1


class Mesh:
    def __init__(self, name, axes, devices):
        self.name, self.axes, self.devices = name, axes, devices

    def text(self):
        axes = ", ".join(f'"{name}"={size}' for name, size in self.axes.items())
        iota = self.devices == list(range(len(self.devices))) and self.axes
        return f"  sdy.mesh @{self.name} = <[{axes}]{'' if iota else f', device_ids={self.devices}'}>\n"


SUBSET = [Mesh("a", {"x": 2, "y": 4}, list(range(8))), Mesh("b", {"z": 4}, [0, 1, 2, 3])]
PAIRS = {
    "subset": SUBSET,
    "subset in another order": [Mesh("a", {"x": 2, "y": 4}, list(range(8))), Mesh("b", {"z": 3}, [7, 1, 4])],
    "overlapping": [Mesh("a", {"x": 4}, [0, 1, 2, 3]), Mesh("b", {"z": 4}, [2, 3, 4, 5])],
    "disjoint": [Mesh("a", {"x": 4}, [0, 1, 2, 3]), Mesh("b", {"z": 2, "w": 2}, [4, 5, 6, 7])],
    "disjoint with the same axes": [Mesh("a", {"x": 2}, [0, 1]), Mesh("b", {"x": 2}, [3, 2])],
    "one device": [Mesh("a", {"x": 2, "y": 2}, [0, 1, 2, 3]), Mesh("b", {}, [3])],
    "one device outside": [Mesh("a", {"x": 2}, [0, 1]), Mesh("b", {}, [5])],
    "uneven sizes": [Mesh("a", {"x": 3}, [0, 1, 2]), Mesh("b", {"z": 5}, [2, 3, 4, 5, 6])],
    "an axis of one": [Mesh("a", {"x": 2}, [0, 1]), Mesh("b", {"z": 1}, [2])],
    "three": [*SUBSET, Mesh("c", {"u": 2, "v": 3}, [1, 2, 3, 5, 6, 7])],
}
TYPE = "tensor<8x12xi32>"


class Program:
    """The text with meshes and the same without: `both` writes a line in both, `say` a sharding in the first alone."""

    def __init__(self, meshes, draw):
        self.meshes, self.draw = meshes, draw
        self.sharded, self.whole = [], []
        self.values, self.number = ["%a", "%b"], 0

    def fresh(self):
        self.number += 1
        return f"%v{self.number}"

    def pick(self):
        return self.draw.choice(self.values[-4:] + ["%a", "%b"])

    def both(self, line, sharding=""):
        self.sharded.append(line.replace("{S}", sharding))
        self.whole.append(line.replace("{S}", ""))

    def spec(self, mesh):
        axes = list(mesh.axes)
        self.draw.shuffle(axes)
        if not axes:
            return f"<@{mesh.name}, []>"
        cut = self.draw.randrange(len(axes) + 1)
        dims = [axes[:cut], axes[cut:]] if self.draw.random() < 0.5 else [axes[cut:], []]
        self.draw.shuffle(dims)
        return f"<@{mesh.name}, [" + ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in dims) + "]>"

    def anywhere(self):
        return self.spec(self.draw.choice(self.meshes))

    def note(self):
        return f" {{sdy.sharding = #sdy.sharding_per_value<[{self.anywhere()}]>}}" if self.draw.random() < 0.4 else ""

    # ---- what a program is made of

    def pointwise(self):
        out, name = self.fresh(), self.draw.choice(["add", "multiply", "subtract", "maximum", "xor"])
        self.both(f"{out} = stablehlo.{name} {self.pick()}, {self.pick()}{{S}} : {TYPE}", self.note())
        self.values.append(out)

    def constraint(self):
        out, value = self.fresh(), self.pick()
        self.sharded.append(f"{out} = sdy.sharding_constraint {value} {self.anywhere()} : {TYPE}")
        self.whole.append(f"{out} = stablehlo.optimization_barrier {value} : {TYPE}")
        self.values.append(out)

    def product(self):
        turned, out = self.fresh(), self.fresh()
        self.both(f"{turned} = stablehlo.transpose {self.pick()}, dims = [1, 0]{{S}} : ({TYPE}) -> tensor<12x8xi32>", self.note())
        square, value = self.fresh(), self.pick()
        self.both(f"{square} = stablehlo.dot_general {value}, {turned}, contracting_dims = [1] x [0]{{S}} : ({TYPE}, tensor<12x8xi32>) -> "
                  "tensor<8x8xi32>", self.note())
        self.both(f"{out} = stablehlo.dot_general {square}, {self.pick()}, contracting_dims = [1] x [0]{{S}} : (tensor<8x8xi32>, {TYPE}) -> {TYPE}",
                  self.note())
        self.values.append(out)

    def rows(self):
        zero, sums, out, dim = self.fresh(), self.fresh(), self.fresh(), self.draw.randrange(2)
        size = (12, 8)[dim]
        self.both(f"{zero} = stablehlo.constant dense<0> : tensor<i32>")
        self.both(f"{sums} = stablehlo.reduce({self.pick()} init: {zero}) applies stablehlo.add across dimensions = [{dim}] : "
                  f"({TYPE}, tensor<i32>) -> tensor<{size}xi32>")
        self.both(f"{out} = stablehlo.broadcast_in_dim {sums}, dims = [{1 - dim}]{{S}} : (tensor<{size}xi32>) -> {TYPE}", self.note())
        self.values.append(out)

    def move(self):
        out, value = self.fresh(), self.pick()
        if self.draw.random() < 0.5:
            self.both(f"{out} = stablehlo.reverse {value}, dims = [{self.draw.randrange(2)}]{{S}} : {TYPE}", self.note())
        else:
            left, right, at = self.fresh(), self.fresh(), self.draw.randrange(1, 12)
            self.both(f"{left} = stablehlo.slice {value} [0:8, {at}:12] : ({TYPE}) -> tensor<8x{12 - at}xi32>")
            self.both(f"{right} = stablehlo.slice {value} [0:8, 0:{at}] : ({TYPE}) -> tensor<8x{at}xi32>")
            self.both(f"{out} = stablehlo.concatenate {left}, {right}, dim = 1 : (tensor<8x{12 - at}xi32>, tensor<8x{at}xi32>) -> {TYPE}")
        self.values.append(out)

    def loop(self):
        out, inner = self.fresh(), Program(self.meshes, self.draw)
        inner.number = self.number + 3
        inner.values = ["%c", self.pick()]
        first = self.pick()
        inner.both(f"%l{self.number} = stablehlo.constant dense<1> : tensor<i32>")
        for _ in range(2):
            self.draw.choice([inner.pointwise, inner.constraint, inner.manual])()
        last, one, two = inner.values[-1], f"%n{self.number}", f"%m{self.number}"
        self.number = inner.number + 1
        for lines, body in ((self.sharded, inner.sharded), (self.whole, inner.whole)):
            lines += [f"{one} = stablehlo.constant dense<0> : tensor<i32>",
                      f"{out}:2 = stablehlo.while(%i = {one}, %c = {first}) : tensor<i32>, {TYPE}",
                      f"cond {{ {two} = stablehlo.constant dense<3> : tensor<i32>",
                      f"  %p{two[1:]} = stablehlo.compare LT, %i, {two}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
                      f"  stablehlo.return %p{two[1:]} : tensor<i1>",
                      "} do {", *[line.replace("%a", "%c").replace("%b", "%c") for line in body],
                      f"  %q{two[1:]} = stablehlo.add %i, {body[0].split()[0]} : tensor<i32>",
                      f"  stablehlo.return %q{two[1:]}, {last} : tensor<i32>, {TYPE}", "}"]
        self.values.append(f"{out}#1")

    def branch(self):
        out, zero = self.fresh(), self.fresh()
        value, other = self.pick(), self.pick()
        self.both(f"{zero} = stablehlo.constant dense<{self.draw.randrange(3)}> : tensor<i32>")
        self.both(f'{out} = "stablehlo.case"({zero}) ({{ stablehlo.return {value} : {TYPE} }}, {{')
        made = self.fresh()
        self.both(f"{made} = stablehlo.negate {other}{{S}} : {TYPE}", self.note())
        self.both(f"stablehlo.return {made} : {TYPE} }}) : (tensor<i32>) -> {TYPE}")
        self.values.append(out)

    def manual(self):
        """A manual computation over one mesh, and what it is as one computation."""
        mesh = self.draw.choice([mesh for mesh in self.meshes if mesh.axes])
        axes = [axis for axis in mesh.axes]
        parts = len(mesh.devices)
        fitting = [dim for dim in (0, 1) if (8, 12)[dim] % parts == 0]
        dim = self.draw.choice(fitting) if fitting else None
        dims = ["{}", "{}"]
        shape = [8, 12]
        if dim is not None:
            dims[dim] = "{" + ", ".join(f'"{axis}"' for axis in axes) + "}"
            shape[dim] //= parts
        local = f"tensor<{shape[0]}x{shape[1]}xi32>"
        spec, manual = f"[<@{mesh.name}, [{', '.join(dims)}]>]", "{" + ", ".join(f'"{axis}"' for axis in axes) + "}"
        out, value, names = self.fresh(), self.pick(), [self.fresh() for _ in range(8)]
        body, kind = [], self.draw.choice(["pointwise", "position", "all_reduce", "ring", "loop"])
        groups = f"dense<[{sorted(mesh.devices) if self.draw.random() < 0.5 else mesh.devices}]> : tensor<1x{parts}xi64>"
        channel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
        held = names[0]
        if kind == "pointwise" or dim is None:
            body = [f"{held} = stablehlo.multiply %s, %s : {local}"]
            self.whole.append(f"{out} = stablehlo.multiply {value}, {value} : {TYPE}")
        elif kind in ("position", "loop"):
            # Adds the device's number, at once or one by one: devices leave the loop at different iterations.
            body = [f"{names[1]} = stablehlo.partition_id : tensor<ui32>",
                    f"{names[2]} = stablehlo.convert {names[1]} : (tensor<ui32>) -> tensor<i32>"]
            if kind == "position":
                body += [f"{names[3]} = stablehlo.broadcast_in_dim {names[2]}, dims = [] : (tensor<i32>) -> {local}",
                         f"{held} = stablehlo.add %s, {names[3]} : {local}"]
            else:
                body += [f"{names[3]} = stablehlo.constant dense<0> : tensor<i32>",
                         f"{names[4]} = stablehlo.constant dense<1> : {local}",
                         f"{names[5]} = stablehlo.constant dense<1> : tensor<i32>",
                         f"{held}x:2 = stablehlo.while(%j = {names[3]}, %t = %s) : tensor<i32>, {local}",
                         f"cond {{ {names[6]} = stablehlo.compare LT, %j, {names[2]}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
                         f"  stablehlo.return {names[6]} : tensor<i1>",
                         "} do {",
                         f"  {names[7]} = stablehlo.add %t, {names[4]} : {local}",
                         f"  {names[7]}i = stablehlo.add %j, {names[5]} : tensor<i32>",
                         f"  stablehlo.return {names[7]}i, {names[7]} : tensor<i32>, {local}", "}",
                         f"{held} = stablehlo.add {held}x#1, {names[4]} : {local}"]
            added = [device + (kind == "loop") for device in mesh.devices for _ in range(shape[dim])]
            self.whole += [f"{names[1]} = stablehlo.constant dense<{added}> : tensor<{(8, 12)[dim]}xi32>",
                           f"{names[2]} = stablehlo.broadcast_in_dim {names[1]}, dims = [{dim}] : (tensor<{(8, 12)[dim]}xi32>) -> {TYPE}",
                           f"{out} = stablehlo.add {value}, {names[2]} : {TYPE}"]
        elif kind == "all_reduce":
            # Every shard becomes the sum of all.
            body = [f'{held} = "stablehlo.all_reduce"(%s) <{{replica_groups = {groups}, {channel}, use_global_device_ids}}> ({{',
                    "^bb0(%l: tensor<i32>, %r: tensor<i32>):",
                    f"  {names[1]} = stablehlo.add %l, %r : tensor<i32>", f"  stablehlo.return {names[1]} : tensor<i32>",
                    f"}}) : ({local}) -> {local}"]
            blocks = []
            for part in range(parts):
                blocks.append(f"{names[1]}p{part}")
                ranges = ["0:8", "0:12"]
                ranges[dim] = f"{part * shape[dim]}:{(part + 1) * shape[dim]}"
                self.whole.append(f"{blocks[-1]} = stablehlo.slice {value} [{', '.join(ranges)}] : ({TYPE}) -> {local}")
            total = blocks[0]
            for block in blocks[1:]:
                self.whole.append(f"{block}s = stablehlo.add {total}, {block} : {local}")
                total = f"{block}s"
            self.whole.append(f"{out} = stablehlo.concatenate {', '.join([total] * parts)}, dim = {dim} : "
                              f"({', '.join([local] * parts)}) -> {TYPE}")
        else:
            # Every shard goes to the next position, the last one's nowhere: the first position gets zeros.
            pairs = [[source, target] for source, target in zip(mesh.devices, mesh.devices[1:])]
            if not pairs:
                pairs = [[mesh.devices[0], mesh.devices[0]]]
            body = [f'{held} = "stablehlo.collective_permute"(%s) <{{source_target_pairs = dense<{pairs}> : tensor<{len(pairs)}x2xi64>, '
                    f"{channel}}}> : ({local}) -> {local}"]
            if parts == 1:
                self.whole.append(f"{out} = stablehlo.optimization_barrier {value} : {TYPE}")
            else:
                left, ranges = list(shape), ["0:8", "0:12"]
                left[dim] = (8, 12)[dim] - shape[dim]
                ranges[dim] = f"0:{left[dim]}"
                rest = f"tensor<{left[0]}x{left[1]}xi32>"
                self.whole += [f"{names[1]} = stablehlo.constant dense<0> : {local}",
                               f"{names[2]} = stablehlo.slice {value} [{', '.join(ranges)}] : ({TYPE}) -> {rest}",
                               f"{out} = stablehlo.concatenate {names[1]}, {names[2]}, dim = {dim} : ({local}, {rest}) -> {TYPE}"]
        self.sharded += [f"{out} = sdy.manual_computation({value}) in_shardings={spec} out_shardings={spec} manual_axes={manual} (%s: {local}) {{",
                         *body, f"  sdy.return {held} : {local}", f"}} : ({TYPE}) -> {TYPE}"]
        self.values.append(out)

    def texts(self):
        steps = [self.pointwise, self.pointwise, self.constraint, self.product, self.rows, self.move, self.loop, self.branch, self.manual, self.manual]
        for _ in range(self.draw.randrange(3, 9)):
            self.draw.choice(steps)()
        results = [self.values[-1], self.pick()]
        where = lambda: f" {{sdy.sharding = #sdy.sharding{self.anywhere()}}}" if self.draw.random() < 0.7 else ""
        head = lambda said: (f"  func.func @main(%a: {TYPE}{said()}, %b: {TYPE}{said()}) -> ({TYPE}{said()}, {TYPE}{said()}) {{\n")
        end = f"    return {', '.join(results)} : {TYPE}, {TYPE}\n  }}\n}}\n"
        meshes = "".join(mesh.text() for mesh in self.meshes)
        return ("module {\n" + meshes + head(where) + "".join(f"    {line}\n" for line in self.sharded) + end,
                "module {\n" + head(lambda: "") + "".join(f"    {line}\n" for line in self.whole) + end)


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else COUNT
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else SEED
    tried, printed, wrong = 0, 0, []
    with Meshd(sys.argv[1], "--devices", "10") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

        def ask(path, body):
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        for name, meshes in PAIRS.items():
            span = max(max(mesh.devices) for mesh in meshes) + 1
            for number in range(count):
                draw = random.Random(f"{seed} {name} {number}")
                sharded, whole = Program(meshes, draw).texts()
                values = [[[draw.randrange(-9, 10) for _ in range(12)] for _ in range(8)] for _ in range(2)]
                arguments = [{"dtype": "int32", "shape": [8, 12], "data": value} for value in values]
                expected = ask("/v1/run", {"program": {"text": whole}, "arguments": arguments})
                assert expected[0] == 200, (whole, expected)
                devices = list(range(10))
                draw.shuffle(devices)
                program = ask("/v1/programs", {"text": sharded})[1]["id"]
                status, local = ask(f"/v1/programs/{program}:partition?format=json", {})
                if status == 200:
                    printed += 1
                    status, local = ask("/v1/run", {"program": {"text": local["text"]}, "arguments": arguments})
                    if status == 200 and [r["data"] for r in local["results"]] != [r["data"] for r in expected[1]["results"]]:
                        status, local = 0, {"detail": "other results"}
                if status != 200 and "no groups of that size" not in local.get("detail", ""):
                    wrong.append((name, number, status, "the text of :partition: " + local.get("detail", ""), sharded, whole))
                # Where every mesh is over all devices, the request's has the axes of one of them.
                whole_mesh = all(len(mesh.devices) == span for mesh in meshes if mesh.axes)
                nested = [devices[0:2], devices[2:4]] if whole_mesh else devices[:span]
                listed = [{"axis_names": list(meshes[0].axes) if whole_mesh else ["all"], "devices": nested}]
                listed += [] if whole_mesh else [{"axis_names": ["all"], "devices": devices}]
                for mesh in (None, *listed):
                    request = {"program": {"text": sharded}, "arguments": arguments}
                    if mesh is not None:
                        request["mesh"] = mesh
                    tried += 1
                    got = ask("/v1/run", request)
                    if got[0] != 200 or [r["data"] for r in got[1]["results"]] != [r["data"] for r in expected[1]["results"]]:
                        detail = got[1].get("detail") or got[1].get("errors") if got[0] != 200 else "other results"
                        wrong.append((name, number, got[0], detail, sharded, whole))
                        break
    for name, number, status, detail, sharded, whole in wrong[:3]:
        print(f"== {name} {number}: {status} {detail}\n{sharded}\n-- without meshes\n{whole}")
    for name, number, status, detail, *_ in wrong:
        print(f"{name} {number}: {status} {detail}")
    print(f"{tried} runs, {printed} texts of :partition, {len(wrong)} wrong")
    return 1 if wrong or printed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
