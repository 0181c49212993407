"""A run that is asked for the first NaN or infinity: nonfinite_test.py BINARY. The answer names the step that made it of finite values, by op,
line and device; what came in, constants and padding are no step's doing."""
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


class Nonfinite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Meshd(BINARY, "--devices", "4").__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def first(self, text, argument, sharded=False, **asked):
        body = {"program": {"text": text}, "arguments": [argument], **asked}
        if sharded:
            body.update(mesh=MESH, in_shardings=[{"spec": [["x"]]}])
        return ok(self.server.ask("POST", "/v1/run", body)).get("first_nonfinite")

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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
