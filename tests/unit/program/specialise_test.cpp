// Programs made ready for arguments of known shapes.
#include "service/program/transform/specialise.h"

#include "service/ops/op_constraints.h"
#include "service/program/op_facts.h"
#include "service/program/transform/inline_calls.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

using tensor::DType;
using tensor::TensorType;

ir::Module specialised(const std::string& text, const std::vector<TensorType>& arguments = {}) {
  return specialise(inline_calls(*parse_stablehlo(text)), arguments);
}

std::string refused(const std::string& text, const std::vector<TensorType>& arguments = {}) {
  try {
    specialised(text, arguments);
    return "none";
  } catch (const core::Error& error) {
    return std::string(error.code().word()) + ": " + error.detail();
  }
}

std::vector<std::string> op_names(const ir::Module& module) {
  std::vector<std::string> out;
  for (const ir::Op& op : module.main().body.ops) out.push_back(op.name);
  return out;
}

constexpr const char* kPolymorphic = R"(module {
  func.func @main(%a: tensor<?x2xf32>) -> tensor<?xf32> {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1, %0) {error_message = "b = {0} is below 2", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %2 = stablehlo.multiply %0, %c : tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.dynamic_reshape %a, %3 : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
    %5 = stablehlo.negate %4 : tensor<?xf32>
    return %5 : tensor<?xf32>
  }
})";

TEST(Specialise, sizes_are_followed_to_the_result) {
  const ir::Module module = specialised(kPolymorphic, {{DType::kFloat32, {3, 2}}});
  EXPECT_EQ(ir::to_string(module.main().results[0].type), "tensor<6xf32>");
  const auto names = op_names(module);
  EXPECT_EQ(std::count(names.begin(), names.end(), "stablehlo.dynamic_reshape"), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), "stablehlo.custom_call"), 0) << "the assertion held";
}

TEST(Specialise, assertion_that_does_not_hold_is_the_callers_mistake) {
  EXPECT_EQ(refused(kPolymorphic, {{DType::kFloat32, {1, 2}}}), "invalid_argument: b = 1 is below 2");
}

TEST(Specialise, shapes_that_do_not_fit_together_name_the_op) {
  constexpr const char* kSum = R"(module {
  func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
    %0 = stablehlo.add %a, %b : tensor<?xf32>
    return %0 : tensor<?xf32>
  }
})";
  EXPECT_EQ(refused(kSum, {{DType::kFloat32, {2}}, {DType::kFloat32, {3}}}),
            "invalid_program: line 3, column 5: add C1: operands must have one type (operand 0 is tensor<2xf32>, "
            "operand 1 is tensor<3xf32>)");
}

TEST(Specialise, shape_from_data_is_refused_by_name) {
  EXPECT_EQ(refused(R"(module {
  func.func @main(%a: tensor<1xi32>) -> tensor<?xi32> {
    %0 = stablehlo.dynamic_iota %a, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    return %0 : tensor<?xi32>
  }
})"),
            "unsupported_type: line 3, column 5: the shape of what 'stablehlo.dynamic_iota' gives, tensor<?xi32>, does "
            "not follow from the shapes of the arguments: where it depends on data, give the type a bound, such as "
            "tensor<?xf32, #stablehlo.bounds<8>>");
}

/// @main(%a: tensor<?x?xf32>) with its sizes %m and %n and the vectors %one, of two ones, and %mn.
std::string over_sizes(const std::string& body, const std::string& functions = "") {
  return R"(module {
  func.func @main(%a: tensor<?x?xf32>, %k: tensor<i32>) -> tensor<?x?xf32> {
    %one = stablehlo.constant dense<1> : tensor<2xi32>
    %0 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %a, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
    %m = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %n = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %mn = stablehlo.concatenate %m, %n, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
)" + body +
         "\n  }\n" + functions + "}";
}

TEST(Specialise, operands_of_custom_calls_that_are_shapes_give_the_results_theirs) {
  const std::string text = over_sizes(
      R"(    %x:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a, %mn, %none) {indices_of_shape_operands = dense<[1, 2]> : tensor<2xi64>, mhlo.backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]} : (tensor<?x?xf32>, tensor<2xi32>, tensor<0xi32>) -> (tensor<?x?xf32>, tensor<i32>)
    return %x#0 : tensor<?x?xf32>)");
  const std::string with_none =
      std::string(text).replace(text.find("    %x:2"), 0, "    %none = stablehlo.constant dense<> : tensor<0xi32>\n");
  const ir::Module module = specialised(with_none, {{DType::kFloat32, {3, 3}}, {DType::kInt32, {}}});
  EXPECT_EQ(ir::to_string(module.main().results[0].type), "tensor<3x3xf32>");
  const auto& ops = module.main().body.ops;
  const auto call =
      std::find_if(ops.begin(), ops.end(), [](const ir::Op& op) { return op.name == "stablehlo.custom_call"; });
  ASSERT_NE(call, ops.end());
  EXPECT_EQ(call->operands.size(), 1U);
  EXPECT_EQ(ir::find(call->attributes, "operand_layouts")->as<ir::ArrayAttr>()->values.size(), 1U);
  EXPECT_TRUE(refused(with_none, {{DType::kFloat32, {3, 2}}, {DType::kInt32, {}}})
                  .starts_with("invalid_program: line 10, column 5: custom_call @lapack_spotrf_ffi"));
  std::string wrong = with_none;
  wrong.replace(wrong.find("dense<[1, 2]> : tensor<2xi64>"), 29, "dense<[1, 3]> : tensor<2xi64>");
  EXPECT_EQ(
      refused(wrong, {{DType::kFloat32, {3, 3}}, {DType::kInt32, {}}}),
      "invalid_program: line 10, column 5: custom_call @lapack_spotrf_ffi: indices_of_shape_operands must name an "
      "operand for each result");
}

TEST(Specialise, dynamic_forms_that_are_custom_calls_become_ops) {
  const auto type_and_ops = [](const std::string& text) {
    const ir::Module module = specialised(text, {{DType::kFloat32, {3, 5}}, {DType::kInt32, {}}});
    std::string out = ir::to_string(module.main().results[0].type);
    for (const std::string& name : op_names(module)) {
      if (name != "stablehlo.constant" && name != "func.return") out += " " + name.substr(name.find('.') + 1);
    }
    return out;
  };
  EXPECT_NE(type_and_ops(over_sizes(R"(    %z = stablehlo.constant dense<0> : tensor<2x2xi32>
    %i = stablehlo.constant dense<0.0> : tensor<f32>
    %w = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%a, %i, %mn, %one, %one, %one, %z) {called_computations = [@sum]} : (tensor<?x?xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> tensor<?x?xf32>
    return %w : tensor<?x?xf32>)",
                                    R"(  func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %a, %b : tensor<f32>
    return %0 : tensor<f32>
  }
)"))
                .find("tensor<1x1xf32>"),
            std::string::npos);
  EXPECT_NE(
      type_and_ops(
          over_sizes(
              R"(    %t:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%a, %0) : (tensor<?x?xf32>, tensor<i32>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
    return %t#0 : tensor<?x?xf32>)"))
          .find("tensor<3x3xf32>"),
      std::string::npos);
  const std::string bits = type_and_ops(over_sizes(R"(    %s = stablehlo.constant dense<1> : tensor<2xui64>
    %b:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %mn) {rng_algorithm = #stablehlo<rng_algorithm DEFAULT>} : (tensor<2xui64>, tensor<2xi32>) -> (tensor<2xui64>, tensor<?x?xui32>)
    %f = stablehlo.convert %b#1 : (tensor<?x?xui32>) -> tensor<?x?xf32>
    return %f : tensor<?x?xf32>)"));
  EXPECT_NE(bits.find("tensor<3x5xf32>"), std::string::npos) << bits;
  EXPECT_NE(bits.find(" rng_bit_generator"), std::string::npos) << bits;
  EXPECT_EQ(
      refused(
          over_sizes(
              R"(    %t:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%a, %k) : (tensor<?x?xf32>, tensor<i32>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
    return %t#0 : tensor<?x?xf32>)"),
          {{DType::kFloat32, {3, 5}}, {DType::kInt32, {}}})
          .substr(0, 16),
      "unsupported_type");
}

TEST(Specialise, dimensions_of_a_dynamic_gather_are_checked_before_its_sizes_are_known) {
  const auto with = [](const std::string& offset, const std::string& result) {
    return refused(
        "func.func @main(%a: tensor<4x5xi32>, %i: tensor<2x1xi32>, %s: tensor<2xi32>) -> " + result + R"( {
    %0 = "stablehlo.dynamic_gather"(%a, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [)" +
        offset +
        R"(], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x5xi32>, tensor<2x1xi32>, tensor<2xi32>) -> )" +
        result + "\n    return %0 : " + result + "\n  }");
  };
  EXPECT_EQ(with("1", "tensor<2x5xi32>"), "none");
  EXPECT_NE(with("7", "tensor<2x5xi32>").find("gather C5"), std::string::npos);
  EXPECT_NE(with("-1", "tensor<2x5xi32>").find("gather C5"), std::string::npos);
  EXPECT_NE(with("1", "tensor<2xi32>").find("dynamic_gather C22"), std::string::npos);
}

TEST(Specialise, results_that_are_not_what_the_text_declares_are_refused) {
  const auto of_call = [](const std::string& call) {
    return refused(
               "module {\n  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
               "    %k = stablehlo.constant dense<2> : tensor<i32>\n"
               "    %n = stablehlo.constant dense<300> : tensor<1xi32>\n    " +
               call + "\n    return %a : tensor<4xf32>\n  }\n}")
        .substr(0, 15);
  };
  const std::string top_k =
      "%t:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%a, %k) : (tensor<4xf32>, tensor<i32>)";
  EXPECT_EQ(of_call(top_k + " -> (tensor<2xf32>, tensor<2xi32>)"), "none");
  EXPECT_EQ(of_call(top_k + " -> (tensor<300xf32>, tensor<2xi32>)"), "invalid_program");
  EXPECT_EQ(of_call(top_k + " -> (tensor<2xf64>, tensor<2xi32>)"), "invalid_program");
  EXPECT_EQ(of_call("%t:3 = stablehlo.custom_call @stablehlo.dynamic_top_k(%a, %k) : (tensor<4xf32>, tensor<i32>) -> "
                    "(tensor<2xf32>, tensor<2xi32>, tensor<2xf32>)"),
            "invalid_program");
  EXPECT_EQ(
      of_call("%e = stablehlo.custom_call @mhlo.erf(%a, %n) {indices_of_shape_operands = dense<1> : tensor<1xi64>} "
              ": (tensor<4xf32>, tensor<1xi32>) -> tensor<300xf32>"),
      "invalid_program");
  const std::string one = "%o = stablehlo.constant dense<1> : tensor<1xi32>\n    ";
  const std::string indices = ", tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> ";
  const std::string pad = one +
                          "%z = stablehlo.constant dense<0.0> : tensor<f32>\n    %p = stablehlo.dynamic_pad %a, %z, "
                          "%o, %o, %o : (tensor<4xf32>, tensor<f32>" +
                          indices;
  EXPECT_EQ(of_call(pad + "tensor<9xf32>"), "none");
  EXPECT_EQ(of_call(pad + "tensor<300xf32>"), "invalid_program");
  const std::string slice = one +
                            "%l = stablehlo.constant dense<3> : tensor<1xi32>\n    %p = stablehlo.real_dynamic_slice "
                            "%a, %o, %l, %o : (tensor<4xf32>" +
                            indices;
  EXPECT_EQ(of_call(slice + "tensor<2xf32>"), "none");
  EXPECT_EQ(of_call(slice + "tensor<300xf32>"), "invalid_program");
  EXPECT_EQ(
      of_call("%p:2 = stablehlo.custom_call @PadToStatic(%a) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)"),
      "invalid_program");
}

/// Padding is not known yet and may give any size; the rest is checked when the program is read.
TEST(Specialise, dynamic_conv_keeps_to_the_rules_of_convolution) {
  const auto convolution = [](const std::string& kernel, const std::string& result) {
    return refusal(
               "func.func @main(%a: tensor<1x4x4x1xf32>, %b: " + kernel + ", %p: tensor<2x2xi32>) -> " + result +
               " {\n  %0 = \"stablehlo.dynamic_conv\"(%a, %b, %p) <{batch_group_count = 1 : i64, dimension_numbers = "
               "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : "
               "(tensor<1x4x4x1xf32>, " +
               kernel + ", tensor<2x2xi32>) -> " + result + "\n  return %0 : " + result + "\n}\n")
        .substr(0, 15);
  };
  EXPECT_EQ(convolution("tensor<3x3x1x2xf32>", "tensor<1x9x4x2xf32>"), "none") << "padding may give any size";
  EXPECT_EQ(convolution("tensor<3x3x1x2xf32>", "tensor<1x4x4x3xf32>"), "invalid_program");
  EXPECT_EQ(convolution("tensor<3x3x5x2xf32>", "tensor<1x4x4x2xf32>"), "invalid_program");
  EXPECT_EQ(convolution("tensor<3x3xf32>", "tensor<1x4x4x1xf32>"), "invalid_program");
}

TEST(Specialise, slice_of_a_known_size_at_an_unknown_place_is_a_dynamic_slice) {
  const ir::Module module = specialised(over_sizes(R"(    %c = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
    %r = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
    %z = stablehlo.constant dense<0> : tensor<1xi32>
    %start = stablehlo.concatenate %r, %z, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %o = stablehlo.constant dense<1> : tensor<1xi32>
    %size = stablehlo.concatenate %o, %n, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %end = stablehlo.add %start, %size : tensor<2xi32>
    %s = stablehlo.real_dynamic_slice %a, %start, %end, %one : (tensor<?x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %s : tensor<?x?xf32>)"),
                                        {{DType::kFloat32, {3, 5}}, {DType::kInt32, {}}});
  EXPECT_EQ(ir::to_string(module.main().results[0].type), "tensor<1x5xf32>");
  EXPECT_EQ(module.main().body.ops.rbegin()[1].name, "stablehlo.dynamic_slice");
}

TEST(Specialise, tuples_are_taken_apart_in_loops) {
  const ir::Module module = specialised(R"(module {
  func.func @main(%a: tensor<i32>, %b: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.tuple %a, %b : tuple<tensor<i32>, tensor<f32>>
    %1 = "stablehlo.while"(%0) ({
    ^bb0(%t: tuple<tensor<i32>, tensor<f32>>):
      %c = stablehlo.constant dense<3> : tensor<i32>
      %i = stablehlo.get_tuple_element %t[0] : (tuple<tensor<i32>, tensor<f32>>) -> tensor<i32>
      %2 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }, {
    ^bb0(%t: tuple<tensor<i32>, tensor<f32>>):
      %c = stablehlo.constant dense<1> : tensor<i32>
      %i = stablehlo.get_tuple_element %t[0] : (tuple<tensor<i32>, tensor<f32>>) -> tensor<i32>
      %x = stablehlo.get_tuple_element %t[1] : (tuple<tensor<i32>, tensor<f32>>) -> tensor<f32>
      %2 = stablehlo.add %i, %c : tensor<i32>
      %3 = stablehlo.add %x, %x : tensor<f32>
      %4 = stablehlo.tuple %2, %3 : tuple<tensor<i32>, tensor<f32>>
      stablehlo.return %4 : tuple<tensor<i32>, tensor<f32>>
    }) : (tuple<tensor<i32>, tensor<f32>>) -> tuple<tensor<i32>, tensor<f32>>
    %5 = stablehlo.get_tuple_element %1[1] : (tuple<tensor<i32>, tensor<f32>>) -> tensor<f32>
    return %5 : tensor<f32>
  }
})");
  const ir::Op& loop = module.main().body.ops.at(0);
  EXPECT_EQ(loop.name, "stablehlo.while");
  EXPECT_EQ(loop.operands.size(), 2U);
  EXPECT_EQ(loop.results.size(), 2U);
  EXPECT_EQ(module.main().body.ops.back().operands, std::vector<ir::ValueId>{loop.results[1]});
}

TEST(Specialise, expansion_keeps_value_line_and_sharding) {
  const ir::Module module = specialised(R"(module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32>) -> tensor<2x4xf32> {
    %0 = stablehlo.broadcast %a, sizes = [2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
})");
  const ir::Op& op = module.main().body.ops.at(0);
  EXPECT_EQ(op.name, "stablehlo.broadcast_in_dim");
  EXPECT_EQ(op.location.line, 4);
  EXPECT_EQ(module.main().values[static_cast<size_t>(op.results[0])].name, "%0");
  EXPECT_NE(ir::find(op.attributes, "sdy.sharding"), nullptr);
}

/// A label in a message stands in the list under the same op.
TEST(OpFacts, messages_name_listed_labels) {
  for (
      const char* wrong : {
          "%0 = stablehlo.slice %a [0:4:0] : (tensor<4xf32>) -> tensor<4xf32>",
          "%0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32>",
          "%0 = stablehlo.transpose %a, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>",
          "%0 = stablehlo.iota dim = 3 : tensor<4xf32>",
          "%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [1] : (tensor<4xf32>, tensor<4xf32>) -> "
          "tensor<f32>",
          "%0 = stablehlo.fft %a, type = FFT, length = [3] : (tensor<4xf32>) -> tensor<4xf32>",
          "%0 = stablehlo.cholesky %a : tensor<4xf32>",
          "%0 = stablehlo.reverse %a, dims = [7] : tensor<4xf32>",
          "%0:2 = chlo.top_k(%a, k = 9) : tensor<4xf32> -> (tensor<9xf32>, tensor<9xi32>)",
          R"(%0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 0]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>)",
      }) {
    const std::string said = refusal("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + std::string(wrong) +
                                     "\nreturn %a : tensor<4xf32> }");
    const bool is_listed =
        std::any_of(ops::op_constraints().begin(), ops::op_constraints().end(), [&](const ops::OpConstraint& one) {
          return said.find(std::string(one.op) + " " + std::string(one.label)) != std::string::npos;
        });
    EXPECT_TRUE(is_listed) << said;
  }
}

TEST(OpFacts, say_what_rows_say) {
  const std::vector<OpFacts> all = all_op_facts();
  EXPECT_EQ(all.size(), ops::all_ops().size());
  const auto of = [&](std::string_view name) {
    return *std::find_if(all.begin(), all.end(), [&](const OpFacts& facts) { return facts.def->name == name; });
  };
  EXPECT_EQ(of("stablehlo.cosine").how, "pointwise");
  const auto has = [](const OpFacts& facts, std::string_view dtype) {
    return std::count(facts.dtypes.begin(), facts.dtypes.end(), dtype) == 1;
  };
  EXPECT_TRUE(has(of("stablehlo.cosine"), "complex64"));
  EXPECT_FALSE(has(of("stablehlo.cosine"), "int32"));
  EXPECT_TRUE(has(of("stablehlo.sort"), "float32"));
  EXPECT_TRUE(has(of("stablehlo.abs"), "int8"));
  EXPECT_EQ(of("stablehlo.dot_general").sharding_rule,
            "([i, j, l], [i, l, k])->([i, j, k]) {i=2, j=4, k=5, l=3} reduction={l}");
  EXPECT_EQ(of("chlo.scan").how, "composed");
  EXPECT_TRUE(of("stablehlo.send").runs);
  EXPECT_EQ(of("stablehlo.dot_general").constraints.front(), "takes 2 operands");
  const auto lists = [](const OpFacts& facts, const std::string& text) {
    return std::count(facts.constraints.begin(), facts.constraints.end(), text) == 1;
  };
  EXPECT_TRUE(lists(of("stablehlo.slice"), "C4: strides must be positive"));
  EXPECT_TRUE(lists(of("stablehlo.add"), "C1: operands have one type, and the result their shape"));
  EXPECT_TRUE(lists(of("stablehlo.all_reduce"), "C1: ids in replica_groups must be distinct"));
  EXPECT_TRUE(lists(of("chlo.top_k"), "I1: operand must have a dimension and elements with an order"));
}

}  // namespace
}  // namespace meshd::program
