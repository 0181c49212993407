// What a trace makes: types, trees, places of ops, keys of the cache, and bounds of what a text may cost.
#include <gtest/gtest.h>

#include <string>

#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/numpy/numpy.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/print.h"

namespace meshd::numpy {
namespace {

Input array(tensor::DType dtype, tensor::Dims dims, bool weak = false) {
  return {Input::ArrayType{{dtype, std::move(dims)}, weak}};
}
Input f32(tensor::Dims dims) { return array(tensor::DType::kFloat32, std::move(dims)); }

std::string signature_of(const Traced& traced) {
  std::string out;
  for (const ir::Parameter& result : traced.module.main().results)
    out += (out.empty() ? "" : ", ") + tensor::to_string(result.type.tensor);
  return out;
}

std::string refusal(const std::string& text, const Inputs& inputs) {
  try {
    trace(*read(text), inputs, nullptr);
  } catch (const core::Error& error) {
    return error.detail();
  }
  return "";
}

TEST(TraceTest, results_have_types_and_a_tree) {
  const Traced traced = trace(*read("def f(x, n): return {'b': x @ x.T, 'a': (n, x > 0)}"),
                              {{f32({2, 3}), {Input::Static(int64_t{4})}}, {}}, nullptr);
  EXPECT_EQ(signature_of(traced), "i32, 2x3xi1, 2x2xf32");
  EXPECT_EQ(traced.result_tree, R"({"a":["*","*"],"b":"*"})");
}

TEST(TraceTest, ops_have_places_of_the_text) {
  const Traced traced = trace(*read("def f(x):\n    y = x * 2\n    return jnp.exp(y)\n"), {{f32({3})}, {}}, nullptr);
  int32_t line = 0;
  ir::walk(traced.module.main().body, [&](const ir::Op& op) {
    if (op.operands.size() == 1 && op.results.size() == 1) line = op.location.line;
  });
  EXPECT_EQ(line, 3);
}

TEST(TraceTest, a_loop_has_the_place_of_its_statement) {
  const char* texts[] = {"def f(x, n):\n    for i in range(n):\n        x = x * 2\n        x = x + 1\n    return x\n",
                         "def f(x, n):\n    while n > 0:\n        x = x * 2\n        n = n - 1\n    return x\n"};
  for (const char* text : texts) {
    const Traced traced = trace(*read(text), {{f32({3}), array(tensor::DType::kInt32, {})}, {}}, nullptr);
    int32_t line = 0;
    ir::walk(traced.module.main().body, [&](const ir::Op& op) {
      if (op.name == "stablehlo.while") line = op.location.line;
    });
    EXPECT_EQ(line, 2) << text;
  }
}

int count_of(const Traced& traced, std::string_view op_name) {
  int count = 0;
  ir::walk(traced.module.main().body, [&](const ir::Op& op) { count += op.name == op_name ? 1 : 0; });
  return count;
}

TEST(TraceTest, vmap_of_many_rows_is_rewritten_without_a_loop) {
  const Traced traced = trace(*read("def f(x, w): return vmap(lambda r: jnp.sort(jnp.tanh(r @ w))[0])(x)"),
                              {{f32({1000, 4}), f32({4, 5})}, {}}, nullptr);
  EXPECT_EQ(count_of(traced, "stablehlo.while"), 0);
  EXPECT_EQ(count_of(traced, "stablehlo.dot_general"), 1);
  EXPECT_EQ(signature_of(traced), "1000xf32");
}

TEST(TraceTest, vmap_that_logs_is_a_loop_over_many_rows) {
  const Traced traced = trace(*read("def f(x):\n    def g(r):\n        log('row {}', r)\n        return r * 2\n"
                                    "    return vmap(g)(x)"),
                              {{f32({100})}, {}}, nullptr);
  EXPECT_EQ(count_of(traced, "stablehlo.while"), 1);
  EXPECT_EQ(signature_of(traced), "100xf32");
}

TEST(TraceTest, library_functions_have_the_place_of_their_call) {
  const Traced traced = trace(*read("def f(x):\n    y = jnp.trapezoid(x)\n    return y\n"), {{f32({3})}, {}}, nullptr);
  ir::walk(traced.module.main().body, [&](const ir::Op& op) {
    if (op.operands.size() != 2) return;
    EXPECT_EQ(op.location.line, 2) << op.name;
  });
}

TEST(TraceTest, its_text_parses_again) {
  const Traced traced = trace(*read("def f(x, n):\n    for i in range(n):\n        if i > 2:\n            x = "
                                    "jnp.sort(x)\n        x = x.at[i].add(1.0)\n    return x"),
                              {{f32({3}), array(tensor::DType::kInt32, {})}, {}}, nullptr);
  const std::string text = program::print_generic(traced.module);
  EXPECT_EQ(program::print_generic(*program::parse_stablehlo(text)), text);
}

TEST(TraceTest, keys_tell_types_and_static_values_apart) {
  const auto key = [](Input input) { return key_of(Inputs{{std::move(input)}, {}}); };
  EXPECT_NE(key(f32({2})), key(f32({3})));
  EXPECT_NE(key(array(tensor::DType::kFloat32, {}, true)), key(f32({})));
  EXPECT_NE(key({Input::Static(int64_t{1})}), key({Input::Static(1.0)}));
  EXPECT_NE(key({Input::Static(true)}), key({Input::Static(int64_t{1})}));
  EXPECT_NE(key({Input::Static(std::string("a"))}), key({Input::Static(std::string("b"))}));
  EXPECT_EQ(key(f32({2})), key(f32({2})));
}

TEST(TraceTest, the_cost_of_a_text_is_bounded) {
  const Inputs x{{f32({2})}, {}};
  EXPECT_NE(refusal("def f(x): return 10 ** 10 ** 10", x).find("63 bits"), std::string::npos);
  EXPECT_NE(refusal("def f(x): return [0] * 10 ** 9", x).find("longer than is kept"), std::string::npos);
  EXPECT_NE(refusal("def f(x): return list(range(10 ** 12))", x).find("more than 100000"), std::string::npos);
  EXPECT_NE(refusal("def f(x):\n    while True: x = x + 1\n    return x", x).find("has run"), std::string::npos);
  EXPECT_NE(refusal("def f(x): return f(x)", x).find("recursion"), std::string::npos);
  EXPECT_NE(refusal("def f(x): return jnp.zeros((10 ** 9, 10 ** 9, 10 ** 9))", x), "");
  EXPECT_NE(
      refusal("def f(x):\n" + std::string("    x = [x, x]\n") + "    for i in range(60): x = [x, x]\n    return x", x),
      "");
  std::string doubling = "def f(x):\n    s = 'a'\n";
  for (int i = 0; i < 40; ++i) doubling += "    s = s + s\n";
  EXPECT_NE(refusal(doubling + "    return x", x).find("longer than is kept"), std::string::npos);
  const std::string nested =
      "def f(x):\n    for a in range(60):\n        for b in range(60):\n            for c in range(60):\n              "
      "  for d in range(60): x = x + 1\n    return x";
  EXPECT_NE(refusal(nested, x), "");
}

TEST(TraceTest, what_a_text_makes_of_texts_is_bounded) {
  const Inputs x{{f32({2})}, {}};
  const std::string long_text = "def f(x):\n    s = 'a'\n    for i in range(16): s = s + s\n";
  const auto repeated = [&](const std::string& statement) {
    return refusal(long_text +
                       "    for a in range(60):\n        for b in range(60):\n            for c in range(60):\n"
                       "                " +
                       statement + "\n    return x",
                   x);
  };
  EXPECT_NE(refusal("def f(x):\n    s = 'a'\n    for i in range(40): s = f'{s}{s}'\n    return x", x)
                .find("longer than is kept"),
            std::string::npos);
  for (const char* statement :
       {"s.upper()", "s[1:]", "list(s)", "f'{s}'", "s[1:] in s", "log(s)", "s + ''", "str(s)[1:]"})
    EXPECT_NE(repeated(statement).find("steps to trace"), std::string::npos) << statement;
  EXPECT_NE(refusal(long_text + "    return {s: x}", x).find("at most 256 bytes"), std::string::npos);
  EXPECT_NE(refusal(long_text + "    d = {}\n    d[s] = x\n    return d", x).find("at most 256 bytes"),
            std::string::npos);
  // Copies of a text are one text.
  EXPECT_EQ(refusal(long_text + "    l = [s] * 90000\n    return x", x), "");
}

TEST(TraceTest, work_on_long_containers_is_counted) {
  const Inputs x{{f32({2})}, {}};
  const auto says_steps = [&](const std::string& before, const std::string& statement, int loops = 2) {
    std::string text = "def f(x):\n" + before;
    for (int i = 0; i < loops; ++i)
      text += std::string(4 + static_cast<size_t>(i), ' ') + "for i" + std::to_string(i) + " in range(60):\n";
    text += std::string(12, ' ') + statement + "\n    return x";
    EXPECT_NE(refusal(text, x).find("steps to trace"), std::string::npos) << statement.substr(0, 80);
  };
  const std::string list = "    l = [0] * 50000\n";
  says_steps(list, "l.insert(0, l.pop(0))");
  says_steps(list, "jnp.ndim(l)");
  says_steps(list + "    p = functools.partial(lambda *a: 0, *l)\n", "p()");
  const std::string dict =
      "    d = {}\n    for i in range(50):\n        for j in range(40): d[f'{i} {j}'] = 0\n"
      "    p = functools.partial(lambda **k: 0, **d)\n";
  says_steps(dict, "d['49 39']", 3);
  says_steps(dict, "'none' in d", 3);
  says_steps(dict, "p(**d)");
  std::string parameters = "p0=0";
  for (int i = 1; i < 5000; ++i) parameters += ", p" + std::to_string(i) + "=0";
  says_steps("    def g(" + parameters + "): return 0\n", "g()");
  std::string names = "    n0";
  for (int i = 1; i < 5000; ++i) names += " = n" + std::to_string(i);
  says_steps(names + " = 0\n", "if x.sum() > 0: pass");
  std::string loop = "for i in range(0):\n";
  for (int i = 0; i < 12000; ++i) loop += std::string(13, ' ') + "x\n";
  says_steps("", loop);
}

TEST(TraceTest, functions_that_are_transformed_one_after_the_other_share_no_values) {
  for (const char* step : {"vmap(lambda r: r + 1)(x)", "grad(lambda v: (v * v).sum())(x)"}) {
    const std::string text = std::string("def f(x):\n    for i in range(16): x = ") + step + "\n    return x";
    const Traced traced = trace(*read(text), {{f32({3})}, {}}, nullptr);
    EXPECT_LT(traced.module.main().values.size(), 5000) << step;
  }
}

TEST(TraceTest, break_and_continue_outside_of_loops_are_refused_at_their_place) {
  const Inputs x{{f32({2})}, {}};
  EXPECT_EQ(refusal("def f(x):\n    break\n    return x", x),
            "line 2, column 5: 'break' and 'continue' belong in loops");
  EXPECT_EQ(refusal("def f(x):\n    if x[0] > 0:\n        continue\n    return x", x),
            "line 3, column 9: 'break' and 'continue' belong in loops");
}

TEST(TraceTest, containers_stay_small_and_have_no_cycles) {
  const Inputs x{{f32({2})}, {}};
  const auto says = [&](const std::string& body, const char* words) {
    const std::string detail = refusal("def f(x):\n" + body + "\n    return x", x);
    EXPECT_NE(detail.find(words), std::string::npos) << body << ": " << detail;
  };
  says("    for i in range(60): x = [x, x]", "at most 100000");
  says("    y = x\n    i = 0\n    while i < 5000:\n        y = [y]\n        i += 1", "nested 100 deep");
  says("    a = []\n    a.append(a)", "item of itself");
  says("    a = []\n    b = [a]\n    a.append(b)", "not changed in length");
  says("    a = [0]\n    b = [a]\n    a[0] = b", "gets no new items");
  says("    d = {}\n    e = {'d': d}\n    d['e'] = e", "gets no new items");
  says(
      "    y = 0\n    for i in range(60):\n        for j in range(60):\n            for k in range(60): y = "
      "len(list(range(90000)))",
      "steps to trace");
  says("    for i in range(60):\n        for j in range(60): x = x + jnp.arange(0.0, 2e5, 1.0)[:2]", "constants");
  EXPECT_EQ(
      refusal("def f(x):\n    a = []\n    for i in range(50): a.append([x, i])\n    a[3][1] = 7\n    return a", x), "");
}

TEST(TraceTest, programs_stay_within_what_the_stages_behind_take) {
  const Inputs x{{f32({})}, {}};
  EXPECT_NE(refusal("def f(x): return jnp.zeros((1,) * 500)", x).find("dimensions"), std::string::npos);
  std::string returns = "def f(x):\n";
  for (int i = 0; i < 300; ++i) returns += "    if x > " + std::to_string(i) + ": return x\n";
  EXPECT_NE(refusal(returns + "    return -x", x).find("nested more than 100"), std::string::npos);
}

TEST(TraceTest, static_break_below_an_if_on_an_array_ends_the_loop_there) {
  const std::string text =
      "def f(x):\n    for i in range(3):\n        if x > 0:\n            if i > 0: break\n            x = x + 1\n"
      "    return x";
  EXPECT_EQ(refusal(text, {{f32({})}, {}}), "");
}

TEST(TraceTest, functions_that_call_others_deeply_are_refused) {
  std::string text = "def f0(x): return x\n";
  for (int i = 1; i < 100; ++i) text += "def f" + std::to_string(i) + "(x): return f" + std::to_string(i - 1) + "(x)\n";
  EXPECT_NE(refusal(text, {{f32({2})}, {}}).find("nested more than"), std::string::npos);
}

}  // namespace
}  // namespace meshd::numpy
