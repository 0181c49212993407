"""A run that is asked for the first NaN or infinity: nonfinite_test.py BINARY. The answer names the op that made it of finite values, its line
and device, wherever others run it in one step with its neighbours; what came in, constants and padding are no op's doing."""
import random
import re
import sys
import unittest

from server import Meshd, ok

BINARY = sys.argv[1]
MESH = {"axis_names": ["x"], "devices": [0, 1, 2, 3]}
BIG = 3e38

# A logarithm in line 3, of what the argument says; line 4 only hands on what it makes.
LOG = """func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<7xf32>
  %1 = stablehlo.log %0 : tensor<7xf32>
  %2 = stablehlo.reverse %1, dims = [0] : tensor<7xf32>
  return %2 : tensor<7xf32>
}"""
INVERSE = """func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<7xf32>
  %0 = stablehlo.divide %one, %x : tensor<7xf32>
  return %0 : tensor<7xf32>
}"""
MAXIMUM = """func.func @main(%x: tensor<7xf32>) -> tensor<f32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0] : (tensor<7xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
SUM = """func.func @main(%x: tensor<8xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
LOOP = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %limit = stablehlo.constant dense<200> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<f32> cond {
    %p = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.add %y, %y : tensor<f32>
    stablehlo.return %j, %z : tensor<i32>, tensor<f32>
  }
  return %0#1 : tensor<f32>
}"""

# Chains that other runs execute as one step.
CHAIN = """def f(x):
  a = x * 2
  b = jnp.log(a)
  return b + 1"""
LONG_CHAIN = "def f(x):\n" + "  x = x * 1.5\n" * 10 + "  x = jnp.sqrt(x - 5)\n" + "  x = x + 1\n" * 10 + "  return x"
PASSING = """def f(x):
  a = jnp.exp(x)
  b = 1 / a
  return b + 1"""
ROWS = """def f(x):
  y = jnp.tanh(x @ x.T) / jnp.sqrt(jnp.float32(7))
  return jax.nn.softmax(y * jnp.exp(y) - jnp.sum(x))"""
# The logarithm of line 2, called in each iteration: of 3, 1 and -1.
CALLED = """func.func private @chain(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.log %a : tensor<f32>
  %1 = stablehlo.add %0, %0 : tensor<f32>
  return %1 : tensor<f32>
}
func.func public @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %limit = stablehlo.constant dense<-4.0> : tensor<f32>
  %0:2 = stablehlo.while(%y = %x, %sum = %zero) : tensor<f32>, tensor<f32> cond {
    %p = stablehlo.compare GT, %y, %limit, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %l = func.call @chain(%y) : (tensor<f32>) -> tensor<f32>
    %s = stablehlo.add %sum, %l : tensor<f32>
    %z = stablehlo.subtract %y, %two : tensor<f32>
    stablehlo.return %z, %s : tensor<f32>, tensor<f32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}"""
# A constant that is infinite: in a choice, in a mask of large arrays, as what a loop begins with.
MASKED = """def f(x):
  y = jnp.where(x > 0, x, -jnp.inf)
  return jnp.max(y) + jnp.max(jnp.where(x < 3, jnp.full((300, 7), jnp.inf), x))"""
RUNNING_MAXIMUM = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0:2 = stablehlo.while(%i = %zero, %y = %low) : tensor<i32>, tensor<f32> cond {
    %p = stablehlo.compare LT, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.maximum %y, %x : tensor<f32>
    stablehlo.return %j, %z : tensor<i32>, tensor<f32>
  }
  return %0#1 : tensor<f32>
}"""


class Nonfinite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Meshd(BINARY, "--devices", "4").__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def run_program(self, text, argument, sharded=False, devices=4, **asked):
        program = {"text": text, **({"format": "numpy"} if text.startswith("def ") else {})}
        body = {"program": program, "arguments": [argument], **asked}
        if sharded:
            body.update(mesh={**MESH, "devices": MESH["devices"][:devices]}, in_shardings=[{"spec": [["x"]]}])
        return ok(self.server.ask("POST", "/v1/run", body))

    def first(self, *given, **asked):
        return self.run_program(*given, **asked).get("first_nonfinite")

    def told(self, *given, **asked):
        found = self.first(*given, **asked)
        return found and (found["value"], found["op"], found["line"], found["device"])

    def lowered(self):
        """How many programs were lowered, none found in the cache."""
        text = self.server.ask("GET", "/metrics")[2].decode()
        return int(re.search(r'meshd_compile_stages_total{stage="lower",cache="miss"} (\d+)', text).group(1))

    def test_the_step_that_makes_a_nan_is_named(self):
        found = self.first(LOG, [1, 2, -3, 4, 5, 6, 7], debug_nans=True)
        self.assertEqual((found["value"], found["line"], found["device"]), ("nan", 3, 0))
        self.assertIn("log", found["op"])
        self.assertIsNone(self.first(LOG, [1, 2, -3, 4, 5, 6, 7]), "nobody asked")
        self.assertIsNone(self.first(LOG, [1, 2, -3, 4, 5, 6, 7], debug_infs=True), "a NaN is no infinity")

    def test_what_comes_in_is_no_steps_doing(self):
        self.assertIsNone(self.first(LOG, [1, "NaN", 3, 4, 5, 6, 7], debug_nans=True))
        self.assertIsNone(self.first(MAXIMUM, [1, 2, 3, 4, 5, 6, 7], debug_infs=True))
        self.assertIsNone(self.first(MAXIMUM, [1, 2, 3, 4, 5, 6, 7], sharded=True, debug_infs=True))

    def test_padding_of_uneven_shards_is_not_looked_at(self):
        self.assertIsNone(self.first(INVERSE, [1, 2, 3, 4, 5, 6, 7], sharded=True, debug_nans=True, debug_infs=True))
        found = self.first(INVERSE, [1, 2, 3, 4, 5, 6, 0], sharded=True, debug_nans=True, debug_infs=True)
        self.assertEqual((found["value"], found["line"], found["device"]), ("infinity", 3, 3))

    def test_a_collective_may_be_the_first(self):
        found = self.first(SUM, [BIG, 0, BIG, 0, 0, 0, 0, 0], sharded=True, debug_infs=True)
        self.assertEqual((found["value"], found["line"]), ("infinity", 3))
        self.assertIn("all_reduce", found["op"])

    def test_an_iteration_of_a_loop_is_looked_at(self):
        found = self.first(LOOP, 1, debug_infs=True)
        self.assertEqual((found["value"], found["line"]), ("infinity", 10))

    def test_ops_are_named_of_chains_that_are_fused(self):
        log = ("nan", "stablehlo.log", 3, 0)
        self.assertEqual(self.told(CHAIN, [-1.0, 2.0], debug_nans=True), log)
        self.assertIsNone(self.told(CHAIN, [1.0, 2.0], debug_nans=True, debug_infs=True))
        self.assertEqual(self.told(LONG_CHAIN, [-1.0, 2.0], debug_nans=True), ("nan", "stablehlo.sqrt", 12, 0))

    def test_an_infinity_that_does_not_leave_its_chain_is_found(self):
        found = ("infinity", "stablehlo.exponential", 2, 0)
        self.assertEqual(self.told(PASSING, 1000.0, debug_infs=True), found)
        self.assertEqual(self.told(PASSING, 1000.0, debug_nans=True, debug_infs=True), found)
        self.assertIsNone(self.told(PASSING, 1000.0, debug_nans=True))

    def test_chains_are_searched_on_the_device_that_has_the_element(self):
        self.assertEqual(self.told(CHAIN, [1.0, 2.0, 3.0, -4.0], sharded=True, devices=2, debug_nans=True), ("nan", "stablehlo.log", 3, 1))
        self.assertEqual(self.told(PASSING, [1000.0, 1.0], sharded=True, devices=2, debug_infs=True), ("infinity", "stablehlo.exponential", 2, 0))

    def test_functions_that_a_loop_calls_are_searched(self):
        self.assertEqual(self.told(CALLED, 3.0, debug_nans=True), ("nan", "stablehlo.log", 2, 0))

    def test_infinite_constants_are_no_ops_doing(self):
        x = [[1.0, 2.0, -3.0, 4.0, 5.0, 6.0, 7.0]] * 300
        self.assertIsNone(self.told(MASKED, x, debug_nans=True, debug_infs=True))
        self.assertIsNone(self.told(MASKED, x, sharded=True, debug_nans=True, debug_infs=True))
        self.assertIsNone(self.told(RUNNING_MAXIMUM, 1.0, debug_infs=True))

    def test_other_runs_of_the_program_stay_fused_and_have_the_same_numbers(self):
        draw = random.Random(7)
        x = [[draw.gauss(0, 1) for _ in range(48)] for _ in range(64)]
        def steps(**asked):
            answer = self.run_program(ROWS, x, results={"encoding": "base64"}, profile=True, **asked)
            return [step["op"] for step in answer["profile"]["steps"]], answer["results"]
        before = self.lowered()
        fused, numbers = steps()
        self.assertTrue(any(op.startswith("fused") for op in fused), fused)
        apart, debug_numbers = steps(debug_nans=True)
        self.assertFalse([op for op in apart if op.startswith("fused")])
        self.assertGreater(len(apart), len(fused))
        self.assertEqual(debug_numbers, numbers)
        self.assertEqual(self.lowered(), before + 2)
        self.assertEqual((steps()[0], steps(debug_infs=True)[0]), (fused, apart))
        self.assertEqual(self.lowered(), before + 2, "each plan is kept")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
