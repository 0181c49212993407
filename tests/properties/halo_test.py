#!/usr/bin/env python3
"""Ops that read their neighbours' rows, cut along the dimension that they read so: random windows and what scatters back through
them, convolutions and the gradients of their kernels, slices, pads, reversals and concatenations (strides, dilations, padding of both signs, uneven sizes) over meshes of 2, 4, 8, 2x2 and 2x2x2. Each has to
  - give what the unsharded run gives, bit for bit where nothing is summed in floating point;
  - give the same again as the text of :partition;
  - keep its result cut and be explained as a halo exchange of no more bytes than a device lacks, wherever that is less than gathering.

halo_test.py BINARY [ROUNDS]
"""
import http.client
import json
import pathlib
import random
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
from server import Meshd  # noqa: E402

MESHES = ([2], [4], [8], [2, 2], [2, 2, 2])


def each(read):
    """Rows that several result rows read, `read` being those of one."""
    return lambda results: set().union(*(read(row) for row in results))


def ints(values):
    return "array<i64: " + ", ".join(str(v) for v in values) + ">"


def tensor(dims, dtype):
    return "tensor<" + "".join(f"{d}x" for d in dims) + dtype + ">"


def pairs(low, high):
    rows = ", ".join(f"[{a}, {b}]" for a, b in zip(low, high))
    return f"dense<[{rows}]> : tensor<{len(low)}x2xi64>"


class Case:
    """One op over two dimensions, of which `reads[i][d]` tells which rows of operand i result rows read."""

    def __init__(self, draw):
        self.draw = draw
        self.dtype = draw.choice(["i32", "f32"])
        self.operands, self.result, self.exact, self.windows, self.gathers = [], None, True, False, False
        self.reads = []
        self.op, self.summed = None, False
        self.part_rows = [None, None]  # of the result, of the cut that is looked at

    def window_dim(self, most_window):
        """Random window over one dimension with at least one result row: (size, window, stride, dilation, base, low, high)."""
        while True:
            size = self.draw.randint(3, 33)
            window, stride = self.draw.randint(1, most_window), self.draw.randint(1, 3)
            dilation, base = self.draw.choice([1, 1, 2]), self.draw.choice([1, 1, 1, 2, 3])
            low, high = self.draw.randint(-1, 3), self.draw.randint(-1, 3)
            span = (window - 1) * dilation + 1
            places = (size - 1) * base + 1 + low + high
            if places >= span and (places - span) // stride + 1 >= 2:
                return size, window, stride, dilation, base, low, high, (places - span) // stride + 1

    @staticmethod
    def windows_read(w):
        size, window, stride, dilation, base, low, _, _ = w
        span = (window - 1) * dilation + 1

        def read(rows):
            """Rows that stand between the first and the last place of the windows."""
            first, last = rows[0] * stride - low, rows[-1] * stride - low + span - 1
            return {r for r in range(size) if first <= r * base <= last}

        return read

    def text(self, body):
        args = ", ".join(f"%arg{i}: {tensor(dims, self.dtype)}" for i, dims in enumerate(self.operands))
        out = tensor(self.result, self.dtype)
        return f"module {{\n  func.func public @main({args}) -> {out} {{\n{body}    return %out : {out}\n  }}\n}}\n"

    def constant(self, value):
        shown = value if self.dtype == "i32" else f"{value}.0"
        return f"    %c = stablehlo.constant dense<{shown}> : tensor<{self.dtype}>\n"


def reduce_window(draw):
    case = Case(draw)
    kind = draw.choice(["add", "maximum"])
    dims, case.windows = [case.window_dim(4) for _ in range(2)], True
    case.exact = case.dtype == "i32" or kind == "maximum"
    case.operands, case.result = [[w[0] for w in dims]], [w[7] for w in dims]
    case.reads = [[case.windows_read(w) for w in dims]]
    get = [list(column) for column in zip(*dims)]
    s = f"tensor<{case.dtype}>"
    body = case.constant(0 if kind == "add" else -5) + f"""    %out = "stablehlo.reduce_window"(%arg0, %c) <{{window_dimensions = {ints(get[1])}, window_strides = {ints(get[2])},
      window_dilations = {ints(get[3])}, base_dilations = {ints(get[4])}, padding = {pairs(get[5], get[6])}}}> ({{
    ^bb0(%a: {s}, %b: {s}):
      %r = stablehlo.{kind} %a, %b : {s}
      stablehlo.return %r : {s}
    }}) : ({tensor(case.operands[0], case.dtype)}, {s}) -> {tensor(case.result, case.dtype)}
"""
    return case, case.text(body)


def convolution(draw):
    case = Case(draw)
    dims, case.windows = [case.window_dim(4) for _ in range(2)], True
    case.exact = case.dtype == "i32"
    features, outputs = draw.randint(1, 3), draw.randint(1, 3)
    case.operands = [[2] + [w[0] for w in dims] + [features], [w[1] for w in dims] + [features, outputs]]
    case.result = [2] + [w[7] for w in dims] + [outputs]
    case.reads = [[set] + [case.windows_read(w) for w in dims] + [set]]
    get = [list(column) for column in zip(*dims)]
    reversal = [draw.choice(["false", "true"]) for _ in range(2)]
    types = f"({tensor(case.operands[0], case.dtype)}, {tensor(case.operands[1], case.dtype)}) -> {tensor(case.result, case.dtype)}"
    body = f"""    %out = "stablehlo.convolution"(%arg0, %arg1) <{{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, padding = {pairs(get[5], get[6])},
      window_strides = {ints(get[2])}, rhs_dilation = {ints(get[3])}, lhs_dilation = {ints(get[4])},
      window_reversal = array<i1: {", ".join(reversal)}>}}> : {types}
"""
    return case, case.text(body)


def select_and_scatter(draw):
    case = Case(draw)
    dims = []
    for _ in range(2):
        while True:
            size, window, stride = draw.choice([8, 16, 24, draw.randint(3, 33)]), draw.randint(1, 4), draw.randint(1, 3)
            low, high = draw.choice([(0, 0), (draw.randint(-1, 3), draw.randint(-1, 3))])
            if size + low + high >= window:
                break
        dims.append((size, window, stride, low, high, (size + low + high - window) // stride + 1))
    case.operands, case.result = [[d[0] for d in dims], [d[5] for d in dims]], [d[0] for d in dims]

    def begins(number, rows):
        """Where windows may begin that reach into the part of these rows; only where they do, if parts are whole strides."""
        _, window, stride, low, _, _ = dims[number]
        part = case.part_rows[number]
        return [b for b in range(rows[0] - window + 1, rows[0] + part) if part % stride != 0 or (b + low) % stride == 0]

    def elements(number):
        def read(rows):
            at = begins(number, rows)
            return {r for r in range(dims[number][0]) if at[0] <= r < at[-1] + dims[number][1]}
        return read

    def sources(number):
        def read(rows):
            _, _, stride, low, _, count = dims[number]
            return {(b + low) // stride for b in begins(number, rows) if (b + low) % stride == 0 and 0 <= (b + low) // stride < count}
        return read

    case.windows = True
    case.reads = [[elements(d) for d in range(2)], [sources(d) for d in range(2)]]
    get = [list(column) for column in zip(*dims)]
    s = f"tensor<{case.dtype}>"
    body = case.constant(0) + f"""    %out = "stablehlo.select_and_scatter"(%arg0, %arg1, %c) <{{window_dimensions = {ints(get[1])}, window_strides = {ints(get[2])},
      padding = {pairs(get[3], get[4])}}}> ({{
    ^bb0(%a: {s}, %b: {s}):
      %r = stablehlo.compare {draw.choice(["GE", "GT"])}, %a, %b : ({s}, {s}) -> tensor<i1>
      stablehlo.return %r : tensor<i1>
    }}, {{
    ^bb0(%a: {s}, %b: {s}):
      %r = stablehlo.add %a, %b : {s}
      stablehlo.return %r : {s}
    }}) : ({tensor(case.operands[0], case.dtype)}, {tensor(case.operands[1], case.dtype)}, {s}) -> {tensor(case.result, case.dtype)}
"""
    return case, case.text(body)


def kernel_gradient(draw):
    """A convolution whose windows are longer than there are of them, summed over cut rows: partial sums meet."""
    case = Case(draw)
    dims, case.summed, case.op = [], True, "convolution"
    for _ in range(2):
        while True:
            size, stride, dilation = draw.randint(8, 40), draw.randint(1, 2), draw.randint(1, 2)
            low, high = draw.randint(-1, 2), draw.randint(-1, 2)
            window = draw.choice([4, 8, 16, draw.randint(3, 20)])
            places = size + low + high - ((window - 1) * dilation + 1)
            if places >= 0 and places // stride + 1 < window:
                break
        dims.append((size, window, stride, dilation, low, high, places // stride + 1))
    case.exact = case.dtype == "i32"
    features, outputs = draw.randint(1, 3), draw.randint(1, 3)
    case.operands = [[2] + [d[0] for d in dims] + [features], [d[1] for d in dims] + [features, outputs]]
    case.result = [2] + [d[6] for d in dims] + [outputs]
    case.dims = dims
    get = [list(column) for column in zip(*dims)]
    types = f"({tensor(case.operands[0], case.dtype)}, {tensor(case.operands[1], case.dtype)}) -> {tensor(case.result, case.dtype)}"
    body = f"""    %out = "stablehlo.convolution"(%arg0, %arg1) <{{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, padding = {pairs(get[4], get[5])},
      window_strides = {ints(get[2])}, rhs_dilation = {ints(get[3])}}}> : {types}
"""
    return case, case.text(body)


def slice_(draw):
    case = Case(draw)
    size, starts, limits, strides, reads = [], [], [], [], []
    for _ in range(2):
        n = draw.randint(4, 33)
        start = draw.randint(0, n - 3)
        limit, stride = draw.randint(start + 2, n), draw.choice([1, 1, 2, 3])
        size.append(n), starts.append(start), limits.append(limit), strides.append(stride)
        reads.append(each(lambda row, start=start, stride=stride: {start + row * stride}))
    case.operands, case.reads = [size], [reads]
    case.result = [-(-(b - a) // s) for a, b, s in zip(starts, limits, strides)]
    body = f"""    %out = "stablehlo.slice"(%arg0) <{{start_indices = {ints(starts)}, limit_indices = {ints(limits)}, strides = {ints(strides)}}}> : ({tensor(size, case.dtype)}) -> {tensor(case.result, case.dtype)}
"""
    return case, case.text(body)


def pad(draw):
    case = Case(draw)
    while True:
        size = [draw.randint(2, 20) for _ in range(2)]
        low, high = ([draw.randint(-2, 5) for _ in range(2)] for _ in range(2))
        inner = [draw.choice([0, 0, 0, 1, 3, 3, 70]) for _ in range(2)]
        case.result = [(n - 1) * (i + 1) + 1 + a + b for n, i, a, b in zip(size, inner, low, high)]
        if min(case.result) >= 2:
            break
    case.operands, case.gathers = [size], max(inner) == 70  # rows so far apart are not worth it

    def reader(n, a, i):
        return each(lambda row: {(row - a) // (i + 1)} if (row - a) % (i + 1) == 0 and 0 <= (row - a) // (i + 1) < n else set())

    case.reads = [[reader(n, a, i) for n, a, i in zip(size, low, inner)]]
    body = case.constant(7) + f"""    %out = "stablehlo.pad"(%arg0, %c) <{{edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(inner)}}}> : ({tensor(size, case.dtype)}, tensor<{case.dtype}>) -> {tensor(case.result, case.dtype)}
"""
    return case, case.text(body)


def reverse(draw):
    case = Case(draw)
    size = [draw.randint(2, 33) for _ in range(2)]
    turned = draw.choice([[0], [1], [0, 1]])
    case.operands, case.result = [size], size
    case.reads = [[each(lambda row, n=n: {n - 1 - row}) if d in turned else set for d, n in enumerate(size)]]
    kind = tensor(size, case.dtype)
    return case, case.text(f'    %out = "stablehlo.reverse"(%arg0) <{{dimensions = {ints(turned)}}}> : ({kind}) -> {kind}\n')


def concatenate(draw):
    case = Case(draw)
    dim, other = draw.randint(0, 1), draw.randint(2, 17)
    sizes = [draw.randint(1, 20) for _ in range(draw.randint(2, 4))]
    shape = lambda n: [n, other] if dim == 0 else [other, n]  # noqa: E731
    case.operands, case.result = [shape(n) for n in sizes], shape(sum(sizes))
    before = 0
    for n in sizes:
        along = each(lambda row, n=n, before=before: {row - before} if 0 <= row - before < n else set())
        case.reads.append([along if d == dim else set for d in range(2)])
        before += n
    names = ", ".join(f"%arg{i}" for i in range(len(sizes)))
    types = ", ".join(tensor(dims, case.dtype) for dims in case.operands)
    return case, case.text(f'    %out = "stablehlo.concatenate"({names}) <{{dimension = {dim} : i64}}> : ({types}) -> {tensor(case.result, case.dtype)}\n')


def lacking(case, spec, axes):
    """Bytes that the device lacks most of what its part of the result reads, when operands and result are cut alike. Windows exchange
    operand by operand."""
    sizes = dict(axes)
    most, apart = 0, [0 for _ in case.reads]
    for position in np.ndindex(*[size for _, size in axes]):
        at = dict(zip((name for name, _ in axes), position))
        here = 0
        for i, (dims, reads) in enumerate(zip(case.operands, case.reads)):
            wanted = common = 1
            for d, read in enumerate(reads):
                parts, part = 1, 0
                for axis in spec[d]:
                    parts, part = parts * sizes[axis], part * sizes[axis] + at[axis]
                out_rows, own_rows = -(-case.result[d] // parts), -(-dims[d] // parts)
                if d < 2:
                    case.part_rows[d] = out_rows
                results = range(part * out_rows, min((part + 1) * out_rows, case.result[d]))
                if case.windows and not spec[d]:
                    rows = set(range(dims[d]))
                else:
                    rows = read(results) if results else set()
                wanted *= len(rows)
                common *= len({r for r in rows if part * own_rows <= r < (part + 1) * own_rows})
            here += wanted - common
            apart[i] = max(apart[i], wanted - common)
        most = max(most, here)
    return 4 * (sum(apart) if case.windows else most)


def lacking_of_sums(case, spec, axes):
    """The same of a kernel gradient: the rows of the input that windows have at the elements of the kernel's part, and parts of the
    result, which meet in a sum."""
    sizes, most = dict(axes), 0
    for position in np.ndindex(*[size for _, size in axes]):
        at = dict(zip((name for name, _ in axes), position))
        wanted = common = 2 * case.operands[0][3]
        for (size, window, stride, dilation, low, _, count), names in zip(case.dims, spec):
            parts, part = 1, 0
            for axis in names:
                parts, part = parts * sizes[axis], part * sizes[axis] + at[axis]
            if window % parts != 0:
                return None
            taps, own = window // parts, -(-size // parts)
            first, last = part * taps * dilation - low, ((part + 1) * taps - 1) * dilation + (count - 1) * stride - low
            rows = {r for r in range(size) if first <= r <= last} if parts > 1 else set(range(size))
            wanted *= len(rows)
            common *= len({r for r in rows if part * own <= r < (part + 1) * own})
        most = max(most, wanted - common)
    result, ways = int(np.prod(case.result)), int(np.prod(list(sizes.values())))
    return 4 * (most + 2 * (result - result // ways))


def gathered(case, operand, spec, sizes):
    """Bytes that a device receives to have the cut dimensions of an operand whole."""
    whole = own = 1
    for d, n in enumerate(case.operands[operand]):
        whole *= n
        own *= -(-n // int(np.prod([sizes[axis] for axis in spec[d]])))
    return 4 * (whole - own)


OPS = (reduce_window, convolution, slice_, pad, reverse, concatenate, select_and_scatter, kernel_gradient)


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    wrong, tried, exchanged, halo_bytes, gather_bytes = [], 0, 0, 0, 0
    with Meshd(sys.argv[1], "--devices", "8") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

        def post(path, request):
            connection.request("POST", path, json.dumps(request), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        for number in range(rounds * len(OPS)):
            make = OPS[number % len(OPS)]
            draw = random.Random(number)
            case, text = make(draw)
            values = [[draw.randint(-9, 9) for _ in range(int(np.prod(dims)))] for dims in case.operands]
            arguments = [{"dtype": "int32" if case.dtype == "i32" else "float32", "shape": dims,
                          "data": np.reshape(flat, dims).tolist()} for dims, flat in zip(case.operands, values)]
            request = {"program": {"text": text}, "arguments": arguments}
            status, whole = post("/v1/run", request)
            if status != 200:
                wrong.append(f"{number} {make.__name__}: HTTP {status}: {whole.get('detail')}\n{text}")
                continue
            expected = np.asarray(whole["results"][0]["data"])
            mesh = draw.choice(MESHES)
            axes = list(zip("xyz", mesh))
            names = [name for name, _ in axes]
            # The dimensions that are read so, each with an axis; or one of them with all.
            moving = [1, 2] if make is convolution else [0, 1]
            spec = [[] for _ in case.result]
            if len(names) == 1 or draw.random() < 0.3:
                spec[draw.choice(moving)] = names if draw.random() < 0.7 else names[::-1]
            else:
                spec[moving[0]], spec[moving[1]] = names[:1], names[1:]
            read = range(len(case.operands) if case.summed else len(case.reads))
            specs = [spec if i in read else None for i in range(len(arguments))]
            if case.summed:  # the dimensions of both operands that are summed over, of a result that everybody has
                specs = [[[], *spec[:2], []], [*spec[:2], [], []]]
            placed = {"mesh": {"axes": [{"name": n, "size": s} for n, s in axes]},
                      "out_shardings": [{"spec": [[] for _ in case.result] if case.summed else spec}],
                      "in_shardings": [None if s is None else {"spec": s} for s in specs]}
            where = f"{number} {make.__name__} {spec} over {mesh}"
            tried += 1
            status, got = post("/v1/run", {**request, **placed})
            if status != 200:
                wrong.append(f"{where}: HTTP {status}: {got.get('detail')}\n{text}")
                continue

            def differs(answer, what):
                have = np.asarray(answer["results"][0]["data"])
                same = np.array_equal(expected, have) if case.exact else np.allclose(expected, have, rtol=1e-5, atol=1e-4)
                if not same:
                    wrong.append(f"{where}: {what} differs\n{text}")
                return not same

            if differs(got, "the sharded run"):
                continue
            program = post("/v1/programs", {"text": text})[1]["id"]
            shapes = {**placed, "shapes": case.operands}
            status, local = post(f"/v1/programs/{program}:partition?format=json", shapes)
            if status != 200:
                wrong.append(f"{where}: :partition answers {status}: {local.get('detail')}\n{text}")
                continue
            status, again = post("/v1/run", {"program": {"text": local["text"]}, "arguments": arguments})
            if status != 200:
                wrong.append(f"{where}: the text runs with HTTP {status}: {again.get('detail')}\n{local['text']}")
                continue
            differs(again, "the text of :partition")
            status, told = post(f"/v1/programs/{program}:explain", placed)
            if status != 200:
                wrong.append(f"{where}: :explain answers {status}: {told.get('detail')}")
                continue
            moves = [m for f in told["functions"] for m in f["neighbours"] + f["collectives"]]
            halos = [m for m in moves if m["kind"] == "halo_exchange"]
            total = sum(m["bytes"] for m in moves if case.summed or m["of"].get("argument") in read)
            most = sum(gathered(case, i, specs[i], dict(axes)) for i in read)
            least = lacking_of_sums(case, spec[:2], axes) if case.summed else lacking(case, spec, axes)
            if least is None:  # sums over parts of several sizes are not cut
                least = most
            if halos:
                exchanged += 1
                halo_bytes += total
                gather_bytes += most
                for m in halos:
                    if m["op"] != "stablehlo." + (case.op or make.__name__.strip("_")) or m["line"] < 3 or not m["axes"].strip("{}"):
                        wrong.append(f"{where}: the exchange is told without op, line or axes: {m}")
            if total > (most if case.gathers else min(least, most)):
                wrong.append(f"{where}: {total} bytes are moved though {least} are lacking, gathering moves {most}: {moves}\n{text}")
    for line in wrong[:10]:
        print("WRONG", line)
    print(f"{tried} cut ops, {exchanged} exchange rows: {halo_bytes} bytes a device, gathering {gather_bytes}; {len(wrong)} are wrong")
    return 1 if wrong or exchanged * 3 < tried else 0


sys.exit(main())
