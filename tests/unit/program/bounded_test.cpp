// Bounded types: read, printed, refused, and written as padded values with their sizes.
#include "service/ir/walk.h"
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

using tensor::DType;

std::string type_of_argument(const std::string& type) {
  return print(parse_unverified("func.func @main(%a: " + type + ") { return }").main().arguments.at(0).type);
}

/// @main(%x, %n) whose %0 is the first %n elements of %x.
std::string first_elements(const std::string& body, const std::string& result) {
  return "func.func @main(%x: tensor<8xf32>, %n: tensor<i32>) -> " + result + " {\n" +
         "  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8xf32>, tensor<i32>) -> "
         "tensor<?xf32, #stablehlo.bounds<8>>\n" +
         body + "}\n";
}

ir::Module specialised(const std::string& text, const std::vector<tensor::TensorType>& arguments = {}) {
  return specialise(inline_calls(*parse_stablehlo(text)), arguments);
}

std::string refused(const std::string& text, const std::vector<tensor::TensorType>& arguments = {}) {
  try {
    specialised(text, arguments);
    return "none";
  } catch (const core::Error& error) {
    return std::string(error.code().word()) + ": " + error.detail();
  }
}

TEST(Bounded, types_are_read_and_printed) {
  for (const std::string type : {"tensor<?xf32, #stablehlo.bounds<8>>", "tensor<?x4x?xf32, #stablehlo.bounds<8, ?, 2>>",
                                 "tensor<?x?xf32, #stablehlo.bounds<?, 8>>"})
    EXPECT_EQ(type_of_argument(type), type);
  EXPECT_EQ(type_of_argument("tensor<?x4xf32, #mhlo.type_extensions<bounds = [8, -1]>>"),
            "tensor<?x4xf32, #stablehlo.bounds<8, ?>>");
  EXPECT_EQ(type_of_argument("tensor<?xf32, #stablehlo.bounds<?>>"), "tensor<?xf32>") << "nothing is bounded";
  expect_round_trip(
      first_elements("  return %0 : tensor<?xf32, #stablehlo.bounds<8>>\n", "tensor<?xf32, #stablehlo.bounds<8>>"));
  expect_round_trip("#b = #stablehlo.bounds<8>\nfunc.func @main(%a: tensor<?xf32, #b>) -> tensor<?xf32, #b> {\n" +
                    std::string("  return %a : tensor<?xf32, #b>\n}\n"));
}

TEST(Bounded, types_that_break_a_rule_are_refused) {
  const auto message = [](const std::string& type) { return refusal("func.func @main(%a: " + type + ") { return }"); };
  EXPECT_EQ(message("tensor<?xf32, #stablehlo.bounds<8, 4>>"),
            "invalid_program: line 1, column 35: a tensor of 1 dimensions has as many bounds, got 2");
  EXPECT_EQ(message("tensor<4xf32, #stablehlo.bounds<8>>"),
            "invalid_program: line 1, column 35: dimension 0 has 4 elements, so its bound must be '?', got 8");
}

TEST(Bounded, results_are_padded_and_their_sizes_are_the_last_result) {
  const ir::Module module =
      specialised(first_elements("  %1 = stablehlo.negate %0 : tensor<?xf32, #stablehlo.bounds<8>>\n"
                                 "  return %1 : tensor<?xf32, #stablehlo.bounds<8>>\n",
                                 "tensor<?xf32, #stablehlo.bounds<8>>"));
  const std::vector<ir::Parameter>& results = module.main().results;
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(ir::to_string(results[0].type), "tensor<8xf32>");
  EXPECT_EQ(results[0].size_places, std::vector<int64_t>{0});
  EXPECT_FALSE(results[0].is_sizes);
  EXPECT_EQ(ir::to_string(results[1].type), "tensor<1xi32>");
  EXPECT_TRUE(results[1].is_sizes);
}

TEST(Bounded, a_bounded_argument_has_the_size_that_it_is_given) {
  const std::string text =
      R"(func.func @main(%a: tensor<?xf32, #stablehlo.bounds<4>>) -> tensor<?xf32, #stablehlo.bounds<4>> {
  %0 = stablehlo.negate %a : tensor<?xf32, #stablehlo.bounds<4>>
  return %0 : tensor<?xf32, #stablehlo.bounds<4>>
})";
  const ir::Module module = specialised(text, {{DType::kFloat32, {3}}});
  ASSERT_EQ(module.main().results.size(), 1U);
  EXPECT_EQ(ir::to_string(module.main().results[0].type), "tensor<3xf32>");
  EXPECT_EQ(refused(text, {{DType::kFloat32, {5}}}),
            "invalid_argument: argument 0: dimension 0 has 5 elements, the program takes at most 4 "
            "(tensor<?xf32, #stablehlo.bounds<4>>)");
}

TEST(Bounded, what_has_no_bound_is_refused_and_says_what_to_write) {
  const std::string message = refused(R"(func.func @main(%n: tensor<1xi32>) -> tensor<?xi32> {
  %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
})");
  EXPECT_TRUE(message.starts_with("unsupported_type: line 2, column 3: ")) << message;
  EXPECT_NE(message.find("tensor<?xf32, #stablehlo.bounds<8>>"), std::string::npos) << message;
}

TEST(Bounded, ops_without_a_form_are_refused_by_name) {
  const std::string message = refused(
      first_elements("  %1 = stablehlo.fft %0, type = RFFT, length = [8] : (tensor<?xf32, #stablehlo.bounds<8>>) -> "
                     "tensor<?xcomplex<f32>, #stablehlo.bounds<5>>\n"
                     "  return %1 : tensor<?xcomplex<f32>, #stablehlo.bounds<5>>\n",
                     "tensor<?xcomplex<f32>, #stablehlo.bounds<5>>"));
  EXPECT_TRUE(message.starts_with("unsupported_op: line 3, column 3: 'stablehlo.fft' is not supported where"))
      << message;
}

const std::string kUpTo8 = "tensor<?xf32, #stablehlo.bounds<8>>";

TEST(Bounded, rules_are_checked_again_when_sizes_are_known) {
  const auto reshaped = [](const std::string& size) {
    return refused(first_elements("  %c = stablehlo.constant dense<" + size +
                                      "> : tensor<1xi32>\n"
                                      "  %s = stablehlo.convert %c : (tensor<1xi32>) -> tensor<?xi32>\n"
                                      "  %1 = stablehlo.dynamic_reshape %0, %s : (" +
                                      kUpTo8 + ", tensor<?xi32>) -> tensor<?x?xf32, #stablehlo.bounds<8, 8>>\n" +
                                      "  return %1 : tensor<?x?xf32, #stablehlo.bounds<8, 8>>\n",
                                  "tensor<?x?xf32, #stablehlo.bounds<8, 8>>"));
  };
  EXPECT_TRUE(reshaped("8").starts_with("invalid_program: line 5, column 3: dynamic_reshape I2")) << reshaped("8");
  const std::string negative = refused(first_elements(
      "  %c = stablehlo.constant dense<-3> : tensor<1xi32>\n  %1 = stablehlo.dynamic_reshape %0, %c : (" + kUpTo8 +
          ", tensor<1xi32>) -> " + kUpTo8 + "\n  return %1 : " + kUpTo8 + "\n",
      kUpTo8));
  EXPECT_TRUE(negative.starts_with("invalid_program: line 4, column 3: ")) << negative;
}

/// What regions give beside a value with a bound has one size, where the text says none too.
TEST(Bounded, branches_and_loops_keep_the_sizes_of_what_has_no_bound) {
  const auto flow = [](const std::string& second, bool is_loop) {
    const std::string types = "(" + kUpTo8 + ", tensor<?xf32>)";
    const std::string listed = kUpTo8 + ", tensor<?xf32>";
    const std::string given = "    stablehlo.return %0, " + second + " : " + listed + "\n  }";
    const std::string body =
        "  %two = stablehlo.constant dense<1.0> : tensor<2xf32>\n"
        "  %three = stablehlo.constant dense<1.0> : tensor<3xf32>\n"
        "  %p = stablehlo.compare EQ, %n, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "  %u = stablehlo.convert %two : (tensor<2xf32>) -> tensor<?xf32>\n"
        "  %v = stablehlo.convert %three : (tensor<3xf32>) -> tensor<?xf32>\n" +
        (is_loop ? "  %1:2 = stablehlo.while(%i = %0, %j = %u) : " + listed +
                       " cond {\n    stablehlo.return %p : tensor<i1>\n  } do {\n" + given + "\n"
                 : "  %1:2 = \"stablehlo.if\"(%p) ({\n    stablehlo.return %0, %u : " + listed + "\n  }, {\n" + given +
                       ") : (tensor<i1>) -> " + types + "\n") +
        "  return %1#0, %1#1 : " + listed + "\n";
    return refused(first_elements(body, types)).substr(0, 15);
  };
  for (const bool is_loop : {false, true}) {
    EXPECT_EQ(flow("%u", is_loop), "none") << is_loop;
    EXPECT_EQ(flow("%v", is_loop), "invalid_program") << is_loop;
  }
}

TEST(Bounded, custom_calls_with_shapes_or_factors_beside_a_batch_are_refused_by_name) {
  const std::string batch = "tensor<?x4x4xf32, #stablehlo.bounds<3, ?, ?>>";
  const auto of_batch = [&](const std::string& call) {
    return refused("func.func @main(%x: tensor<3x4x4xf32>, %n: tensor<i32>, %f: tensor<f32>, %s: tensor<3xi32>) -> " +
                   batch +
                   " {\n  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<3x4x4xf32>, tensor<i32>) -> " +
                   batch + "\n  %1 = stablehlo.custom_call " + call + " -> " + batch + "\n  return %1 : " + batch +
                   "\n}\n")
        .substr(0, 14);
  };
  EXPECT_EQ(
      of_batch("@lapack_strsm_ffi(%0, %0, %f) {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = "
               "78 : ui8, uplo = 76 : ui8}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, "
               "dense<[1, 2, 0]> : tensor<3xindex>, dense<> : tensor<0xindex>], result_layouts = "
               "[dense<[1, 2, 0]> : tensor<3xindex>]} : (" +
               batch + ", " + batch + ", tensor<f32>)"),
      "unsupported_op");
  EXPECT_EQ(of_batch("@lapack_spotrf_ffi(%0, %s) {indices_of_shape_operands = dense<1> : tensor<1xi64>} : (" + batch +
                     ", tensor<3xi32>)"),
            "unsupported_op");
}

TEST(Bounded, windows_further_apart_than_can_be_counted_are_refused) {
  const std::string message = refused(
      R"(func.func @main(%a: tensor<1x4x4x1xf32>, %b: tensor<3x3x1x1xf32>, %n: tensor<i32>, %p: tensor<2x2xi32>) -> tensor<?x7x4x1xf32, #stablehlo.bounds<1, ?, ?, ?>> {
  %0 = stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<1x4x4x1xf32>, tensor<i32>) -> tensor<?x4x4x1xf32, #stablehlo.bounds<1, ?, ?, ?>>
  %1 = "stablehlo.dynamic_conv"(%0, %b, %p) <{batch_group_count = 1 : i64, window_strides = array<i64: 3074457345618258602, 1>, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<?x4x4x1xf32, #stablehlo.bounds<1, ?, ?, ?>>, tensor<3x3x1x1xf32>, tensor<2x2xi32>) -> tensor<?x7x4x1xf32, #stablehlo.bounds<1, ?, ?, ?>>
  return %1 : tensor<?x7x4x1xf32, #stablehlo.bounds<1, ?, ?, ?>>
})");
  EXPECT_NE(message.find("63 bits"), std::string::npos) << message;
}

}  // namespace
}  // namespace meshd::program
