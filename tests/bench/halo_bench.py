#!/usr/bin/env python3
"""A CNN step (two convolutions of 3x3 with max pools behind them) over images whose height is cut over 2, 4 and 8 devices: rows of
neighbours fetched, against every device getting the whole height before each convolution and pool, which sharding constraints in the
same program ask for. Bytes a device receives, as :explain counts them, and milliseconds of `run` (Server-Timing), medians of turns that
alternate. Bytes are what devices on several machines pay: a ratio below 0.1 is expected. In one process, where nothing is sent, both are
copies: gathering copies the images once and shares whole activations from then on, an exchange copies the rows of every op's operand.

halo_bench.py URL
"""
import http.client
import json
import re
import statistics
import sys
import urllib.parse

ROUNDS = 15
SIZE = 256


def constrained(value, name, dims, gathers):
    if not gathers:
        return "", value
    return (f"    %{name} = sdy.sharding_constraint %{value} <@mesh, [{{}}, {{}}, {{}}, {{}}]> : tensor<{dims}>\n", name)


def program(devices, gathers):
    n, lines = SIZE, []

    def conv(index, value, n, features, outputs):
        text, read = constrained(value, f"g{index}", f"4x{n}x{n}x{features}xf32", gathers)
        lines.append(text + f"""    %c{index} = stablehlo.convolution(%{read}, %k{index}) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {{stride = [1, 1], pad = [[1, 1], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
      : (tensor<4x{n}x{n}x{features}xf32>, tensor<3x3x{features}x{outputs}xf32>) -> tensor<4x{n}x{n}x{outputs}xf32>
""")
        return f"c{index}"

    def pool(index, value, n, features):
        text, read = constrained(value, f"h{index}", f"4x{n}x{n}x{features}xf32", gathers)
        lines.append(text + f"""    %p{index} = "stablehlo.reduce_window"(%{read}, %low) <{{window_dimensions = array<i64: 1, 3, 3, 1>,
      window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }}) {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}, {{"x"}}, {{}}, {{}}]>]>}}
      : (tensor<4x{n}x{n}x{features}xf32>, tensor<f32>) -> tensor<4x{n // 2}x{n // 2}x{features}xf32>
""")
        return f"p{index}"

    last = pool(2, conv(2, pool(1, conv(1, "x", n, 3, 16), n, 16), n // 2, 16, 16), n // 2, 16)
    out = f"tensor<4x{n // 4}x{n // 4}x16xf32>"
    cut = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}, {}]>}'
    return f"""module {{
  sdy.mesh @mesh = <["x"={devices}]>
  func.func public @main(%x: tensor<4x{n}x{n}x3xf32> {cut}, %k1: tensor<3x3x3x16xf32>, %k2: tensor<3x3x16x16xf32>) -> ({out} {cut}) {{
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
{"".join(lines)}    return %{last} : {out}
  }}
}}
"""


def main():
    url = urllib.parse.urlsplit(sys.argv[1])
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=300)

    def post(path, body, content="application/json"):
        connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), {"Content-Type": content})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        if answer.status >= 300:
            sys.exit(f"{path}: HTTP {answer.status}: {told}")
        return told, answer.headers.get("Server-Timing", "")

    def milliseconds(timing):
        return float(re.search(r"run;dur=([0-9.]+)", timing).group(1))

    arrays = []
    for shape in ((4, SIZE, SIZE, 3), (3, 3, 3, 16), (3, 3, 16, 16)):
        count = 1
        for size in shape:
            count *= size
        path = f"/v1/arrays?dtype=float32&shape={','.join(map(str, shape))}&durability=memory"
        arrays.append(post(path, b"\0\0\x80\x3e" * count, "application/octet-stream")[0]["id"])
    print("devices  bytes: halo   gather  ratio   ms: halo  gather  ratio")
    for devices in (2, 4, 8):
        ways = {}
        for gathers in (False, True):
            name = post("/v1/programs", {"text": program(devices, gathers)})[0]["id"]
            told = post(f"/v1/programs/{name}:explain", {})[0]
            moved = sum(m["bytes"] for f in told["functions"] for m in f["neighbours"] + f["collectives"])
            request = {"program": {"id": name}, "arguments": [{"array": a} for a in arrays], "results": {"encoding": "none"}}
            ways[gathers] = (moved, request, [])
            post("/v1/run", request)
        for _ in range(ROUNDS):
            for moved, request, times in ways.values():
                times.append(milliseconds(post("/v1/run", request)[1]))
        (near, _, near_times), (whole, _, whole_times) = ways[False], ways[True]
        a, b = statistics.median(near_times), statistics.median(whole_times)
        print(f"{devices:7} {near:12,} {whole:9,} {near / whole:6.3f} {a:9.2f} {b:7.2f} {a / b:6.2f}")


main()
