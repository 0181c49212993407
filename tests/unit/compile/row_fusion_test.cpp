// Row fusion: which loops become one step, and that their results have the bits of the loops one after the other, for
// random shapes, every kind of number, special values, shards, and any number of threads.
#include <algorithm>
#include <random>

#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

using compile::PlanRef;

// `$X`, `$R`, `$C`, `$T` in a text: types of the array, of its rows, of one row, and the element's; `$0` and `$1`:
// numbers.
std::string with_types(std::string text, const tensor::Dims& rows, int64_t columns, const std::string& dtype) {
  const auto type = [&](const tensor::Dims& dims) {
    std::string out = "tensor<";
    for (const int64_t dim : dims) out += std::to_string(dim) + "x";
    return out + dtype + ">";
  };
  tensor::Dims all = rows;
  all.push_back(columns);
  std::string kept = "dims = [";
  for (size_t d = 0; d < rows.size(); ++d) kept += (d == 0 ? "" : ", ") + std::to_string(d);
  const auto number = [&](const std::string& digit) {
    if (dtype[0] == 'c') return "(" + digit + ".0, 0.0)";
    return dtype.find('i') == std::string::npos ? digit + ".0" : digit;
  };
  const std::pair<std::string, std::string> words[] = {{"$X", type(all)},       {"$R", type(rows)},
                                                       {"$C", type({columns})}, {"$T", type({})},
                                                       {"$KEPT", kept + "]"},   {"$LAST", std::to_string(rows.size())},
                                                       {"$0", number("0")},     {"$1", number("1")}};
  for (const auto& [word, meaning] : words) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) {
      text.replace(at, word.size(), meaning);
    }
  }
  return text;
}

const std::string kSoftmax = R"(
func.func @main(%x: $X) -> $X {
  %low = stablehlo.constant dense<0xFF800000> : $T
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [$LAST] : ($X, $T) -> $R
  %wide = stablehlo.broadcast_in_dim %m, $KEPT : ($R) -> $X
  %d = stablehlo.subtract %x, %wide : $X
  %e = stablehlo.exponential %d : $X
  %zero = stablehlo.constant dense<0.0> : $T
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [$LAST] : ($X, $T) -> $R
  %t = stablehlo.broadcast_in_dim %s, $KEPT : ($R) -> $X
  %out = stablehlo.divide %e, %t : $X
  return %out : $X
})";

// The sum of x + y is returned, too, and read by the folds from where it is written.
const std::string kResidualNorm = R"(
func.func @main(%x: $X, %y: $X, %gain: $C, %shift: $C) -> ($X, $X, $R) {
  %zero = stablehlo.constant dense<0.0> : $T
  %z = stablehlo.add %x, %y : $X
  %s = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [$LAST] : ($X, $T) -> $R
  %n = stablehlo.constant dense<77.0> : $R
  %m = stablehlo.divide %s, %n : $R
  %wm = stablehlo.broadcast_in_dim %m, $KEPT : ($R) -> $X
  %c = stablehlo.subtract %z, %wm : $X
  %q = stablehlo.multiply %c, %c : $X
  %v = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [$LAST] : ($X, $T) -> $R
  %r = stablehlo.rsqrt %v : $R
  %wr = stablehlo.broadcast_in_dim %r, $KEPT : ($R) -> $X
  %wg = stablehlo.broadcast_in_dim %gain, dims = [$LAST] : ($C) -> $X
  %ws = stablehlo.broadcast_in_dim %shift, dims = [$LAST] : ($C) -> $X
  %a = stablehlo.multiply %c, %wr : $X
  %b = stablehlo.multiply %a, %wg : $X
  %out = stablehlo.add %b, %ws : $X
  return %z, %out, %v : $X, $X, $R
})";

// Folds that share a pass over x, and nothing else.
const std::string kSumAndProduct = R"(
func.func @main(%x: $X) -> ($R, $R, $R) {
  %one = stablehlo.constant dense<$1> : $T
  %s = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [$LAST] : ($X, $T) -> $R
  %p = stablehlo.reduce(%x init: %one) applies stablehlo.multiply across dimensions = [$LAST] : ($X, $T) -> $R
  %both = stablehlo.add %s, %p : $R
  return %s, %p, %both : $R, $R, $R
})";

const std::string kCenter = R"(
func.func @main(%x: $X) -> $X {
  %zero = stablehlo.constant dense<$0> : $T
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [$LAST] : ($X, $T) -> $R
  %w = stablehlo.broadcast_in_dim %s, $KEPT : ($R) -> $X
  %out = stablehlo.subtract %x, %w : $X
  return %out : $X
})";

// A reducer of two values, with places along the row counted, and rows read backwards.
const std::string kLeftmostMaximum = R"(
func.func @main(%x: $X) -> ($X, $R) {
  %low = stablehlo.constant dense<0xFF800000> : $T
  %first = stablehlo.constant dense<0.0> : $T
  %place = stablehlo.iota dim = $LAST : $X
  %top:2 = stablehlo.reduce(%x init: %low), (%place init: %first) across dimensions = [$LAST]
      : ($X, $X, $T, $T) -> ($R, $R)
   reducer(%a: $T, %b: $T) (%i: $T, %j: $T) {
    %better = stablehlo.compare GT, %a, %b : ($T, $T) -> tensor<i1>
    %value = stablehlo.select %better, %a, %b : tensor<i1>, $T
    %at = stablehlo.select %better, %i, %j : tensor<i1>, $T
    stablehlo.return %value, %at : $T, $T
  }
  %w = stablehlo.broadcast_in_dim %top#0, $KEPT : ($R) -> $X
  %back = stablehlo.reverse %x, dims = [$LAST] : $X
  %d = stablehlo.subtract %back, %w : $X
  %out = stablehlo.add %d, %place : $X
  return %out, %top#1 : $X, $R
})";

struct Plans {
  PlanRef rows;
  PlanRef plain;
};

Plans plans_of(const std::string& text, int threads = 2) {
  const partition::LocalProgram local = local_of(text);
  // Fused rows run as code from the first element on, the plain plan is interpreted.
  const auto plan = [&](bool fuse_rows) {
    compile::PlanOptions options;
    options.threads = threads;
    options.donate = compile::donated_of(local);
    options.fuse_rows = fuse_rows;
    options.generate_code = fuse_rows;
    options.code_after = 0;
    return compile::make_plan(local, options);
  };
  return {plan(true), plan(false)};
}

// Runs both plans; returns how many steps the fused one has.
int64_t expect_same_bits(const std::string& text, unsigned seed = 1) {
  const Plans plans = plans_of(text, 3);
  const Bits arguments = arguments_of(plans.plain, seed);
  Bench one({.device_count = 8, .threads = 1});
  Bench three({.device_count = 8, .threads = 3});
  const Bits plain = run(one, plans.plain, arguments);
  EXPECT_EQ(difference(run(one, plans.rows, arguments), plain), "") << text << to_text(*plans.rows);
  EXPECT_EQ(difference(run(three, plans.rows, arguments), plain), "") << text << to_text(*plans.rows);
  return plans.rows->step_count;
}

TEST(RowFusion, softmax_is_one_step_without_arena) {
  const Plans plans = plans_of(with_types(kSoftmax, {64}, 1024, "f32"));
  EXPECT_EQ(plans.rows->step_count, 1) << to_text(*plans.rows);
  EXPECT_EQ(plans.rows->memory.arena, 0);
  EXPECT_GT(plans.rows->memory.scratch, 0);
  EXPECT_LT(plans.rows->memory.scratch, 2 * 128 * 1024) << "a block for each thread";
  EXPECT_EQ(plans.plain->step_count, 4) << to_text(*plans.plain);
  EXPECT_EQ(plans.rows->blocks[0].steps[0].flops,
            plans.plain->blocks[0].steps[0].flops + plans.plain->blocks[0].steps[1].flops +
                plans.plain->blocks[0].steps[2].flops + plans.plain->blocks[0].steps[3].flops);
}

TEST(RowFusion, bits_are_those_of_the_loops_one_after_the_other) {
  std::mt19937 random(7);
  const auto any = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random()) % (most - least + 1);
  };
  const std::vector<tensor::Dims> shapes = {{64, 1024}, {1000, 10}, {17, 1023}, {9, 4099}, {3, 70000},
                                            {2500, 2},  {1000, 64}, {37, 256},  {130, 192}};
  std::vector<std::pair<tensor::Dims, int64_t>> sizes;
  for (const tensor::Dims& shape : shapes) sizes.push_back({{shape[0]}, shape[1]});
  sizes.push_back({{3, 1, 41}, 130});
  for (int i = 0; i < 4; ++i) sizes.push_back({{any(1, 5), any(2, 40)}, any(2, 900)});
  unsigned seed = 1;
  for (const auto& [rows, columns] : sizes) {
    for (const std::string& text : {kSoftmax, kResidualNorm, kLeftmostMaximum}) {
      expect_same_bits(with_types(text, rows, columns, "f32"), ++seed);
    }
  }
}

TEST(RowFusion, every_kind_of_number_is_folded_as_before) {
  unsigned seed = 1;
  for (const char* dtype : {"f64", "bf16", "f16", "f8E4M3FN", "complex<f32>", "complex<f64>", "i32", "ui8", "i64"}) {
    for (const int64_t columns : {65, 1000}) {
      EXPECT_EQ(expect_same_bits(with_types(kCenter, {130}, columns, dtype), ++seed), 1) << dtype;
      EXPECT_EQ(expect_same_bits(with_types(kSumAndProduct, {130}, columns, dtype), ++seed), 1) << dtype;
    }
  }
}

// Results leave past the caches while rows of the next block are prefetched.
TEST(RowFusion, rows_that_exceed_the_caches) {
  for (const int64_t columns : {256, 1000, 1024}) {
    const int64_t rows = (int64_t{64} << 20) / 4 / columns;
    EXPECT_EQ(expect_same_bits(with_types(kCenter, {rows}, columns, "f32"), 11), 1) << columns;
  }
}

TEST(RowFusion, a_value_that_is_a_result_is_read_from_its_place) {
  const Plans plans = plans_of(with_types(kResidualNorm, {64}, 77, "f32"));
  EXPECT_EQ(plans.rows->step_count, 1) << to_text(*plans.rows);
  EXPECT_EQ(plans.rows->memory.arena, 0) << to_text(*plans.rows);
}

TEST(RowFusion, rows_that_are_too_long_or_too_few_stay_loops) {
  EXPECT_GT(plans_of(with_types(kSoftmax, {64}, 1 << 17, "f32")).rows->step_count, 1);
  EXPECT_GT(plans_of(with_types(kSoftmax, {4}, 1 << 15, "f32")).rows->step_count, 1) << "threads share columns";
  EXPECT_GT(plans_of(with_types(kSoftmax, {4}, 100, "f32")).rows->step_count, 1) << "as small steps";
}

TEST(RowFusion, shards_of_rows_run_as_one_step_on_each_device) {
  const std::string text = R"(
module {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%x: tensor<90x300xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<90x300xf32> {
    %row = stablehlo.iota dim = 0 : tensor<90x300xf32>
    %column = stablehlo.iota dim = 1 : tensor<90x300xf32>
    %inside = stablehlo.compare GE, %row, %column : (tensor<90x300xf32>, tensor<90x300xf32>) -> tensor<90x300xi1>
    %low = stablehlo.constant dense<-1.0e9> : tensor<90x300xf32>
    %masked = stablehlo.select %inside, %x, %low : tensor<90x300xi1>, tensor<90x300xf32>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %m = stablehlo.reduce(%masked init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<90x300xf32>, tensor<f32>) -> tensor<90xf32>
    %w = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<90xf32>) -> tensor<90x300xf32>
    %d = stablehlo.subtract %masked, %w : tensor<90x300xf32>
    %e = stablehlo.exponential %d : tensor<90x300xf32>
    return %e : tensor<90x300xf32>
  }
})";
  EXPECT_EQ(expect_same_bits(text), 1);
}

// Many rows in a block, and a fold along a dimension of size one behind the rows' own.
TEST(RowFusion, a_fold_of_one_element_is_no_fold_of_rows) {
  const std::string text = R"(
func.func @main(%x: tensor<20000x8xf32>) -> tensor<20000x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<20000x8xf32>, tensor<f32>) -> tensor<20000xf32>
  %column = stablehlo.reshape %s : (tensor<20000xf32>) -> tensor<20000x1xf32>
  %twice = stablehlo.add %column, %column : tensor<20000x1xf32>
  %r = stablehlo.reduce(%twice init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<20000x1xf32>, tensor<f32>) -> tensor<20000xf32>
  %w = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<20000xf32>) -> tensor<20000x8xf32>
  %out = stablehlo.subtract %x, %w : tensor<20000x8xf32>
  return %out : tensor<20000x8xf32>
})";
  EXPECT_GE(expect_same_bits(text), 1);
}

// What is between the folds is a product that reads the first group's result: one step would wait for itself.
TEST(RowFusion, a_step_in_between_separates_groups) {
  const std::string text = R"(
func.func @main(%x: tensor<64x96xf32>, %w: tensor<96x96xf32>) -> tensor<64x96xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x96xf32>, tensor<f32>) -> tensor<64xf32>
  %ws = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<64xf32>) -> tensor<64x96xf32>
  %c = stablehlo.subtract %x, %ws : tensor<64x96xf32>
  %p = stablehlo.dot_general %c, %w, contracting_dims = [1] x [0] : (tensor<64x96xf32>, tensor<96x96xf32>) -> tensor<64x96xf32>
  %y = stablehlo.add %p, %c : tensor<64x96xf32>
  %t = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x96xf32>, tensor<f32>) -> tensor<64xf32>
  %wt = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<64xf32>) -> tensor<64x96xf32>
  %d = stablehlo.subtract %y, %wt : tensor<64x96xf32>
  %out = stablehlo.add %d, %x : tensor<64x96xf32>
  return %out : tensor<64x96xf32>
})";
  EXPECT_EQ(expect_same_bits(text), 3);
}

TEST(RowFusion, a_donated_operand_becomes_the_result) {
  std::string text = with_types(kSoftmax, {64}, 200, "f32");
  text.replace(text.find("%x: tensor<64x200xf32>"), 22, "%x: tensor<64x200xf32> {tf.aliasing_output = 0 : i32}");
  EXPECT_EQ(expect_same_bits(text), 1);
  const Plans plans = plans_of(text);
  EXPECT_EQ(plans.rows->memory.own, 0) << to_text(*plans.rows);
}

// Rows are read backwards after the first element of the result would have been written.
TEST(RowFusion, an_operand_that_is_still_read_keeps_its_place) {
  std::string text = with_types(kLeftmostMaximum, {64}, 200, "f32");
  text.replace(text.find("%x: tensor<64x200xf32>"), 22, "%x: tensor<64x200xf32> {tf.aliasing_output = 0 : i32}");
  expect_same_bits(text);
}

}  // namespace
}  // namespace meshd::test
