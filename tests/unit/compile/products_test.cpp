// Rewrites of matrix products: transposes that become part of them, products that leave loops, and sums over shards
// that are made with them. Results have the bits that they have without.
#include <cmath>
#include <random>

#include "service/compile/pipeline.h"
#include "service/compile/plan/products.h"
#include "service/compile/stages.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "tests/unit/device/engine_support.h"

namespace meshd::test {
namespace {

using compile::PlanRef;

PlanRef plan_of(const std::string& text, bool rewrites) {
  const compile::ParsedRef parsed = compile::Compiler(1, 8).parse("stablehlo", text);
  compile::LowerRequest request;
  for (const auto& named : parsed->flat->meshes)
    request.device_count = std::max(request.device_count, named.mesh->position_count());
  const partition::LocalProgram local = compile::partition_for(compile::propagate_for(*parsed, request), request);
  compile::PlanOptions options;
  options.threads = 2;
  options.donate = compile::donated_of(local);
  options.fold_transposes = rewrites;
  options.hoist_products = rewrites;
  options.fuse_sums = rewrites;
  return compile::make_plan(local, options);
}

int64_t count_steps(const PlanRef& plan, const std::string& name, compile::BlockId block = -1) {
  int64_t count = 0;
  for (size_t b = 0; b < plan->blocks.size(); ++b) {
    if (block >= 0 && static_cast<size_t>(block) != b) continue;
    for (const compile::Step& step : plan->blocks[b].steps) count += step.name == name ? 1 : 0;
  }
  return count;
}

/// Results of a plan, on random arguments that are the same for each plan of a program.
std::vector<std::vector<std::byte>> results_of(const PlanRef& plan) {
  std::mt19937 random(11);
  std::vector<device::RunArgument> given;
  Bench bench({.device_count = 8, .threads = 2});
  for (const compile::PlanParameter& argument : plan->arguments) {
    given.emplace_back();
    for (int64_t shard = 0; shard < argument.shard_count(); ++shard) {
      const int64_t size = tensor::size_bytes(argument.type.local.dtype);
      std::vector<std::byte> bytes(static_cast<size_t>(argument.shard_bytes));
      const tensor::DType dtype = argument.type.local.dtype;
      if (tensor::is_float(dtype)) {
        const auto narrow = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, tensor::DType::kFloat32, dtype);
        std::normal_distribution<float> normal;
        for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(size)) {
          const float value = random() % 97 == 0 ? -0.0F : normal(random);
          const auto* const from = reinterpret_cast<const std::byte*>(&value);
          if (narrow != nullptr)
            narrow(&from, bytes.data() + at, 1);
          else
            std::memcpy(bytes.data() + at, from, sizeof(value));
        }
      } else {
        for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(size)) bytes[at] = std::byte(random() % 5);
      }
      given.back().shards.push_back(bench.buffer(bytes));
    }
    given.back().may_overwrite = argument.is_donated;
  }
  const device::RunOutcome outcome = bench.run(plan, std::move(given));
  EXPECT_FALSE(outcome.error) << outcome.error->detail();
  std::vector<std::vector<std::byte>> out;
  for (size_t r = 0; r < outcome.outputs.size(); ++r) {
    for (const tensor::BufferRef& shard : outcome.outputs[r])
      out.emplace_back(shard->data(), shard->data() + plan->results[r].shard_bytes);
  }
  return out;
}

/// Elements of results in double.
std::vector<double> elements_of(const PlanRef& plan, const std::vector<std::vector<std::byte>>& results) {
  const tensor::DType dtype = plan->results[0].type.local.dtype;
  const auto widen = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, dtype, tensor::DType::kFloat64);
  std::vector<double> out;
  for (const std::vector<std::byte>& shard : results) {
    const auto count = shard.size() / static_cast<size_t>(tensor::size_bytes(dtype));
    std::vector<double> values(count);
    const std::byte* const from = shard.data();
    if (widen != nullptr)
      widen(&from, reinterpret_cast<std::byte*>(values.data()), static_cast<int64_t>(count));
    else
      std::memcpy(values.data(), from, shard.size());
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

/// The plan with rewrites, after its results were compared with those of the plan without. A library may add in
/// another order when it reads a matrix in another one.
PlanRef expect_near_results(const std::string& text) {
  const PlanRef rewritten = plan_of(text, true);
  const PlanRef plain = plan_of(text, false);
  const std::vector<double> got = elements_of(rewritten, results_of(rewritten));
  const std::vector<double> expected = elements_of(plain, results_of(plain));
  EXPECT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-4 + 1e-5 * std::abs(expected[i])) << text;
  return rewritten;
}

/// The plan with rewrites, after its results were compared with those of the plan without.
PlanRef expect_same_results(const std::string& text) {
  const PlanRef rewritten = plan_of(text, true);
  const PlanRef plain = plan_of(text, false);
  EXPECT_EQ(results_of(rewritten), results_of(plain)) << text << to_text(*rewritten);
  return rewritten;
}

std::string of_sizes(std::string text, const std::string& m, const std::string& n, const std::string& k) {
  const std::pair<std::string, std::string> words[] = {{"$M", m}, {"$N", n}, {"$K", k}};
  for (const auto& [word, meaning] : words) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word))
      text.replace(at, word.size(), meaning);
  }
  return text;
}

TEST(Products, transposed_operands_are_read_where_they_are) {
  const std::string text = R"(
func.func @main(%a: tensor<$Kx$Mxf32>, %b: tensor<$Nx$Kxf32>) -> tensor<$Mx$Nxf32> {
  %x = stablehlo.transpose %a, dims = [1, 0] : (tensor<$Kx$Mxf32>) -> tensor<$Mx$Kxf32>
  %y = stablehlo.transpose %b, dims = [1, 0] : (tensor<$Nx$Kxf32>) -> tensor<$Kx$Nxf32>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<$Mx$Kxf32>, tensor<$Kx$Nxf32>) -> tensor<$Mx$Nxf32>
  return %0 : tensor<$Mx$Nxf32>
})";
  for (const auto& [m, n, k] : std::vector<std::array<std::string, 3>>{
           {"7", "5", "3"}, {"60", "33", "100"}, {"130", "70", "500"}, {"1", "20", "30"}, {"300", "257", "129"}}) {
    const bool is_packed = m.size() + n.size() < 5 && m != "1";  // not a library's, at any instruction level
    const PlanRef plan =
        is_packed ? expect_same_results(of_sizes(text, m, n, k)) : expect_near_results(of_sizes(text, m, n, k));
    EXPECT_EQ(count_steps(plan, "stablehlo.transpose"), 0) << to_text(*plan);
    EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
  }
}

// The contracted dimension is sharded over x, the rows over y.
std::string summed_product(const std::string& dtype) {
  std::string text = R"(
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<$Mx$Kx$T> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}, %b: tensor<$Kx$Nx$T> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<$Mx$Nx$T> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<$Mx$Kx$T>, tensor<$Kx$Nx$T>) -> tensor<$Mx$Nx$T>
  return %0 : tensor<$Mx$Nx$T>
})";
  for (size_t at = text.find("$T"); at != std::string::npos; at = text.find("$T")) text.replace(at, 2, dtype);
  return text;
}

TEST(Products, sums_over_shards_are_made_with_the_product) {
  for (const char* dtype : {"f32", "f64", "bf16", "f16", "i32", "i8"}) {
    for (const auto& [m, n, k] : std::vector<std::array<std::string, 3>>{{"14", "5", "12"},
                                                                         {"60", "33", "100"},
                                                                         {"260", "140", "3000"},
                                                                         {"600", "1040", "256"},
                                                                         {"2", "20", "32"}}) {
      const PlanRef plan = expect_same_results(of_sizes(summed_product(dtype), m, n, k));
      EXPECT_EQ(count_steps(plan, "fused dot_general all_reduce (2 ops)"), 1) << to_text(*plan);
      EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
      EXPECT_EQ(plan->memory.arena, 0);
    }
  }
}

TEST(Products, batches_of_products_are_summed_over_shards) {
  for (const auto& [m, n, k] : std::vector<std::array<std::string, 3>>{{"3", "5", "8"}, {"70", "40", "260"}}) {
    const PlanRef plan = expect_same_results(of_sizes(R"(
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<9x$Mx$Kxf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>}, %b: tensor<9x$Kx$Nxf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>})
    -> (tensor<9x$Mx$Nxf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<9x$Mx$Kxf32>, tensor<9x$Kx$Nxf32>) -> tensor<9x$Mx$Nxf32>
  return %0 : tensor<9x$Mx$Nxf32>
})",
                                                      m, n, k));
    EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
  }
}

// psum(x @ w), where all devices have the same w.
TEST(Products, a_summed_product_may_have_an_operand_that_all_devices_share) {
  const PlanRef plan = expect_same_results(R"(
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%a, %b) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x"} (%l: tensor<8x16xf32>, %r: tensor<16x4xf32>) {
    %1 = stablehlo.dot_general %l, %r, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %3 = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    sdy.return %2 : tensor<8x4xf32>
  } : (tensor<32x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
})");
  EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
}

TEST(Products, a_partial_sum_that_something_else_reads_is_made) {
  const PlanRef plan = expect_same_results(R"(
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x4xf32>, tensor<32x4xf32>) {
  %0:2 = sdy.manual_computation(%a, %b) in_shardings=[<@mesh, [{}, {"x"}]>, <@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"x"}, {}]>] manual_axes={"x"} (%l: tensor<8x4xf32>, %r: tensor<4x4xf32>) {
    %1 = stablehlo.dot_general %l, %r, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %3 = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    sdy.return %2, %1 : tensor<8x4xf32>, tensor<8x4xf32>
  } : (tensor<8x16xf32>, tensor<16x4xf32>) -> (tensor<8x4xf32>, tensor<32x4xf32>)
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<32x4xf32>
})");
  EXPECT_EQ(count_steps(plan, "stablehlo.dot_general"), 1) << to_text(*plan);
}

TEST(Products, a_transposed_product_is_made_in_the_other_order) {
  const std::string text = R"(
func.func @main(%a: tensor<$Mx$Kxf32>, %b: tensor<$Kx$Nxf32>) -> tensor<$Nx$Mxf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<$Mx$Kxf32>, tensor<$Kx$Nxf32>) -> tensor<$Mx$Nxf32>
  %t = stablehlo.transpose %0, dims = [1, 0] : (tensor<$Mx$Nxf32>) -> tensor<$Nx$Mxf32>
  return %t : tensor<$Nx$Mxf32>
})";
  EXPECT_EQ(expect_same_results(of_sizes(text, "40", "50", "30"))->step_count, 1);
  EXPECT_EQ(expect_same_results(of_sizes(text, "61", "33", "17"))->step_count, 1);
  EXPECT_EQ(expect_near_results(of_sizes(text, "256", "200", "130"))->step_count, 1);
  // A result that is small against the operands.
  EXPECT_EQ(expect_same_results(of_sizes(text, "3", "100", "500"))->step_count, 2);
}

TEST(Products, a_product_that_others_read_keeps_its_order) {
  const PlanRef plan = expect_same_results(R"(
func.func @main(%a: tensor<40x30xf32>, %b: tensor<30x50xf32>) -> (tensor<50x40xf32>, tensor<40x50xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<40x30xf32>, tensor<30x50xf32>) -> tensor<40x50xf32>
  %t = stablehlo.transpose %0, dims = [1, 0] : (tensor<40x50xf32>) -> tensor<50x40xf32>
  return %t, %0 : tensor<50x40xf32>, tensor<40x50xf32>
})");
  EXPECT_EQ(count_steps(plan, "stablehlo.transpose"), 1) << to_text(*plan);
}

TEST(Products, batches_in_any_order_are_read_in_place_or_copied) {
  // Heads: batch and rows change places, as attention has them.
  EXPECT_EQ(expect_same_results(R"(
func.func @main(%q: tensor<2x33x3x16xf32>, %k: tensor<2x21x3x16xf32>) -> tensor<2x3x33x21xf32> {
  %x = stablehlo.transpose %q, dims = [0, 2, 1, 3] : (tensor<2x33x3x16xf32>) -> tensor<2x3x33x16xf32>
  %y = stablehlo.transpose %k, dims = [0, 2, 3, 1] : (tensor<2x21x3x16xf32>) -> tensor<2x3x16x21xf32>
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x33x16xf32>, tensor<2x3x16x21xf32>) -> tensor<2x3x33x21xf32>
  return %0 : tensor<2x3x33x21xf32>
})")
                ->step_count,
            1);
  // Two free dims that would be read in the other order.
  EXPECT_EQ(expect_same_results(R"(
func.func @main(%a: tensor<5x6x7xf32>, %b: tensor<7x9xf32>) -> tensor<6x5x9xf32> {
  %x = stablehlo.transpose %a, dims = [1, 0, 2] : (tensor<5x6x7xf32>) -> tensor<6x5x7xf32>
  %0 = stablehlo.dot_general %x, %b, contracting_dims = [2] x [0] : (tensor<6x5x7xf32>, tensor<7x9xf32>) -> tensor<6x5x9xf32>
  return %0 : tensor<6x5x9xf32>
})")
                ->step_count,
            2);
  // A matrix that no stride steps through.
  EXPECT_EQ(expect_same_results(R"(
func.func @main(%a: tensor<5x7x6xf32>, %b: tensor<7x9xf32>) -> tensor<5x6x9xf32> {
  %x = stablehlo.transpose %a, dims = [0, 2, 1] : (tensor<5x7x6xf32>) -> tensor<5x6x7xf32>
  %0 = stablehlo.dot_general %x, %b, contracting_dims = [2] x [0] : (tensor<5x6x7xf32>, tensor<7x9xf32>) -> tensor<5x6x9xf32>
  return %0 : tensor<5x6x9xf32>
})")
                ->step_count,
            2);
}

TEST(Products, shards_and_integers_and_bfloat16_have_the_same_bits) {
  expect_same_results(R"(
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @main(%a: tensor<64x40xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<64x52xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<52x40xf32> {
    %x = stablehlo.transpose %a, dims = [1, 0] : (tensor<64x40xf32>) -> tensor<40x64xf32>
    %0 = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] : (tensor<40x64xf32>, tensor<64x52xf32>) -> tensor<40x52xf32>
    %t = stablehlo.transpose %0, dims = [1, 0] : (tensor<40x52xf32>) -> tensor<52x40xf32>
    return %t : tensor<52x40xf32>
  }
})");
  for (const std::string dtype : {"i32", "i8", "f64", "bf16", "ui8"}) {
    std::string text = R"(
func.func @main(%a: tensor<31x17x$T>, %b: tensor<23x31x$T>) -> tensor<23x17x$T> {
  %x = stablehlo.transpose %a, dims = [1, 0] : (tensor<31x17x$T>) -> tensor<17x31x$T>
  %y = stablehlo.transpose %b, dims = [1, 0] : (tensor<23x31x$T>) -> tensor<31x23x$T>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<17x31x$T>, tensor<31x23x$T>) -> tensor<17x23x$T>
  %t = stablehlo.transpose %0, dims = [1, 0] : (tensor<17x23x$T>) -> tensor<23x17x$T>
  return %t : tensor<23x17x$T>
})";
    for (size_t at = text.find("$T"); at != std::string::npos; at = text.find("$T")) text.replace(at, 2, dtype);
    dtype == "f64" ? expect_near_results(text) : expect_same_results(text);
  }
}

// h, w, u go around; w and u stay the same. u^T w does not change, h (u^T w) does.
const std::string kLoop = R"(
func.func @main(%h0: tensor<8x16xf32>, %w0: tensor<16x16xf32>, %u: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %h = %h0, %w = %w0) : tensor<i32>, tensor<8x16xf32>, tensor<16x16xf32>
  cond {
    %n = stablehlo.constant dense<$N> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %tenth = stablehlo.constant dense<0.1> : tensor<16x16xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.transpose %u, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %v = stablehlo.multiply %t, %tenth : tensor<16x16xf32>
    %p = stablehlo.dot_general %v, %w, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %g = stablehlo.dot_general %h, %p, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    stablehlo.return %next, %g, %w : tensor<i32>, tensor<8x16xf32>, tensor<16x16xf32>
  }
  return %0#1 : tensor<8x16xf32>
})";

TEST(Products, a_product_that_does_not_change_leaves_its_loop) {
  for (const std::string iterations : {"0", "1", "5"}) {
    const PlanRef plan = expect_same_results(of_sizes(kLoop, "", iterations, ""));
    EXPECT_EQ(count_steps(plan, "stablehlo.dot_general", 0), 1) << to_text(*plan);
    EXPECT_EQ(count_steps(plan, "stablehlo.dot_general"), 2) << to_text(*plan);
    EXPECT_EQ(count_steps(plan_of(of_sizes(kLoop, "", iterations, ""), false), "stablehlo.dot_general", 0), 0);
  }
}

TEST(Products, what_changes_or_grows_stays_in_the_loop) {
  // The variable w changes.
  std::string changing = of_sizes(kLoop, "", "3", "");
  const std::string back = "stablehlo.return %next, %g, %w :";
  changing.replace(changing.find(back), back.size(), "stablehlo.return %next, %g, %p :");
  EXPECT_EQ(count_steps(expect_same_results(changing), "stablehlo.dot_general", 0), 0);
  // An outer product of 4 MiB, of two vectors.
  const PlanRef plan = expect_same_results(R"(
func.func @main(%h0: tensor<1024x1024xf32>, %a: tensor<1024x1xf32>, %b: tensor<1x1024xf32>) -> tensor<1024x1024xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %h0) : tensor<i32>, tensor<1024x1024xf32>
  cond {
    %n = stablehlo.constant dense<2> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1xf32>, tensor<1x1024xf32>) -> tensor<1024x1024xf32>
    %g = stablehlo.add %h, %p : tensor<1024x1024xf32>
    stablehlo.return %next, %g : tensor<i32>, tensor<1024x1024xf32>
  }
  return %0#1 : tensor<1024x1024xf32>
})");
  EXPECT_EQ(count_steps(plan, "stablehlo.dot_general", 0), 0) << to_text(*plan);
}

// h^T w u changes; what it is multiplied by, 0.1 w^T, does not.
TEST(Products, computed_operands_that_do_not_change_leave_the_loop) {
  std::string text = of_sizes(kLoop, "", "4", "");
  const std::string product = "stablehlo.dot_general %v, %w,";
  text.replace(text.find(product), product.size(), "stablehlo.dot_general %h, %v,");
  const std::string types = "(tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>\n    %g";
  text.replace(text.find(types), types.size(), "(tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>\n    %g");
  const std::string second =
      "stablehlo.dot_general %h, %p, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>)";
  text.replace(text.find(second), second.size(), "stablehlo.add %h, %p : tensor<8x16xf32> //");
  const PlanRef plan = expect_same_results(text);
  EXPECT_EQ(count_steps(plan, "stablehlo.dot_general", 0), 0) << to_text(*plan);
  EXPECT_EQ(count_steps(plan, "stablehlo.multiply", 0) + count_steps(plan, "fused transpose multiply (2 ops)", 0), 1)
      << to_text(*plan);
}

// int8 weights that a loop scales would be four times as large in front of it.
TEST(Products, operands_that_grow_stay_in_the_loop) {
  const PlanRef plan = expect_same_results(R"(
func.func @main(%h0: tensor<8x1024xf32>, %w: tensor<1024x1024xi8>, %scale: tensor<f32>) -> tensor<8x1024xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %h0) : tensor<i32>, tensor<8x1024xf32>
  cond {
    %n = stablehlo.constant dense<2> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %f = stablehlo.convert %w : (tensor<1024x1024xi8>) -> tensor<1024x1024xf32>
    %s = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<1024x1024xf32>
    %q = stablehlo.multiply %f, %s : tensor<1024x1024xf32>
    %g = stablehlo.dot_general %h, %q, contracting_dims = [1] x [0] : (tensor<8x1024xf32>, tensor<1024x1024xf32>) -> tensor<8x1024xf32>
    stablehlo.return %next, %g : tensor<i32>, tensor<8x1024xf32>
  }
  return %0#1 : tensor<8x1024xf32>
})");
  EXPECT_EQ(count_steps(plan, "fused convert multiply (2 ops)", 0), 0) << to_text(*plan);
}

TEST(Products, a_product_leaves_two_loops) {
  const PlanRef plan = expect_same_results(R"(
func.func @main(%h0: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %h0) : tensor<i32>, tensor<8x16xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1:2 = stablehlo.while(%j = %zero, %k = %h) : tensor<i32>, tensor<8x16xf32>
    cond {
      %n = stablehlo.constant dense<2> : tensor<i32>
      %c = stablehlo.compare LT, %j, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %p = stablehlo.dot_general %w, %w, contracting_dims = [0] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      %g = stablehlo.dot_general %k, %p, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
      %m = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %m, %g : tensor<i32>, tensor<8x16xf32>
    }
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %1#1 : tensor<i32>, tensor<8x16xf32>
  }
  return %0#1 : tensor<8x16xf32>
})");
  EXPECT_EQ(count_steps(plan, "stablehlo.dot_general", 0), 1) << to_text(*plan);
}

}  // namespace
}  // namespace meshd::test
