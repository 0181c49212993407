// Gradients of programs: what is refused, what loops save, and that the result is a program. The numbers are held to
// JAX's by tests/conformance/check_gradients.py.
#include "service/program/gradient/gradient.h"

#include <gmock/gmock.h>

#include "service/ir/walk.h"
#include "service/program/print.h"
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

// The gradient of a text as a program that was printed and read again.
ir::Module differentiated(const std::string& text, const GradientRequest& request = {{0}, {0}, false, false}) {
  const ir::Module made = gradient(specialise(inline_calls(*parse_stablehlo(text))), request);
  return *parse_stablehlo(print_generic(made));
}

std::string refusal(const std::string& text, const GradientRequest& request = {{0}, {0}, false, false}) {
  try {
    differentiated(text, request);
    return "none";
  } catch (const core::Error& error) {
    return std::string(error.code().word()) + ": " + error.detail();
  }
}

std::vector<std::string> result_types(const ir::Module& module) {
  std::vector<std::string> out;
  for (const ir::Parameter& result : module.main().results) out.push_back(ir::to_string(result.type));
  return out;
}

// %x0 goes through `body` `iterations` times, beside arrays of results as scan writes them.
std::string loop(const std::string& iterations, const std::string& body) {
  return R"(func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %n: tensor<i32>) -> tensor<f32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %ys = stablehlo.constant dense<0.0> : tensor<7x4xf32>
    %0:4 = stablehlo.while(%i = %zero, %c = %x, %wi = %w, %out = %ys) : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<7x4xf32>
    cond {
      %limit = stablehlo.constant dense<7> : tensor<i32>
      %p = stablehlo.compare LT, %i, )" +
         iterations + R"(, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      )" +
         body +
         R"(
      %row = stablehlo.reshape %d : (tensor<4xf32>) -> tensor<1x4xf32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %saved = stablehlo.dynamic_update_slice %out, %row, %i, %z : (tensor<7x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<7x4xf32>
      stablehlo.return %next, %d, %wi, %saved : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<7x4xf32>
    }
    %s = stablehlo.reduce(%0#3 init: %f) applies stablehlo.add across dimensions = [0, 1] : (tensor<7x4xf32>, tensor<f32>) -> tensor<f32>
    return %s : tensor<f32>
  })";
}

constexpr const char* kProduct = "%d = stablehlo.multiply %c, %wi : tensor<4xf32>";

int64_t values_of_type(const ir::Module& module, const std::string& type) {
  const auto& values = module.main().values;
  return std::count_if(values.begin(), values.end(),
                       [&](const ir::Value& value) { return ir::to_string(value.type) == type; });
}

TEST(Gradient, results_are_the_gradients_of_the_arguments) {
  const std::string text =
      R"(func.func @main(%x: tensor<3xf32> {tf.aliasing_output = 0 : i32}, %k: tensor<i32>, %w: tensor<3xf64>) -> (tensor<3xf32>, tensor<f64>) {
    %f = stablehlo.constant dense<0.0> : tensor<f64>
    %0 = stablehlo.convert %x : (tensor<3xf32>) -> tensor<3xf64>
    %1 = stablehlo.multiply %0, %w : tensor<3xf64>
    %2 = stablehlo.reduce(%1 init: %f) applies stablehlo.add across dimensions = [0] : (tensor<3xf64>, tensor<f64>) -> tensor<f64>
    return %x, %2 : tensor<3xf32>, tensor<f64>
  })";
  const ir::Module alone = differentiated(text, {{2, 0}, {1}, false, false});
  EXPECT_EQ(result_types(alone), (std::vector<std::string>{"tensor<3xf64>", "tensor<3xf32>"}));
  EXPECT_FALSE(alone.main().arguments[0].aliases_output) << "arguments are no longer given up";
  const ir::Module with_values = differentiated(text, {{0}, {1}, true, false});
  EXPECT_EQ(result_types(with_values), (std::vector<std::string>{"tensor<3xf32>", "tensor<f64>", "tensor<3xf32>"}));
  const ir::Module pulled_back = differentiated(text, {{0}, {0, 1}, false, true});
  ASSERT_EQ(pulled_back.main().arguments.size(), 5U);
  EXPECT_EQ(ir::to_string(pulled_back.main().arguments[3].type), "tensor<3xf32>");
  EXPECT_EQ(ir::to_string(pulled_back.main().arguments[4].type), "tensor<f64>");
}

TEST(Gradient, what_has_no_derivative_is_refused_by_name) {
  const std::string plain = R"(func.func @main(%x: tensor<3xf32>, %k: tensor<i32>) -> (tensor<3xf32>, tensor<i32>) {
    return %x, %k : tensor<3xf32>, tensor<i32>
  })";
  EXPECT_THAT(refusal(plain),
              testing::HasSubstr("invalid_argument: result 0 is tensor<3xf32>: a gradient is that of real scalars"));
  EXPECT_THAT(refusal(plain, {{1}, {0}, false, true}), testing::HasSubstr("argument 1 has no derivative"));
  EXPECT_THAT(refusal(plain, {{0}, {1}, false, true}), testing::HasSubstr("result 1 has no derivative"));
  EXPECT_THAT(refusal(plain, {{0}, {7}, false, true}), testing::HasSubstr("result 7 has no derivative"));
  EXPECT_THAT(refusal(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.custom_call @thing(%x) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  })"),
              testing::HasSubstr(
                  "unsupported_op: line 2, column 5: the derivative of 'stablehlo.custom_call' of target 'thing'"));
  EXPECT_THAT(refusal(loop("%n", kProduct)), testing::HasSubstr("is supported where the text tells how often it runs"));
}

TEST(Gradient, of_reductions_windows_and_maps_with_pointwise_bodies) {
  // (a, b) -> a + b + a b, and of a map a * b.
  const std::string body = R"(^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      %p = stablehlo.multiply %a, %b : tensor<f32>
      %q = stablehlo.add %s, %p : tensor<f32>
      stablehlo.return %q : tensor<f32>)";
  EXPECT_EQ(refusal(R"(func.func @main(%x: tensor<7x3xf32>) -> tensor<f32> {
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce"(%x, %f) <{dimensions = array<i64: 0, 1>}> ({
    )" + body + R"(
    }) : (tensor<7x3xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  })"),
            "none");
  const ir::Module windows = differentiated(R"(func.func @main(%x: tensor<9x4xf32>) -> tensor<3x4xf32> {
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %f) <{window_dimensions = array<i64: 5, 2>, window_strides = array<i64: 2, 1>, window_dilations = array<i64: 1, 2>, padding = dense<[[0, 1], [2, 0]]> : tensor<2x2xi64>}> ({
    )" + body + R"(
    }) : (tensor<9x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  })",
                                            {{0}, {0}, false, true});
  EXPECT_EQ(result_types(windows), std::vector<std::string>{"tensor<9x4xf32>"});
  EXPECT_EQ(refusal(R"(func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.multiply %a, %b : tensor<f32>
      stablehlo.return %p : tensor<f32>
    }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  })",
                    {{0, 1}, {0}, false, true}),
            "none");
}

TEST(Gradient, of_a_select_and_scatter_is_that_of_one_that_adds_what_it_scatters) {
  const auto refused = [](const std::string& scatter) {
    return refusal(R"(func.func @main(%x: tensor<4xf32>, %s: tensor<2xf32>) -> tensor<f32> {
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.select_and_scatter"(%x, %s, %f) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      )" + scatter + R"(
      stablehlo.return %q : tensor<f32>
    }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.reduce(%0 init: %f) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  })",
                   {{1}, {0}, false, false});
  };
  EXPECT_EQ(refused("%q = stablehlo.add %a, %b : tensor<f32>"), "none");
  EXPECT_EQ(refused("%q = stablehlo.add %b, %a : tensor<f32>"), "none");
  EXPECT_THAT(refused("%q = stablehlo.add %b, %b : tensor<f32>"),
              testing::HasSubstr("has a derivative where its body is add"));
  EXPECT_THAT(refused("%q = stablehlo.maximum %a, %b : tensor<f32>"), testing::HasSubstr("unsupported_op"));
}

// An i8 does not reach the last of 200 rows: -57 is what 199 would be in it.
TEST(Gradient, of_indices_of_a_narrow_type_are_clamped_to_what_it_reaches) {
  const std::string gather =
      R"(%0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<200xf32>, tensor<3x1xINDEX>) -> tensor<3xf32>)";
  const std::string scatter =
      R"(%s = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<200xf32>, tensor<3x1xINDEX>, tensor<3xf32>) -> tensor<200xf32>
    %0 = stablehlo.slice %s [0:3] : (tensor<200xf32>) -> tensor<3xf32>)";
  const auto most_of = [](std::string op, const std::string& index) {
    for (size_t at = op.find("INDEX"); at != std::string::npos; at = op.find("INDEX")) op.replace(at, 5, index);
    const std::string text = print_generic(differentiated("func.func @main(%x: tensor<200xf32>, %i: tensor<3x1x" +
                                                              index + R"(>, %u: tensor<3xf32>) -> tensor<f32> {
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    )" + op + R"(
    %1 = stablehlo.reduce(%0 init: %f) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  })",
                                                          {{0, 2}, {0}, false, false}));
    return text.find("127") != std::string::npos ? 127 : text.find("199") != std::string::npos ? 199 : 0;
  };
  for (const std::string& op : {gather, scatter}) {
    EXPECT_EQ(most_of(op, "i8"), 127) << op;
    EXPECT_EQ(most_of(op, "i32"), 199) << op;
    EXPECT_EQ(most_of(op, "ui64"), 199) << op;
  }
}

// JAX's rule for whole exponents: 0 to the power of 0 is a constant, where that of other exponents gives NaN.
TEST(Gradient, of_a_power_tells_whole_exponents) {
  const auto selects = [](const std::string& exponent) {
    const ir::Module made = differentiated(
        "func.func @main(%x: tensor<4xf32>, %n: tensor<4xi32>, %y: tensor<4xf32>) -> "
        "tensor<4xf32> { %i = stablehlo.convert %n : (tensor<4xi32>) -> tensor<4xf32> "
        "%0 = stablehlo.power %x, " +
            exponent + " : tensor<4xf32> return %0 : tensor<4xf32> }",
        {{0}, {0}, false, true});
    return ir::any_op(made.main().body, [](const ir::Op& op) { return op.name == "stablehlo.select"; });
  };
  EXPECT_TRUE(selects("%i"));
  EXPECT_FALSE(selects("%y"));
}

TEST(Gradient, of_a_value_that_is_differentiated_as_another) {
  const ir::Module made = differentiated(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    %1 = stablehlo.cosine %x : tensor<f32>
    %2 = stablehlo.custom_call @meshd.differentiated_as(%0, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %2 : tensor<f32>
  })");
  const auto has = [&](std::string_view name) {
    return ir::any_op(made.main().body, [&](const ir::Op& op) { return op.name == name; });
  };
  EXPECT_TRUE(has("stablehlo.sine"));  // the slope of cosine
  EXPECT_FALSE(has("stablehlo.cosine"));
}

TEST(Gradient, of_a_path_that_does_not_matter_is_not_asked_for) {
  const ir::Module made = differentiated(R"(func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.custom_call @thing(%x) : (tensor<f32>) -> tensor<f32>
    %1 = stablehlo.floor %x : tensor<f32>
    %2 = stablehlo.multiply %x, %1 : tensor<f32>
    return %2, %0 : tensor<f32>, tensor<f32>
  })");
  EXPECT_FALSE(ir::any_op(made.main().body, [](const ir::Op& op) { return op.name == "stablehlo.custom_call"; }));
}

TEST(Gradient, of_a_loop_saves_what_its_body_reads_and_not_what_it_collects) {
  const ir::Module made = differentiated(loop("%limit", kProduct), {{1}, {0}, false, false});
  // The factor stays the same and is read where it is; the carried value is saved in each iteration.
  EXPECT_EQ(values_of_type(made, "tensor<7x7x4xf32>"), 0) << "the array of results is not saved in each iteration";
  EXPECT_GT(values_of_type(made, "tensor<7x4xf32>"), 0);
  int64_t loops = 0;
  ir::walk(made.main().body, [&](const ir::Op& op) { loops += static_cast<int64_t>(op.name == "stablehlo.while"); });
  EXPECT_EQ(loops, 2) << "one forward, one backward";
}

TEST(Gradient, of_a_linear_loop_saves_nothing) {
  const ir::Module made = differentiated(loop("%limit", "%d = stablehlo.add %c, %wi : tensor<4xf32>"));
  int64_t loops = 0;
  ir::walk(made.main().body, [&](const ir::Op& op) { loops += static_cast<int64_t>(op.name == "stablehlo.while"); });
  EXPECT_EQ(loops, 1) << "the forward loop is of no use to the gradient";
}

TEST(Gradient, of_a_loop_that_never_runs_is_that_of_its_beginning) {
  std::string text = loop("%limit", kProduct);
  text.replace(text.find("dense<7>"), 8, "dense<0>");
  const ir::Module made = differentiated(text);
  EXPECT_EQ(result_types(made), std::vector<std::string>{"tensor<4xf32>"});
}

TEST(Gradient, of_a_loop_that_never_ends_in_practice_is_refused) {
  std::string text = loop("%limit", kProduct);
  for (size_t at = text.find("tensor<i32>"); at != std::string::npos; at = text.find("tensor<i32>"))
    text.replace(at, 11, "tensor<i64>");
  text.replace(text.find("dense<7>"), 8, "dense<1000000000000000000>");
  EXPECT_THAT(refusal(text, {{1}, {0}, false, false}),
              testing::HasSubstr("would save tensor<4xf32> in each of 1000000000000000000 iterations"));
}

TEST(Gradient, of_a_gradient) {
  const std::string text = loop("%limit", kProduct);
  const ir::Module first = gradient(specialise(inline_calls(*parse_stablehlo(text))), {{1}, {0}, false, false});
  const ir::Module second = gradient(first, {{0, 1}, {0}, false, true});
  EXPECT_EQ(result_types(*parse_stablehlo(print_generic(second))),
            (std::vector<std::string>{"tensor<4xf32>", "tensor<4xf32>"}));
}

TEST(Gradient, needs_no_effect_twice) {
  const std::string head = R"(func.func @main(%p: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.case"(%p) ({
      %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (tensor<f32>) -> tensor<f32>
      %2 = stablehlo.multiply )";
  const std::string tail = R"( : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }, {
      stablehlo.return %x : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    return %0 : tensor<f32>
  })";
  EXPECT_THAT(refusal(head + "%x, %x" + tail, {{1}, {0}, false, false}), "none")
      << "the log is written by the forward pass alone";
  EXPECT_THAT(refusal(head + "%1, %x" + tail, {{1}, {0}, false, false}), testing::HasSubstr("unsupported_op"));
}

}  // namespace
}  // namespace meshd::program
