"""Program texts that many rows use, put together from pieces."""


def call(operands, results=0, index=0, token=None, inner=None, sharding=""):
    """A callback op: `%token` threads through it when given; `operands` are (name, type), `results` types of values."""
    names = ([f"%{token}"] if token else []) + [f"%{name}" for name, _ in operands]
    takes = (["!stablehlo.token"] if token else []) + [kind for _, kind in operands]
    gives = (["!stablehlo.token"] if token else []) + (results or [])
    out = gives[0] if len(gives) == 1 else "(" + ", ".join(gives) + ")"
    return (f'stablehlo.custom_call @xla_ffi_python_cpu_callback({", ".join(names)}) {{backend_config = "", has_side_effect = true, '
            f'mhlo.backend_config = {{index = {index} : ui64}}{sharding}}} : ({", ".join(takes)}) -> {out}')


LOG = ("func.func @main(%t: !stablehlo.token {jax.token = true}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}, tensor<i32>) {\n"
       f"  %u = {call([('n', 'tensor<i32>')], token='t')}\n  return %u, %n : !stablehlo.token, tensor<i32>\n}}")

# Counts to n, then logs n: n says how long it takes.
SLOW_LOG = ("func.func @main(%t: !stablehlo.token {jax.token = true}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}) {\n"
            "  %zero = stablehlo.constant dense<0> : tensor<i32>\n  %one = stablehlo.constant dense<1> : tensor<i32>\n"
            "  %m = stablehlo.while(%i = %zero) : tensor<i32> cond {\n"
            "    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %p : tensor<i1>\n"
            "  } do {\n    %j = stablehlo.add %i, %one : tensor<i32>\n    stablehlo.return %j : tensor<i32>\n  }\n"
            f"  %u = {call([('m', 'tensor<i32>')], token='t')}\n  return %u : !stablehlo.token\n}}")

# Two ordered callbacks on every device of a mesh x=n: first the device's own part, then its double.
def two_on_every_device(n):
    return (f'module {{ sdy.mesh @mesh = <["x"={n}]>\n'
            f'  func.func @main(%t: !stablehlo.token {{jax.token = true}}, %a: tensor<{n}xi32>) -> (!stablehlo.token {{jax.token = true}}) {{\n'
            '    %r = sdy.manual_computation(%t, %a) in_shardings=[<@mesh, []>, <@mesh, [{"x"}]>] out_shardings=[<@mesh, []>] '
            'manual_axes={"x"} (%u: !stablehlo.token, %b: tensor<1xi32>) {\n'
            f"      %v = {call([('b', 'tensor<1xi32>')], token='u', index=0)}\n"
            "      %c = stablehlo.add %b, %b : tensor<1xi32>\n"
            f"      %w = {call([('c', 'tensor<1xi32>')], token='v', index=1)}\n"
            f"      sdy.return %w : !stablehlo.token\n    }} : (!stablehlo.token, tensor<{n}xi32>) -> !stablehlo.token\n"
            "    return %r : !stablehlo.token\n  } }")


# A cut argument and an ordered callback on its sum, on the whole value.
def sum_log(n, sharding=""):
    return (f'module {{ sdy.mesh @mesh = <["x"={n}]>\n  sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]>\n'
            f'  func.func @main(%t: !stablehlo.token {{jax.token = true}}, %a: tensor<{n}xi32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) '
            "-> (!stablehlo.token {jax.token = true}) {\n    %zero = stablehlo.constant dense<0> : tensor<i32>\n"
            f"    %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<{n}xi32>, tensor<i32>) -> tensor<i32>\n"
            f"    %u = {call([('s', 'tensor<i32>')], token='t', sharding=sharding)}\n    return %u : !stablehlo.token\n  }} }}")


MAXIMAL = ", sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_0, []>]>"
