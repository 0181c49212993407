"""Program texts and bodies with sizes that no machine has, for tests/http/extremes_test.py."""

BIG = 2**60
DENSE = 1_000_000


def main(body, arguments="", result="tensor<f32>", before=""):
    return f"module {{ {before}\n  func.func @main({arguments}) -> {result} {{\n    {body}\n  }} }}"


def over(mesh, spec):
    return main("return %a : tensor<8xf32>", f"%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{spec}]>}}", "tensor<8xf32>",
                f"sdy.mesh @mesh = <[{mesh}]>")


def gspmd(sharding):
    return main("return %a : tensor<8xf32>", f'%a: tensor<8xf32> {{mhlo.sharding = "{sharding}"}}', "tensor<8xf32>")


def summed(kind, count, attributes=""):
    """A collective over groups as they are written."""
    return main(f"""%0 = "stablehlo.all_reduce"(%a) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = {kind}, use_global_device_ids}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }}) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>""", "%a: tensor<8xf32>", "tensor<8xf32>").replace("module {", f"module attributes {{mhlo.num_partitions = {count} : i32{attributes}}} {{", 1)


SUM = """%z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<{0}xf32>, tensor<f32>) -> tensor<f32>
    return %r : tensor<f32>"""

TEXTS = {
    "splat of 2^60": main(f"%0 = stablehlo.constant dense<1.0> : tensor<{BIG}xf32>\n    " + SUM.replace("{0}", str(BIG))),
    "splat of 2^40": main(f"%0 = stablehlo.constant dense<1.0> : tensor<{2**40}xf32>\n    " + SUM.replace("{0}", str(2**40))),
    "splat of 2^60 elements given back": main(f"%0 = stablehlo.constant dense<1.0> : tensor<{BIG}xf32>\n    return %0 : tensor<{BIG}xf32>", "", f"tensor<{BIG}xf32>"),
    "iota of 2^60": main(f"%0 = stablehlo.iota dim = 0 : tensor<{BIG}xf32>\n    " + SUM.replace("{0}", str(BIG))),
    "iota of 2^40": main(f"%0 = stablehlo.iota dim = 0 : tensor<{2**40}xi8>\n    return %0 : tensor<{2**40}xi8>", "", f"tensor<{2**40}xi8>"),
    "dimension of 2^63": main("return %a : tensor<9223372036854775808xf32>", "%a: tensor<9223372036854775808xf32>", "tensor<9223372036854775808xf32>"),
    "dimensions whose product wraps": main("return %a : tensor<4294967296x4294967296x4294967296xf32>", "%a: tensor<4294967296x4294967296x4294967296xf32>", "tensor<4294967296x4294967296x4294967296xf32>"),
    "no elements beside huge dimensions": main("%0 = stablehlo.add %a, %a : tensor<0x4611686018427387904x4xf32>\n    return %0 : tensor<0x4611686018427387904x4xf32>", "%a: tensor<0x4611686018427387904x4xf32>", "tensor<0x4611686018427387904x4xf32>"),
    "many dimensions": main("return %a : tensor<" + "1x" * 5000 + "f32>", "%a: tensor<" + "1x" * 5000 + "f32>", "tensor<" + "1x" * 5000 + "f32>"),
    "pad by 2^62": main(f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.pad %a, %z, low = [{2**62}], high = [{2**62}], interior = [{2**62}] : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>""", "%a: tensor<8xf32>", "tensor<8xf32>"),
    "pad by 2^40": main(f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
    %a = stablehlo.constant dense<1.0> : tensor<8xf32>
    %0 = stablehlo.pad %a, %z, low = [{2**40}], high = [0], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<{2**40 + 8}xf32>
    """ + SUM.replace("{0}", str(2**40 + 8))),
    "pad that takes away 2^62": main(f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
    %a = stablehlo.constant dense<1.0> : tensor<8xf32>
    %0 = stablehlo.pad %a, %z, low = [-{2**62}], high = [{2**62}], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    """ + SUM.replace("{0}", "8")),
    "slice beyond 2^62": main(f"%0 = stablehlo.slice %a [{2**62}:{2**63 - 1}:{2**62}] : (tensor<8xf32>) -> tensor<2xf32>\n    return %0 : tensor<2xf32>", "%a: tensor<8xf32>", "tensor<2xf32>"),
    "broadcast to 2^40": main(f"""%c = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<{2**40}xf32>
    """ + SUM.replace("{0}", str(2**40))),
    "reshape of what wraps": main(f"""%0 = stablehlo.reshape %a : (tensor<0xf32>) -> tensor<{2**32}x{2**32}xf32>
    return %0 : tensor<{2**32}x{2**32}xf32>""", "%a: tensor<0xf32>", f"tensor<{2**32}x{2**32}xf32>"),
    "product of 2^31": main(f"""%a = stablehlo.constant dense<1.0> : tensor<{2**31}x2xf32>
    %b = stablehlo.constant dense<1.0> : tensor<2x{2**31}xf32>
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<{2**31}x2xf32>, tensor<2x{2**31}xf32>) -> tensor<{2**31}x{2**31}xf32>
    return %0 : tensor<{2**31}x{2**31}xf32>""", "", f"tensor<{2**31}x{2**31}xf32>"),
    "window of 2^62": main(f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
    %a = stablehlo.constant dense<1.0> : tensor<8xf32>
    %0 = "stablehlo.reduce_window"(%a, %z) <{{window_dimensions = array<i64: {2**62}>, window_strides = array<i64: {2**62}>, base_dilations = array<i64: {2**62}>, window_dilations = array<i64: {2**62}>, padding = dense<[[{2**62}, {2**62}]]> : tensor<1x2xi64>}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }}) : (tensor<8xf32>, tensor<f32>) -> tensor<1xf32>
    return %0 : tensor<1xf32>""", "", "tensor<1xf32>"),
    "window padded by 2^40": main(f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
    %a = stablehlo.constant dense<1.0> : tensor<8xf32>
    %0 = "stablehlo.reduce_window"(%a, %z) <{{window_dimensions = array<i64: {2**40}>, padding = dense<[[{2**40}, 0]]> : tensor<1x2xi64>}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }}) : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
    return %0 : tensor<9xf32>""", "", "tensor<9xf32>"),
    "splat of groups": summed(f"dense<0> : tensor<{DENSE}x{DENSE}xi64>", 2),
    "splat of one group": summed("dense<0> : tensor<1x1xi64>", 2),
    "groups of a million": summed(f"dense<0> : tensor<1x{DENSE}xi64>", DENSE),
    "groups that are written out": summed("dense<[" + ",".join(f"[{i}]" for i in range(50_000)) + "]> : tensor<50000x1xi64>", 50_000),
    "2^31 partitions": summed("dense<0> : tensor<1x1xi64>", 2**31 - 1),
    "2^63 partitions": summed("dense<0> : tensor<1x1xi64>", 2**63 - 1),
    "-1 partitions": summed("dense<0> : tensor<1x1xi64>", -1),
    "2^31 replicas": summed("dense<0> : tensor<1x1xi64>", 1, f", mhlo.num_replicas = {2**31 - 1} : i32"),
    "an axis of 2^31": over('"x"=2147483648', '{"x"}'),
    "an axis of 2^20": over('"x"=1048576', '{"x"}'),
    "an axis of 0": over('"x"=0', '{"x"}'),
    "an axis of -1": over('"x"=-1', '{"x"}'),
    "three axes of 2^31": over('"x"=2147483648, "y"=2147483648, "z"=2147483648', '{"x"}'),
    "three axes of 2^30": over('"x"=1073741824, "y"=1073741824, "z"=1073741824', '{"x", "y", "z"}'),
    "20 axes of 2": over(", ".join(f'"a{i}"=2' for i in range(20)), "{" + ", ".join(f'"a{i}"' for i in range(20)) + "}"),
    "10,000 axes of 1": over(", ".join(f'"a{i}"=1' for i in range(10_000)), "{}"),
    "a part of 2^40": over('"x"=8', '{"x":(1099511627776)2}'),
    "a priority of 10^9": over('"x"=8', '{"x"}p1000000000'),
    "device ids of 2^62": over('"x"=2], device_ids=[0, 4611686018427387904', '{"x"}'),
    "tiles of 2^31": gspmd("{devices=[2147483648]<=[2147483648]}"),
    "tiles that wrap": gspmd("{devices=[4294967296,4294967296]<=[18446744073709551616]}"),
    "tiles of 2^20": gspmd("{devices=[1048576]<=[1048576]}"),
    "tiles of 2^20, transposed": gspmd("{devices=[8,131072]<=[1024,1024]T(1,0) last_tile_dim_replicate}"),
    "tiles of 0": gspmd("{devices=[0]<=[0]}"),
    "tiles of -1": gspmd("{devices=[-1]0}"),
    "a device of 2^62": gspmd("{maximal device=4611686018427387904}"),
    "many tile dimensions": gspmd("{devices=[" + ",".join(["1"] * 10_000) + "]0}"),
    "attribute of 2^63": main("return", "", "()", "").replace("module {", "module attributes {a = 9223372036854775808 : i64} {", 1),
    "a constant of half a byte of text": main(f'%0 = stablehlo.constant dense<"0x00"> : tensor<{BIG}xi8>\n    return %0 : tensor<{BIG}xi8>', "", f"tensor<{BIG}xi8>"),
    "a list that is too short": main(f"%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<{BIG}xf32>\n    return %0 : tensor<{BIG}xf32>", "", f"tensor<{BIG}xf32>"),
    "a dense attribute of 2^40": main("return", "", "()", "").replace("module {", f"module attributes {{a = dense<0> : tensor<{2**40}xi64>}} {{", 1),
    "an array attribute of 2^20": main("return", "", "()", "").replace("module {", "module attributes {a = array<i64: " + ", ".join(["1"] * 2**18) + ">} {", 1),
    "1e400": main("%0 = stablehlo.constant dense<1e400> : tensor<f32>\n    return %0 : tensor<f32>"),
    "deep parentheses": "module attributes {a = " + "[" * 10_000 + "]" * 10_000 + "} {}",
    "deep tuples": "func.func @main(%a: " + "tuple<" * 10_000 + "f32" + ">" * 10_000 + ") { return }",
    "NUL": "func.func @main() { return }\0",
    "empty": "",
    "a 1 MB name": "func.func @" + "a" * 2**20 + "() { return }",
    "100,000 functions": "\n".join(f"func.func private @f{i}() {{ return }}" for i in range(50_000)) + "\nfunc.func @main() { return }",
    "peak that wraps": main("\n    ".join(f"%{i} = stablehlo.constant dense<{i}.0> : tensor<{2**59}xf32>" for i in range(9)) + "\n    "
                            + "\n    ".join(f"%s{i} = stablehlo.add %{i}, %{i + 1} : tensor<{2**59}xf32>" for i in range(8))
                            + "\n    return " + ", ".join(f"%s{i}" for i in range(8)) + " : " + ", ".join([f"tensor<{2**59}xf32>"] * 8),
                            "", "(" + ", ".join([f"tensor<{2**59}xf32>"] * 8) + ")"),
}

HUGE = 2**31
EMPTY = {"axes": [{"name": "x", "size": 0}]}
PROGRAM = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
ARGUMENT = {"dtype": "float32", "shape": [4], "data": [1, 2, 3, 4]}


def axes(*sizes):
    return {"axes": [{"name": f"a{i}", "size": size} for i, size in enumerate(sizes)]}


def ATTACKS(made):
    """(name, method, path, body, (code, pointer) or None) of requests about meshes, by the ids of what is there."""
    job = lambda mesh: {"program": {"text": PROGRAM}, "arguments": [ARGUMENT], "mesh": mesh}
    stored = "/v1/programs/" + made["program"]
    session = f"/v1/sessions/{made['session']}/jobs"
    run_codes = {"three axes of 2^31": (axes(HUGE, HUGE, HUGE), "/mesh/axes/0/size"), "one axis of 2^31": (axes(HUGE), "/mesh/axes/0/size"),
                 "axes that multiply to 2^21": (axes(2, 2**20), "/mesh/axes/1/size"), "an axis of -1": (axes(2, -1), "/mesh/axes/1/size"),
                 "a shape of 2^31": ({"axis_names": ["x"], "shape": [HUGE]}, "/mesh/shape/0"),
                 "a shape that wraps": ({"axis_names": ["x", "y"], "shape": [2**20, 2**20]}, "/mesh/shape/1"),
                 "1,000 axes": (axes(*[1] * 1000), "/mesh/axes"), "a long name": ({"axes": [{"name": "x" * 257, "size": 1}]}, "/mesh/axes/0/name"), "two names alike": ({"axis_names": ["x", "x"], "shape": [1, 1]}, "/mesh/axis_names"),
                 "one device twice": ({"axis_names": ["x"], "devices": [1, 1]}, "/mesh/devices/1")}
    for name, (mesh, pointer) in run_codes.items():
        yield f"run: {name}", "POST", "/v1/run", job(mesh), ("invalid_request", pointer)
        yield f"job: {name}", "POST", session, job(mesh), ("invalid_request", pointer)
        for verb in (":explain", ":partition", ":suggest", ":stablehlo"):
            yield f"{verb}: {name}", "POST", stored + verb, {"mesh": mesh}, ("invalid_request", pointer)
            yield f"{verb} by symbol: {name}", "POST", stored + verb, {"meshes": {"mesh": mesh}}, ("invalid_request", pointer.replace("/mesh", "/meshes/mesh", 1))
        yield f"meshes: {name}", "POST", "/v1/meshes", mesh, ("invalid_mesh", pointer.removeprefix("/mesh"))
    yield "run: the empty mesh", "POST", "/v1/run", job(EMPTY), ("empty_mesh", "/mesh")
    yield "run: a million devices", "POST", "/v1/run", job(axes(2**20)), ("too_few_devices", None)
    yield "job: the empty mesh", "POST", session, job(EMPTY), ("empty_mesh", "/mesh")
    plain = {"text": PROGRAM}
    yield "meshes: the empty mesh", "POST", "/v1/meshes", axes(0, 4), None
    yield "meshes: many axes beside one of 0", "POST", "/v1/meshes", axes(0, 2**20, 2**20), ("invalid_mesh", "/axes/2/size")
    for verb in (":explain", ":partition", ":suggest", ":stablehlo"):
        yield f"{verb}: the empty mesh", "POST", stored + verb, {"mesh": EMPTY}, None
        yield f"{verb}: a million devices", "POST", stored + verb, {"mesh": axes(2**20)}, None
    yield "resolve: a million devices", "POST", "/v1/shardings:resolve", {"shape": [4096] * 2, "mesh": made["abstract"], "spec": [["x"], ["y"]]}, None
    yield "resolve: a million devices, the last page", "POST", "/v1/shardings:resolve?cursor=1048000&limit=1000", {"shape": [1] * 64, "mesh": made["abstract"], "spec": []}, None
    yield "resolve: the empty mesh", "POST", "/v1/shardings:resolve", {"shape": [4], "mesh": made["none"], "spec": [["x"]]}, ("empty_mesh", None)
    yield "resolve: a shape of -1", "POST", "/v1/shardings:resolve", {"shape": [-1], "parts": [1]}, ("invalid_spec", "/shape/0")
    yield "resolve: parts of 0", "POST", "/v1/shardings:resolve", {"shape": [4], "parts": [0]}, ("invalid_spec", "/parts/0")
    yield "resolve: parts that wrap", "POST", "/v1/shardings:resolve", {"shape": [4] * 4, "parts": [2**16] * 4}, None
    yield "resolve: 2^31 partitions", "POST", "/v1/shardings:resolve", {"shape": [4], "num_partitions": HUGE - 1}, ("too_few_devices", None)
    yield "resolve: 100,000 dimensions", "POST", "/v1/shardings:resolve", {"shape": [1] * 100_000, "num_partitions": 1}, ("invalid_array", None)
    yield "upload: 100,000 dimensions", "POST", "/v1/arrays?dtype=uint8&shape=" + ",".join(["1"] * 2000), None, None
    yield "upload: a mesh without positions", "POST", f"/v1/arrays?mesh={made['none']}&spec=x", ARGUMENT, None
    yield "run: 2^31 partitions", "POST", "/v1/run", {"program": plain, "arguments": [ARGUMENT], "num_partitions": HUGE - 1}, ("too_few_devices", None)
    yield "run: parts of 2^40", "POST", "/v1/run", {"program": plain, "arguments": [ARGUMENT], "in_shardings": [{"parts": [2**40]}]}, None
    yield "run: a long deadline", "POST", "/v1/run", {"program": plain, "arguments": [ARGUMENT], "deadline": 1e300}, ("invalid_request", "/deadline")
    yield "mesh: the text of a million positions", "GET", f"/v1/meshes/{made['abstract']}?view=repr", None, None
    yield "mesh: local of a million positions", "GET", f"/v1/meshes/{made['abstract']}/local", None, None
    yield "mesh: the text of the empty mesh", "GET", f"/v1/meshes/{made['none']}?view=repr", None, None
    yield "mesh: local of the empty mesh", "GET", f"/v1/meshes/{made['none']}/local", None, None
    yield "mesh: devices of the empty mesh", "GET", f"/v1/meshes/{made['none']}?as_process=0", None, None
    yield "session: enters the empty mesh", "POST", f"/v1/sessions/{made['session']}/mesh", {"mesh": made["none"]}, None
