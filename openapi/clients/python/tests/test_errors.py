"""A class for each code of the server, and errors that show the line."""

import json
import traceback
import urllib.request

import jax
import numpy as np
import pytest

import meshd
from meshd import errors, errors_by_code

WRONG = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  %1 = stablehlo.ad %0, %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}"""


def codes_of(server):
    request = urllib.request.Request(server.url + "/docs/errors", headers={"Accept": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["items"]


def test_every_code_has_a_class(server):
    """If this fails: tools/make_errors.py URL > src/meshd/errors_by_code.py."""
    listed = {row["code"]: row["hint"] for row in codes_of(server)}
    known = {getattr(errors_by_code, name).code: getattr(errors_by_code, name).hint for name in errors_by_code.__all__}
    assert known == listed
    assert all(issubclass(getattr(meshd, name), meshd.Error) for name in errors_by_code.__all__)


def test_errors_have_what_the_problem_says(m):
    with pytest.raises(meshd.NotFound) as caught:
        m.array("arr_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b41")
    error = caught.value
    assert (error.code, error.status, error.line, error.source) == ("not_found", 404, None, None)
    assert error.detail and error.instance.startswith("req-") and error.hint and error.hint in str(error)


def test_errors_of_a_text_show_the_line(m):
    with pytest.raises(meshd.Error) as caught:
        m.run(WRONG, np.zeros(2, np.float32))
    error = caught.value
    assert error.status == 422 and error.line == 3 and error.column == 8
    shown = str(error).split("\n")
    line = next(number for number, each in enumerate(shown) if "stablehlo.ad %0" in each)
    assert shown[line].startswith("     3 | ") and shown[line + 1].index("^") == shown[line].index("stablehlo.ad")


def test_long_lines_are_cut_around_the_column():
    text = "x" * 300 + " wrong " + "y" * 300
    problem = {
        "code": "program_syntax",
        "detail": "no",
        "errors": [{"pointer": "/text", "detail": "no", "line": 1, "column": 302}],
    }
    error = errors.from_problem(422, problem, text)
    shown = str(error).split("\n")
    assert isinstance(error, meshd.ProgramSyntax) and len(shown[1]) < 200
    assert shown[1][shown[2].index("^") :].startswith("wrong")


def test_pointers(m):
    with pytest.raises(meshd.Error) as caught:
        m.using(deadline=-1.0).run(lambda x: x, 1.0)
    assert caught.value.pointer == "/deadline" and caught.value.errors[0]["pointer"] == "/deadline"


def test_a_code_of_a_newer_server_is_an_error():
    error = errors.from_problem(418, {"code": "teapot", "detail": "short and stout", "hint": "pour", "errors": []})
    assert type(error) is meshd.Error and error.code == "teapot" and str(error) == "teapot: short and stout\nhint: pour"


def test_wrong_arguments(m):
    with pytest.raises(TypeError, match="2 arguments"):
        m.run("func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }", 1.0)
    with pytest.raises(TypeError, match=r"float32\[2\]"):
        m.run("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }", np.zeros(3))
    with pytest.raises(TypeError, match="function, StableHLO text"):
        m.run(3, 4)


def test_text_of_ones_own(m):
    text = """func.func @main(%a: tensor<f32>, %b: tensor<2xi32>) -> (tensor<2xi32>, tensor<f32>) {
      return %b, %a : tensor<2xi32>, tensor<f32>
    }"""
    b, a = m.run(text, 1.5, [1, 2])
    assert b.tolist() == [1, 2] and b.dtype == np.int32 and a == 1.5
    assert m.run("func.func @main() { return }") == ()


def test_tracebacks_are_about_the_callers_line(m):
    def mine():
        return m.run("def f(x): return x @ y", 1.0)

    def raises(_):
        raise LookupError("of a function")

    for run, kind in (
        (mine, meshd.InvalidProgram),
        (lambda: m.jit(lambda x: jax.pure_callback(raises, x, x))(np.float32(1)), meshd.CallbackFailed),
    ):
        with pytest.raises(kind) as caught:
            run()
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert len(names) <= 5 and {"request", "_post", "_finish"}.isdisjoint(names), names
    assert isinstance(caught.value.__cause__, LookupError)
