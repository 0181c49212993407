// Small modules with a mesh, and the local program that every device runs: what is resharded, what is reduced over
// which sub-axes, where neighbours' rows are fetched, what happens to padding, and whose memory results take; and the
// device's text.
#include "service/partition/partition.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "service/compile/stages.h"
#include "service/core/error.h"
#include "service/partition/export/device_module.h"
#include "service/partition/moves.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/transform/inline_calls.h"

namespace meshd::partition {
namespace {

compile::ParsedProgram parsed(const std::string& text) {
  compile::ParsedProgram out;
  out.text = text;
  out.module = program::parse_stablehlo(text);
  out.flat = std::make_shared<const ir::Module>(program::inline_calls(*out.module));
  const auto positions = [](const std::vector<ir::Parameter>& parameters, std::vector<size_t>& made) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].is_token) made.push_back(i);
    }
  };
  positions(out.module->main().arguments, out.arguments);
  positions(out.module->main().results, out.results);
  return out;
}

LocalProgram partitioned(const std::string& text) {
  const compile::ParsedProgram program = parsed(text);
  compile::LowerRequest request;
  request.device_count = program.module->meshes.empty() ? 1 : program.module->meshes.front().mesh->position_count();
  return compile::partition_for(compile::propagate_for(program, request), request);
}

/// A module over mesh x=4, y=2 (sub-axis 0 is x, 1 is y): "%a: 8x16 [x, y], ..." is written out.
struct Case {
  std::string name;
  std::string signature;  ///< "8x16 [{x}, {y}]; 16x32 [{}, {}] -> 8x32 [{}, {x}]"
  std::string body;       ///< with $0, $1 for arguments' types and $r for the result's
  std::string local;      ///< what to_text says
};

std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.signature; }

std::string module_of(const Case& one) {
  const auto type_of = [](const std::string& text) { return "tensor<" + text.substr(0, text.find(' ')) + ">"; };
  const auto sharding_of = [](const std::string& text) {
    std::string axes;  // with their names in quotes
    bool in_name = false;
    for (const char c : text.substr(text.find('['))) {
      if ((c >= 'a' && c <= 'z') != in_name) axes += '"';
      in_name = c >= 'a' && c <= 'z';
      axes += c;
    }
    return " {sdy.sharding = #sdy.sharding<@mesh, " + axes + ">}";
  };
  const size_t arrow = one.signature.find(" -> ");
  const std::string result = one.signature.substr(arrow + 4);
  std::string out = "sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\nfunc.func @main(";
  std::string body = one.body;
  std::string rest = one.signature.substr(0, arrow);
  const auto put = [&](const std::string& name, const std::string& with) {
    for (size_t at; (at = body.find(name)) != std::string::npos;) body.replace(at, name.size(), with);
  };
  for (int i = 0; !rest.empty(); ++i) {
    const size_t end = std::min(rest.find("; "), rest.size());
    const std::string argument = rest.substr(0, end);
    rest.erase(0, end + (end < rest.size() ? 2 : 0));
    out += (i ? ", %a" : "%a") + std::to_string(i) + ": " + type_of(argument) + sharding_of(argument);
    put("$" + std::to_string(i), type_of(argument));
  }
  put("$r", type_of(result));
  return out + ") -> (" + type_of(result) + sharding_of(result) + ") {\n" + body + "\n}\n";
}

TEST(Partition, shards_of_an_op_keep_to_the_rule_of_its_row) {
  // The rule of the text, by which shardings propagate, says that sums are transposed.
  const LocalProgram program = partitioned(R"(sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = stablehlo.add %a, %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([j, i]) {i=8, j=8}>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
)");
  bool has_sum = false;
  for (const LocalOp& op : program.body.ops) {
    if (op.name != "stablehlo.add") continue;
    has_sum = true;
    EXPECT_EQ(program.local_types(op.operands)[0], program.local_types(op.results)[0]) << to_text(program);
  }
  EXPECT_TRUE(has_sum) << to_text(program);
}

TEST(Partition, token_of_an_older_text_is_a_value_without_elements) {
  const LocalProgram program = partitioned(R"(
func.func @main(%t: tensor<0xi1> {jax.token = true}, %a: tensor<2xi1>) -> (tensor<0xi1> {jax.token = true}, tensor<2xi1>) {
  %0 = stablehlo.concatenate %t, %a, dim = 0 : (tensor<0xi1>, tensor<2xi1>) -> tensor<2xi1>
  return %t, %0 : tensor<0xi1>, tensor<2xi1>
}
)");
  EXPECT_EQ(program.arguments.size(), 1U);
  EXPECT_EQ(program.results.size(), 1U);
}

class LocalText : public ::testing::TestWithParam<Case> {};

TEST_P(LocalText, is_what_every_device_runs) {
  EXPECT_EQ(to_text(partitioned(module_of(GetParam()))), GetParam().local) << module_of(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Partition, LocalText,
    ::testing::Values(
        Case{"elementwise_of_one_sharding_runs_on_shards", "8x16xf32 [{x}, {y}] -> 8x16xf32 [{x}, {y}]",
             "%0 = stablehlo.tanh %a0 : $0\nreturn %0 : $r",
             "local(%0:tensor<2x8xf32>{0;1}~3)\n"
             "  %1:tensor<2x8xf32>{0;1}~3 = op stablehlo.tanh(%0) line 3\n"
             "gives %1\n"},
        Case{"operand_of_another_sharding_is_resharded", "8x16xf32 [{x}, {}]; 8x16xf32 [{}, {x}] -> 8x16xf32 [{x}, {}]",
             "%0 = stablehlo.add %a0, %a1 : $0\nreturn %0 : $r",
             "local(%0:tensor<2x16xf32>{0;}~1, %1:tensor<8x4xf32>{;0}~1)\n"
             "  %2:tensor<2x16xf32>{0;}~1 = reshard reshard(%1) for operand 1 of stablehlo.add line 3\n"
             "  %3:tensor<2x16xf32>{0;}~1 = op stablehlo.add(%0, %2) line 3\n"
             "gives %3\n"},
        Case{"sharded_contraction_is_summed_over_its_sub_axis",
             "8x16xf32 [{x}, {y}]; 16x32xf32 [{y}, {}] -> 8x32xf32 [{x}, {}]",
             "%0 = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : ($0, $1) -> $r\nreturn %0 : $r",
             "local(%0:tensor<2x8xf32>{0;1}~3, %1:tensor<8x32xf32>{1;}~2)\n"
             "  %2:tensor<2x32xf32>{0;}~3 = op stablehlo.dot_general(%0, %1) line 3\n"
             "  %3:tensor<2x32xf32>{0;}~1 = reduce_shards all_reduce(%2) over ~2 for sharded reduction of "
             "stablehlo.dot_general line 3\n"
             "gives %3\n"},
        Case{"contraction_whose_operands_disagree_moves_the_smaller",
             "8x16xf32 [{x}, {y}]; 16x32xf32 [{y}, {x}] -> 8x32xf32 [{}, {x}]",
             "%0 = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : ($0, $1) -> $r\nreturn %0 : $r",
             "local(%0:tensor<2x8xf32>{0;1}~3, %1:tensor<8x8xf32>{1;0}~3)\n"
             "  %2:tensor<8x8xf32>{;1}~2 = reshard reshard(%0) for operand 0 of stablehlo.dot_general line 3\n"
             "  %3:tensor<8x8xf32>{;0}~3 = op stablehlo.dot_general(%2, %1) line 3\n"
             "  %4:tensor<8x8xf32>{;0}~1 = reduce_shards all_reduce(%3) over ~2 for sharded reduction of "
             "stablehlo.dot_general line 3\n"
             "gives %4\n"},
        Case{"transpose_moves_nothing", "8x16xf32 [{x}, {y}] -> 16x8xf32 [{y}, {x}]",
             "%0 = stablehlo.transpose %a0, dims = [1, 0] : ($0) -> $r\nreturn %0 : $r",
             "local(%0:tensor<2x8xf32>{0;1}~3)\n"
             "  %1:tensor<8x2xf32>{1;0}~3 = op stablehlo.transpose(%0) line 3\n"
             "gives %1\n"},
        Case{"whole_result_is_gathered_at_the_end", "8xf32 [{x}] -> 8xf32 [{}]",
             "%0 = stablehlo.abs %a0 : $0\nreturn %0 : $r",
             "local(%0:tensor<2xf32>{0}~1)\n"
             "  %1:tensor<2xf32>{0}~1 = op stablehlo.abs(%0) line 3\n"
             "  %2:tensor<8xf32>{} = reshard reshard(%1) for result 0 line 2\n"
             "gives %2\n"},
        Case{"sum_over_uneven_rows_masks_their_padding", "5x3xf32 [{x}, {}] -> 3xf32 [{}]",
             "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
             "%0 = stablehlo.reduce(%a0 init: %z) applies stablehlo.add across dimensions = [0] : ($0, tensor<f32>) -> "
             "$r\n"
             "return %0 : $r",
             "local(%0:tensor<2x3xf32>{0;}~1)\n"
             "  %1:tensor<f32>{} = constant stablehlo.constant() line 3\n"
             "  %2:tensor<f32>{} = constant stablehlo.constant() line 4\n"
             "  %3:tensor<2x3xf32>{0;}~1 = mask mask(%0, %2) for operand 0 of stablehlo.reduce line 4\n"
             "  %4:tensor<3xf32>{}~1 = op stablehlo.reduce(%3, %1) line 4\n"
             "  %5:tensor<3xf32>{} = reduce_shards all_reduce(%4) over ~1 for sharded reduction of stablehlo.reduce "
             "line 4\n"
             "gives %5\n"},
        Case{"maximum_over_uneven_rows_masks_with_minus_infinity", "5xf32 [{x}] -> 1xf32 [{}]",
             "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
             "%0 = stablehlo.reduce(%a0 init: %z) applies stablehlo.maximum across dimensions = [0] : ($0, "
             "tensor<f32>) -> "
             "tensor<f32>\n%1 = stablehlo.reshape %0 : (tensor<f32>) -> $r\nreturn %1 : $r",
             "local(%0:tensor<2xf32>{0}~1)\n"
             "  %1:tensor<f32>{} = constant stablehlo.constant() line 3\n"
             "  %2:tensor<f32>{} = constant stablehlo.constant() line 4\n"
             "  %3:tensor<2xf32>{0}~1 = mask mask(%0, %2) for operand 0 of stablehlo.reduce line 4\n"
             "  %4:tensor<f32>{}~1 = op stablehlo.reduce(%3, %1) line 4\n"
             "  %5:tensor<f32>{} = reduce_shards all_reduce(%4) over ~1 for sharded reduction of stablehlo.reduce line "
             "4\n"
             "  %6:tensor<1xf32>{} = op stablehlo.reshape(%5) line 5\n"
             "gives %6\n"},
        Case{"uneven_elementwise_leaves_garbage_in_the_padding", "7x3xf32 [{x}, {}] -> 7x3xf32 [{x}, {}]",
             "%0 = stablehlo.exponential %a0 : $0\nreturn %0 : $r",
             "local(%0:tensor<2x3xf32>{0;}~1)\n"
             "  %1:tensor<2x3xf32>{0;}~1 = op stablehlo.exponential(%0) line 3\n"
             "gives %1\n"},
        Case{"slice_fetches_the_rows_that_it_lacks", "16xf32 [{x}] -> 12xf32 [{x}]",
             "%0 = stablehlo.slice %a0 [2:14] : ($0) -> $r\nreturn %0 : $r",
             "local(%0:tensor<4xf32>{0}~1)\n"
             "  %1:tensor<3xf32>{0}~1 = halo halo_exchange(%0) for stablehlo.slice line 3\n"
             "gives %1\n"},
        Case{"iota_is_made_where_it_is_used", "8x4xi32 [{x}, {}] -> 8x4xi32 [{x}, {}]",
             "%0 = stablehlo.iota dim = 0 : $0\n%1 = stablehlo.add %a0, %0 : $0\nreturn %1 : $r",
             "local(%0:tensor<2x4xi32>{0;}~1)\n"
             "  %1:tensor<2x4xi32>{0;}~1 = op stablehlo.iota() line 3\n"
             "  %2:tensor<2x4xi32>{0;}~1 = op stablehlo.add(%0, %1) line 4\n"
             "gives %2\n"},
        Case{
            "loop_keeps_one_layout_for_what_it_carries", "8xf32 [{x}] -> 8xf32 [{x}]",
            "%n = stablehlo.constant dense<3> : tensor<i32>\n"
            "%0:2 = stablehlo.while(%i = %n, %v = %a0) : tensor<i32>, $0\n"
            "cond {\n%z = stablehlo.constant dense<0> : tensor<i32>\n%c = stablehlo.compare GT, %i, %z : (tensor<i32>, "
            "tensor<i32>) -> tensor<i1>\nstablehlo.return %c : tensor<i1>\n}\n"
            "do {\n%o = stablehlo.constant dense<1> : tensor<i32>\n%j = stablehlo.subtract %i, %o : tensor<i32>\n"
            "%w = stablehlo.add %v, %v : $0\nstablehlo.return %j, %w : tensor<i32>, $0\n}\nreturn %0#1 : $r",
            "local(%0:tensor<2xf32>{0}~1)\n"
            "  %1:tensor<i32>{} = constant stablehlo.constant() line 3\n"
            "  %11:tensor<i32>{}, %12:tensor<2xf32>{0}~1 = while stablehlo.while(%1, %0) line 4\n"
            "  {\n"
            "    %4:tensor<i32>{} = constant stablehlo.constant() line 6\n"
            "    %5:tensor<i1>{} = op stablehlo.compare(%2, %4) line 7\n"
            "    gives %5\n"
            "  }\n"
            "  {\n"
            "    %8:tensor<i32>{} = constant stablehlo.constant() line 11\n"
            "    %9:tensor<i32>{} = op stablehlo.subtract(%6, %8) line 12\n"
            "    %10:tensor<2xf32>{0}~1 = op stablehlo.add(%7, %7) line 13\n"
            "    gives %9 %10\n"
            "  }\n"
            "gives %12\n"}),
    [](const ::testing::TestParamInfo<Case>& one) { return one.param.name; });

// What a device receives.

struct Moving {
  std::string name;
  std::string mesh;
  std::string signature;  ///< of @main: "(%a: tensor<8xf32> [{"x"}]) -> (tensor<8xf32> [{}])"
  std::string body;
  int64_t bytes;
};

std::ostream& operator<<(std::ostream& out, const Moving& one) { return out << one.signature; }

std::string text_of(const Moving& one) {
  std::string out = "sdy.mesh @mesh = <[" + one.mesh + "]>\nfunc.func @main";
  for (const char c : one.signature) {
    if (c == '[') out += "{sdy.sharding = #sdy.sharding<@mesh, ";
    out += c;
    if (c == ']') out += ">}";
  }
  return out + " {\n" + one.body + "\n}\n";
}

class BytesMoved : public ::testing::TestWithParam<Moving> {};

TEST_P(BytesMoved, are_the_fewest) {
  const LocalProgram program = partitioned(text_of(GetParam()));
  int64_t bytes = 0;
  for (const Move& move : find_moves(program)) bytes += move.bytes;
  EXPECT_EQ(bytes, GetParam().bytes) << to_text(program);
}

INSTANTIATE_TEST_SUITE_P(
    Partition, BytesMoved,
    ::testing::Values(
        Moving{
            "sum_is_scattered_as_it_is_returned_not_as_the_constraint_between_says", R"("x"=4, "y"=2)",
            R"((%a: tensor<8x16xf32> [{}, {"y"}], %b: tensor<16x32xf32> [{"y"}, {}]) -> (tensor<8x32xf32> [{"y"}, {}]))",
            R"(%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
%1 = sdy.sharding_constraint %0 <@mesh, [{}, {"y"}]> : tensor<8x32xf32>
return %1 : tensor<8x32xf32>)",
            512},
        Moving{
            "sum_is_scattered_before_its_parts_go_elsewhere", R"("x"=4, "y"=2)",
            R"((%a: tensor<8x16xf32> [{"x"}, {"y"}], %b: tensor<16x32xf32> [{"y"}, {}]) -> (tensor<8x32xf32> [{"y"}, {"x"}]))",
            R"(%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
return %0 : tensor<8x32xf32>)",
            256},
        Moving{"parts_of_an_unreduced_sum_that_is_read_whole_move_once", R"("x"=2, "y"=2, "z"=2)",
               R"((%a: tensor<16xf32> [{"x", "z"}]) -> (tensor<16xf32> [{}]))",
               R"(%0 = sdy.sharding_constraint %a <@mesh, [{}], unreduced={"z"}> : tensor<16xf32>
%1 = stablehlo.negate %0 : tensor<16xf32>
return %1 : tensor<16xf32>)",
               48},
        Moving{"what_a_manual_computation_reads_whole_is_gathered_before_it_is_sliced", R"("x"=2, "y"=2)",
               R"((%a: tensor<2x4xf32> [{}, {"x"}]) -> (tensor<3x4xf32> [{}, {}]))",
               R"(%0 = stablehlo.negate %a : tensor<2x4xf32>
%1 = stablehlo.slice %0 [0:1, 0:4] : (tensor<2x4xf32>) -> tensor<1x4xf32>
%2 = sdy.manual_computation(%1, %0) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x", "y"} (%b: tensor<1x4xf32>, %c: tensor<2x4xf32>) {
  %d = stablehlo.concatenate %b, %c, dim = 0 : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  sdy.return %d : tensor<3x4xf32>
} : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
return %2 : tensor<3x4xf32>)",
               16},
        Moving{"reshape_of_parts_that_end_within_an_axis", R"("x"=4, "y"=2)",
               R"((%a: tensor<4x16xf32> [{}, {"y"}]) -> (tensor<64xf32> [{"y", "x"}]))",
               R"(%0 = stablehlo.reshape %a : (tensor<4x16xf32>) -> tensor<64xf32>
return %0 : tensor<64xf32>)",
               32}),
    [](const ::testing::TestParamInfo<Moving>& one) { return one.param.name; });

TEST(Partition, shards_stay_the_terms_of_an_unreduced_sum) {
  // Only y is gathered, 2 columns of 2 rows; rows stay in parts along x.
  const LocalProgram program = partitioned(R"(sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "x"}, {"y"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}, {}], unreduced={"x"}>}) {
  return %a : tensor<8x4xf32>
}
)");
  const std::vector<Move> moves = find_moves(program);
  ASSERT_EQ(moves.size(), 1U) << to_text(program);
  EXPECT_EQ(moves[0].kind, MoveKind::kAllGather);
  EXPECT_EQ(moves[0].bytes, 16);
}

// What the padding of an uneven dimension holds before a reduction reads it: the identity of the reducer.
float mask_of(const std::string& reducer) {
  const LocalProgram program = partitioned(module_of(
      {"", "5xf32 [{x}]; 1xf32 [{}] -> 1xf32 [{}]",
       "%i = stablehlo.reshape %a1 : ($1) -> tensor<f32>\n%0 = stablehlo.reduce(%a0 init: %i) applies stablehlo." +
           reducer +
           " across dimensions = [0] : ($0, tensor<f32>) -> tensor<f32>\n"
           "%1 = stablehlo.reshape %0 : (tensor<f32>) -> $r\nreturn %1 : $r",
       ""}));
  for (const LocalOp& mask : program.body.ops) {
    if (mask.kind != LocalKind::kMask) continue;
    for (const LocalOp& op : program.body.ops) {
      if (op.kind != LocalKind::kConstant || op.results.at(0) != mask.operands.at(1)) continue;
      float value = 0;
      std::memcpy(&value, ir::find(op.attributes, "value")->as<ir::DenseAttr>()->bytes->data(), sizeof value);
      return value;
    }
  }
  ADD_FAILURE() << "no mask for " << reducer;
  return 0;
}

TEST(Padding, is_masked_with_the_identity_of_the_reducer) {
  EXPECT_EQ(mask_of("add"), 0.0F);
  EXPECT_EQ(mask_of("multiply"), 1.0F);
  EXPECT_EQ(mask_of("maximum"), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(mask_of("minimum"), std::numeric_limits<float>::infinity());
}

// Donation.

LocalProgram donating(const std::string& arguments, const std::string& results, const std::string& body,
                      std::optional<std::vector<int64_t>> donate = std::nullopt) {
  const compile::ParsedProgram program = parsed("sdy.mesh @mesh = <[\"x\"=4]>\nfunc.func @main(" + arguments +
                                                ") -> (" + results + ") {\n" + body + "\n}\n");
  compile::LowerRequest request;
  request.device_count = 4;
  request.donate = std::move(donate);
  return compile::partition_for(compile::propagate_for(program, request), request);
}

std::vector<int64_t> aliases_of(const LocalProgram& program) {
  std::vector<int64_t> out;
  for (const LocalParameter& argument : program.arguments) out.push_back(argument.aliases);
  return out;
}

const std::string kTwoSums =
    "%0 = stablehlo.add %a, %b : tensor<8xf32>\n%1 = stablehlo.multiply %a, %b : tensor<8xf32>\n"
    "return %0, %1 : tensor<8xf32>, tensor<8xf32>";
const std::string kTwoResults = "tensor<8xf32>, tensor<8xf32>";

TEST(Donation, result_that_the_text_names_takes_the_arguments_memory) {
  const LocalProgram program =
      donating("%a: tensor<8xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<8xf32>", kTwoResults, kTwoSums);
  EXPECT_EQ(aliases_of(program), (std::vector<int64_t>{1, -1}));
  EXPECT_TRUE(program.arguments[0].is_donated);
  EXPECT_FALSE(program.arguments[1].is_donated);
  EXPECT_TRUE(program.warnings.empty());
}

TEST(Donation, donors_are_matched_with_results_in_order) {
  const std::string donor = " {jax.buffer_donor = true}";
  EXPECT_EQ(aliases_of(donating("%a: tensor<8xf32>" + donor + ", %b: tensor<8xf32>" + donor, kTwoResults, kTwoSums)),
            (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(aliases_of(donating("%a: tensor<8xf32>" + donor + ", %b: tensor<8xf32> {tf.aliasing_output = 0 : i32}",
                                kTwoResults, kTwoSums)),
            (std::vector<int64_t>{1, 0}))
      << "what the text names comes first";
}

TEST(Donation, equal_layout_is_preferred_to_the_order) {
  const std::string sharded = " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}";
  const std::string whole = " {sdy.sharding = #sdy.sharding<@mesh, [{}]>}";
  const LocalProgram program = donating(
      "%a: tensor<8xf32> {jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}, "
      "%b: tensor<8xf32>" +
          whole,
      "tensor<8xf32>" + whole + ", tensor<8xf32>" + sharded, kTwoSums);
  EXPECT_EQ(aliases_of(program), (std::vector<int64_t>{1, -1}));
}

TEST(Donation, request_says_which_arguments_in_place_of_the_text) {
  const std::string arguments = "%a: tensor<8xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<8xf32>";
  EXPECT_EQ(aliases_of(donating(arguments, kTwoResults, kTwoSums, std::vector<int64_t>{})),
            (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(aliases_of(donating(arguments, kTwoResults, kTwoSums, std::vector<int64_t>{1})),
            (std::vector<int64_t>{-1, 0}));
}

TEST(Donation, donated_buffer_that_no_result_can_use_is_named) {
  const LocalProgram program = donating("%a: tensor<8xf32> {jax.buffer_donor = true}", "tensor<2xf32>",
                                        "%0 = stablehlo.slice %a [0:2] : (tensor<8xf32>) -> tensor<2xf32>\n"
                                        "return %0 : tensor<2xf32>");
  EXPECT_TRUE(program.arguments[0].is_donated);
  EXPECT_EQ(aliases_of(program), std::vector<int64_t>{-1});
  EXPECT_EQ(program.warnings, std::vector<std::string>{"some donated buffers were not usable: float32[8]"});
}

// One line an op of the device's text, those of decompositions behind "@name:".
std::string ops_of(const ir::Region& region) {
  std::string out;
  for (const ir::Op& op : region.ops) {
    const ir::Attribute* name = op.name == "stablehlo.composite" ? ir::find(op.attributes, "name") : nullptr;
    if (op.name != "stablehlo.constant") out += " " + (name == nullptr ? op.name : name->as<ir::StringAttr>()->value);
    if (op.name == "sdy.manual_computation") out += " {" + ops_of(op.regions[0]) + " }";
  }
  return out;
}

std::string device_ops(const std::string& text) {
  std::string out;
  for (const ir::Function& function : device_module(partitioned(text)).functions)
    out += "@" + function.name + ":" + ops_of(function.body) + "\n";
  return out;
}

const std::string kMesh = "sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\n";
const std::string kRows = " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}";

TEST(DeviceModule, step_that_is_no_single_op_is_a_composite) {
  EXPECT_EQ(
      device_ops(kMesh + "func.func @main(%a: tensor<10x6xf32>" + kRows +
                 ") -> tensor<6xf32> {\n"
                 "%c = stablehlo.constant dense<1.0> : tensor<f32>\n"
                 "%0 = stablehlo.reduce(%a init: %c) applies stablehlo.maximum across dimensions = [0] : "
                 "(tensor<10x6xf32>, tensor<f32>) -> tensor<6xf32>\n"
                 "return %0 : tensor<6xf32>\n}\n"),
      "@main: stablehlo.pad sdy.manual_computation { meshd.mask stablehlo.reduce stablehlo.all_reduce sdy.return }"
      " func.return\n"
      "@mask: stablehlo.partition_id stablehlo.convert stablehlo.divide stablehlo.broadcast_in_dim stablehlo.iota"
      " stablehlo.multiply stablehlo.broadcast_in_dim stablehlo.add stablehlo.compare stablehlo.broadcast_in_dim"
      " stablehlo.select func.return\n");
}

TEST(DeviceModule, step_that_is_one_op_stays_in_place) {
  EXPECT_EQ(device_ops(kMesh + "func.func @main(%a: tensor<8x6xf32>" + kRows +
                       ") -> tensor<8x6xf32> {\n"
                       "%0 = stablehlo.tanh %a : tensor<8x6xf32>\n"
                       "%1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<8x6xf32>\n"
                       "%2 = stablehlo.sine %1 : tensor<8x6xf32>\n"
                       "return %2 : tensor<8x6xf32>\n}\n"),
            "@main: sdy.manual_computation { stablehlo.tanh stablehlo.all_gather stablehlo.sine sdy.return }"
            " func.return\n");
}

TEST(DeviceModule, results_made_apart_are_one_op_on_whole_values) {
  EXPECT_EQ(device_ops(kMesh + "func.func @main(%a: tensor<2xui64>) -> (tensor<2xui64>, tensor<8x6xui32>" + kRows +
                       ") {\n"
                       "%0:2 = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2xui64>) -> "
                       "(tensor<2xui64>, tensor<8x6xui32>)\n"
                       "return %0#0, %0#1 : tensor<2xui64>, tensor<8x6xui32>\n}\n"),
            "@main: sdy.manual_computation { meshd.rng_bit_generator sdy.return } func.return\n"
            "@rng_bit_generator: stablehlo.partition_id stablehlo.convert stablehlo.divide stablehlo.rng_bit_generator"
            " stablehlo.multiply stablehlo.dynamic_slice func.return\n");
}

}  // namespace
}  // namespace meshd::partition
