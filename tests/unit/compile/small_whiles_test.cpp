// Loops whose steps are small, rows of arrays, elements that move and reductions among them: the same bits step by
// step, as one interpreted step and as machine code.
#include "service/compile/plan/small_whiles.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/scalar/vector_functions.h"
#include "service/kernels/fused/small_while.h"
#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

using compile::PlanRef;

enum class Loops : uint8_t { kSteps, kInterpreted, kCode };

PlanRef plan_of(const partition::LocalProgram& local, Loops loops) {
  compile::PlanOptions options;
  options.threads = 2;
  options.small_whiles = loops != Loops::kSteps;
  options.generate_code = loops == Loops::kCode;
  options.code_after = 0;
  return compile::make_plan(local, options);
}

struct Found {
  int64_t small = 0;
  int64_t coded = 0;
};

Found small_whiles_in(const PlanRef& plan) {
  Found found;
  for (const compile::Block& block : plan->blocks) {
    for (const compile::Step& step : block.steps) {
      if (step.small == nullptr) continue;
      ++found.small;
      found.coded += step.small->loop->can_be_code() ? 1 : 0;
    }
  }
  return found;
}

/// Runs a program in the three ways; which of its loops were one step.
Found expect_same_bits(const std::string& text, unsigned seed = 3) {
  const partition::LocalProgram local = local_of(text);
  const PlanRef steps = plan_of(local, Loops::kSteps);
  const PlanRef interpreted = plan_of(local, Loops::kInterpreted);
  const PlanRef code = plan_of(local, Loops::kCode);
  EXPECT_EQ(small_whiles_in(steps).small, 0);
  Bench bench({.device_count = 8, .threads = 2});
  const Bits arguments = arguments_of(steps, seed);
  const Bits expected = run(bench, steps, arguments);
  EXPECT_EQ(difference(run(bench, interpreted, arguments), expected), "") << text << to_text(*interpreted);
  EXPECT_EQ(difference(run(bench, code, arguments), expected), "") << "code of\n" << text << to_text(*code);
  return {small_whiles_in(interpreted).small, small_whiles_in(code).coded};
}

void expect_one_step(const std::string& text, bool is_coded = true) {
  const Found found = expect_same_bits(text);
  EXPECT_EQ(found.small, 1) << text;
  // Sanitizer builds have no functions that code could call.
  const bool has_functions = kernels::vector_function(kernels::scalar_op("sine"), kernels::cpu_level()) != nullptr;
  const bool calls_one = text.find("stablehlo.sine") != std::string::npos;
  if (kernels::cpu_level() != kernels::CpuLevel::kBase) {
    EXPECT_EQ(found.coded, is_coded && (has_functions || !calls_one) ? 1 : 0) << text;
  }
}

/// A loop of `iterations` iterations that carries %i and what `names` has, "%a = %x", of `types`, in the words of
/// StableHLO. `body` computes what `next` returns.
std::string loop_of(const std::string& arguments, int64_t iterations, const std::string& names,
                    const std::string& types, const std::string& body, const std::string& next,
                    const std::string& results) {
  return fmt::format(R"(func.func @main({0}) -> ({3}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %w:{6} = stablehlo.while(%i = %zero, {2}) : tensor<i32>, {3} cond {{
    %most = stablehlo.constant dense<{1}> : tensor<i32>
    %p = stablehlo.compare LT, %i, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
{4}
    stablehlo.return %j, {5} : tensor<i32>, {3}
  }}
  return {7} : {3}
}}
)",
                     arguments, iterations, names, types, body, next, std::count(types.begin(), types.end(), '<') + 1,
                     results);
}

// What lax.scan takes and gives: rows of arrays, at the counter, backwards, and clamped where an index is outside.
TEST(SmallWhiles, rows_of_arrays_are_read_and_written) {
  for (const auto* const dtype : {"f32", "i32", "bf16", "i1", "f64", "i8"}) {
    for (const int lanes : {1, 3, 8, 16, 17, 40, 64, 65, 300}) {
      const std::string row = fmt::format("tensor<{}x{}>", lanes, dtype);
      const std::string array = fmt::format("tensor<20x{}x{}>", lanes, dtype);
      const std::string one = fmt::format("tensor<1x{}x{}>", lanes, dtype);
      const std::string op = std::string(dtype) == "i1" ? "xor" : "add";
      const std::string body = fmt::format(
          R"(    %back = stablehlo.constant dense<17> : tensor<i32>
    %k = stablehlo.subtract %back, %i : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %d = stablehlo.dynamic_slice %xs, %k, %z, sizes = [1, {3}] : ({1}, tensor<i32>, tensor<i32>) -> {2}
    %r = stablehlo.reshape %d : ({2}) -> {0}
    %c2 = stablehlo.{4} %c, %r : {0}
    %u = stablehlo.reshape %c2 : ({0}) -> {2}
    %ys2 = stablehlo.dynamic_update_slice %ys, %u, %i, %z : ({1}, {2}, tensor<i32>, tensor<i32>) -> {1})",
          row, array, one, lanes, op);
      const bool is_word = std::string(dtype) != "f64" && std::string(dtype) != "i8";
      const bool is_masked = kernels::cpu_level() == kernels::CpuLevel::kV4 || std::string(dtype) == "f32" ||
                             std::string(dtype) == "i32" || lanes == 1 || lanes % 8 == 0;
      expect_one_step(loop_of(fmt::format("%xs: {0}, %c0: {1}, %ys0: {0}", array, row), 25, "%c = %c0, %ys = %ys0",
                              row + ", " + array, body, "%c2, %ys2", "%w#1, %w#2"),
                      is_word && is_masked && (lanes <= 64 || lanes % 64 == 0 || is_masked));
    }
  }
}

// What an iteration has written is what the next ones read.
TEST(SmallWhiles, rows_are_written_and_read_again) {
  for (const int lanes : {1, 5, 16, 33, 64}) {
    const std::string row = fmt::format("tensor<1x{}xf32>", lanes);
    const std::string array = fmt::format("tensor<30x{}xf32>", lanes);
    const std::string body = fmt::format(
        R"(    %z = stablehlo.constant dense<0> : tensor<i32>
    %a = stablehlo.dynamic_slice %x, %i, %z, sizes = [1, {2}] : ({1}, tensor<i32>, tensor<i32>) -> {0}
    %b = stablehlo.dynamic_slice %x, %j, %z, sizes = [1, {2}] : ({1}, tensor<i32>, tensor<i32>) -> {0}
    %s = stablehlo.subtract %a, %b : {0}
    %k = stablehlo.add %j, %one : tensor<i32>
    %x2 = stablehlo.dynamic_update_slice %x, %s, %k, %z : ({1}, {0}, tensor<i32>, tensor<i32>) -> {1})",
        row, array, lanes);
    const Found found = expect_same_bits(loop_of("%x0: " + array, 40, "%x = %x0", array, body, "%x2", "%w#1"));
    EXPECT_EQ(found.small, 1) << lanes;
  }
  // Of several blocks: one piece of a row could need what another has written.
  const std::string body = R"(    %z = stablehlo.constant dense<0> : tensor<i32>
    %a = stablehlo.dynamic_slice %x, %i, sizes = [100] : (tensor<400xf32>, tensor<i32>) -> tensor<100xf32>
    %s = stablehlo.sine %a : tensor<100xf32>
    %x2 = stablehlo.dynamic_update_slice %x, %s, %j : (tensor<400xf32>, tensor<100xf32>, tensor<i32>) -> tensor<400xf32>)";
  const Found found =
      expect_same_bits(loop_of("%x0: tensor<400xf32>", 40, "%x = %x0", "tensor<400xf32>", body, "%x2", "%w#1"));
  EXPECT_EQ(found.small, 0);
}

// Windows that overlap, of one iteration or of several: the last one that was written is what is left.
TEST(SmallWhiles, windows_that_overlap_are_written_in_order) {
  for (const int lanes : {3, 16, 33, 64, 65, 100, 300}) {
    const std::string row = fmt::format("tensor<{}xf32>", lanes);
    const std::string body = fmt::format(
        R"(    %x2 = stablehlo.dynamic_update_slice %x, %a, %i : (tensor<500xf32>, {0}, tensor<i32>) -> tensor<500xf32>
    %a2 = stablehlo.sine %a : {0}
    %x3 = stablehlo.dynamic_update_slice %x2, %a2, %j : (tensor<500xf32>, {0}, tensor<i32>) -> tensor<500xf32>)",
        row);
    const Found found = expect_same_bits(loop_of("%x0: tensor<500xf32>, %a0: " + row, 90, "%x = %x0, %a = %a0",
                                                 "tensor<500xf32>, " + row, body, "%x3, %a2", "%w#1, %w#2"));
    EXPECT_EQ(found.small, lanes <= 64 ? 1 : 0) << lanes;
  }
  // Two whole rows are where no piece but their own writes.
  const std::string body = R"(    %z = stablehlo.constant dense<0> : tensor<i32>
    %x2 = stablehlo.dynamic_update_slice %x, %a, %i, %z : (tensor<9x300xf32>, tensor<1x300xf32>, tensor<i32>, tensor<i32>) -> tensor<9x300xf32>
    %a2 = stablehlo.sine %a : tensor<1x300xf32>
    %x3 = stablehlo.dynamic_update_slice %x2, %a2, %j, %z : (tensor<9x300xf32>, tensor<1x300xf32>, tensor<i32>, tensor<i32>) -> tensor<9x300xf32>)";
  expect_one_step(loop_of("%x0: tensor<9x300xf32>, %a0: tensor<1x300xf32>", 20, "%x = %x0, %a = %a0",
                          "tensor<9x300xf32>, tensor<1x300xf32>", body, "%x3, %a2", "%w#1, %w#2"),
                  kernels::cpu_level() == kernels::CpuLevel::kV4);
}

// a[:, None] + a[None, :] has more lanes than any value; and a fold finds its values in the first vector alone.
TEST(SmallWhiles, reductions_of_more_lanes_than_values_have) {
  for (const std::string op : {"add", "maximum", "multiply"}) {
    for (const int lanes : {2, 3, 4, 5, 8}) {
      for (const int other : {1, 17, 40, 64}) {
        const std::string vector = fmt::format("tensor<{}xf32>", lanes);
        const std::string square = fmt::format("tensor<{0}x{0}xf32>", lanes);
        const std::string body = fmt::format(
            R"(    %r = stablehlo.broadcast_in_dim %a, dims = [0] : ({0}) -> {1}
    %c = stablehlo.broadcast_in_dim %a, dims = [1] : ({0}) -> {1}
    %d = stablehlo.subtract %r, %c : {1}
    %a2 = stablehlo.reduce(%d init: %s) applies stablehlo.{2} across dimensions = [1] : ({1}, tensor<f32>) -> {0}
    %s2 = stablehlo.reduce(%a init: %s) applies stablehlo.{2} across dimensions = [0] : ({0}, tensor<f32>) -> tensor<f32>
    %v = stablehlo.broadcast_in_dim %s2, dims = [] : (tensor<f32>) -> tensor<{3}xf32>
    %b2 = stablehlo.subtract %v, %b : tensor<{3}xf32>)",
            vector, square, op, other);
        const Found found = expect_same_bits(
            loop_of(fmt::format("%a0: {}, %s0: tensor<f32>, %b0: tensor<{}xf32>", vector, other), 5,
                    "%a = %a0, %s = %s0, %b = %b0", fmt::format("{}, tensor<f32>, tensor<{}xf32>", vector, other), body,
                    "%a2, %s2, %b2", "%w#1, %w#2, %w#3"));
        EXPECT_EQ(found.small, 1) << lanes << " " << other;
      }
    }
  }
}

// Sums from left to right, whose terms are in several vectors of the code: of one result, and of results side by side.
TEST(SmallWhiles, sums_of_elements_of_several_vectors) {
  for (const int rows : {1, 2, 3, 4}) {
    for (const int terms : {5, 9, 10, 15}) {
      const std::string result = fmt::format("tensor<{}xf32>", rows);
      const std::string table = fmt::format("tensor<{}x{}xf32>", rows, terms);
      const std::string body = fmt::format(
          R"(    %r = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : ({0}, tensor<f32>) -> {1}
    %v = stablehlo.broadcast_in_dim %r, dims = [0] : ({1}) -> {0}
    %t = stablehlo.subtract %v, %a : {0}
    %half = stablehlo.constant dense<0.125> : {0}
    %a2 = stablehlo.multiply %t, %half : {0})",
          table, result);
      const bool is_wide = kernels::cpu_level() == kernels::CpuLevel::kV4;
      expect_one_step(
          loop_of(fmt::format("%a0: {}, %s: tensor<f32>", table), 7, "%a = %a0", table, body, "%a2", "%w#1"),
          rows * terms <= (is_wide ? 64 : 32));
    }
  }
}

// What is written where a value of another type was, as in a chain of random numbers.
TEST(SmallWhiles, one_value_after_the_other_in_the_same_memory) {
  for (const int lanes : {1, 2, 8, 12}) {
    const std::string bits = fmt::format("tensor<{}xui32>", lanes);
    const std::string floats = fmt::format("tensor<{}xf32>", lanes);
    const std::string body = fmt::format(
        R"(    %seven = stablehlo.constant dense<7> : {0}
    %h = stablehlo.multiply %u, %seven : {0}
    %g = stablehlo.xor %h, %seven : {0}
    %sh = stablehlo.constant dense<9> : {0}
    %mantissa = stablehlo.shift_right_logical %g, %sh : {0}
    %ob = stablehlo.constant dense<1065353216> : {0}
    %m = stablehlo.or %mantissa, %ob : {0}
    %b = stablehlo.bitcast_convert %m : ({0}) -> {1}
    %one_f = stablehlo.constant dense<1.5> : {1}
    %c = stablehlo.subtract %b, %one_f : {1}
    %e = chlo.erf_inv %c : {1} -> {1}
    %f2 = stablehlo.add %f, %e : {1}
    %u2 = stablehlo.bitcast_convert %f2 : ({1}) -> {0})",
        bits, floats);
    EXPECT_EQ(expect_same_bits(loop_of(fmt::format("%u0: {}, %f0: {}", bits, floats), 9, "%u = %u0, %f = %f0",
                                       bits + ", " + floats, body, "%u2, %f2", "%w#1, %w#2"))
                  .small,
              1)
        << lanes;
  }
}

// x.at[k].set(v): no index outside is written, be it negative.
TEST(SmallWhiles, scatters_of_one_window_skip_what_is_outside) {
  for (const bool are_pairs : {false, true}) {
    const std::string body = fmt::format(
        R"(    %three = stablehlo.constant dense<3> : tensor<i32>
    %k = stablehlo.subtract %i, %three : tensor<i32>
    %k1 = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
    %j1 = stablehlo.reshape %j : (tensor<i32>) -> tensor<1xi32>
    %t = stablehlo.concatenate %k1, %j1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %v2 = stablehlo.sine %v : tensor<f32>
    %x2 = "stablehlo.scatter"(%x, {}, %v2) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [{}],
      scatter_dims_to_operand_dims = [{}], index_vector_dim = 0>, indices_are_sorted = true, unique_indices = true}}> ({{
    ^bb0(%old: tensor<f32>, %new: tensor<f32>):
      stablehlo.return %new : tensor<f32>
    }}) : (tensor<{}xf32>, tensor<{}xi32>, tensor<f32>) -> tensor<{}xf32>)",
        are_pairs ? "%t" : "%k1", are_pairs ? "0, 1" : "0", are_pairs ? "0, 1" : "0", are_pairs ? "12x9" : "12",
        are_pairs ? 2 : 1, are_pairs ? "12x9" : "12");
    const std::string array = are_pairs ? "tensor<12x9xf32>" : "tensor<12xf32>";
    expect_one_step(loop_of("%x0: " + array + ", %v0: tensor<f32>", 20, "%x = %x0, %v = %v0", array + ", tensor<f32>",
                            body, "%x2, %v2", "%w#1, %w#2"));
  }
}

// Each shard would take its iterations by itself, and find what another one has written.
TEST(SmallWhiles, arrays_that_several_shards_write_stay_in_steps) {
  const std::string text = R"(module {
  sdy.mesh @mesh = <["d"=4]>
  func.func @main(%x0: tensor<16xf32>, %v0: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<16xf32>, tensor<32xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:3 = stablehlo.while(%i = %zero, %x = %x0, %v = %v0) : tensor<i32>, tensor<16xf32>, tensor<32xf32> cond {
      %most = stablehlo.constant dense<15> : tensor<i32>
      %p = stablehlo.compare LT, %i, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %a = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<16xf32>, tensor<i32>) -> tensor<1xf32>
      %b = stablehlo.dynamic_slice %x, %j, sizes = [1] : (tensor<16xf32>, tensor<i32>) -> tensor<1xf32>
      %s = stablehlo.add %a, %b : tensor<1xf32>
      %x2 = stablehlo.dynamic_update_slice %x, %s, %j : (tensor<16xf32>, tensor<1xf32>, tensor<i32>) -> tensor<16xf32>
      %v2 = stablehlo.sine %v : tensor<32xf32>
      stablehlo.return %j, %x2, %v2 : tensor<i32>, tensor<16xf32>, tensor<32xf32>
    }
    return %w#1, %w#2 : tensor<16xf32>, tensor<32xf32>
  }
}
)";
  expect_same_bits(text);
}

// A function is called for one vector after the other; what it is called on may need all vectors of something.
TEST(SmallWhiles, functions_of_elements_that_moved) {
  for (const int lanes : {5, 12, 16, 17, 31, 60}) {
    const std::string vector = fmt::format("tensor<{}xf32>", lanes);
    const std::string body = fmt::format(
        R"(    %f = stablehlo.slice %a [1:5] : ({0}) -> tensor<4xf32>
    %n = stablehlo.negate %f : tensor<4xf32>
    %r = stablehlo.reduce(%n init: %s) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %s2 = stablehlo.sine %r : tensor<f32>
    %v = stablehlo.reverse %a, dims = [0] : {0}
    %d = stablehlo.add %v, %a : {0}
    %a2 = stablehlo.cosine %d : {0}
    %b2 = stablehlo.broadcast_in_dim %s2, dims = [] : (tensor<f32>) -> {0})",
        vector);
    expect_one_step(
        loop_of(fmt::format("%a0: {0}, %b0: {0}, %s0: tensor<f32>", vector), 20, "%a = %a0, %b = %b0, %s = %s0",
                vector + ", " + vector + ", tensor<f32>", body, "%a2, %b2, %s2", "%w#1, %w#2, %w#3"),
        lanes <= 32 || kernels::cpu_level() == kernels::CpuLevel::kV4);
  }
}

// Bodies of any of these steps, over vectors of any length, with values that change places and arrays of both kinds.
class RandomBody {
 public:
  RandomBody(std::mt19937& random, int lanes) : random_(random), lanes_(lanes) {
    const std::string vector = vector_of(lanes);
    pool_[vector] = {"%a", "%b"};
    pool_["tensor<f32>"] = {"%s"};
    pool_["tensor<i32>"] = {"%i", "%j", "%k"};
  }

  std::string text(int iterations) {
    const std::string vector = vector_of(lanes_);
    const std::string array = fmt::format("tensor<9x{}xf32>", lanes_);
    std::string writes = "%ys";
    const int steps = 3 + below(10);
    for (int n = 0; n < steps; ++n) {
      switch (below(11)) {
        case 9:
          outer();
          break;
        case 10:
          function();
          break;
        case 0:
          slice();
          break;
        case 1:
          concatenate();
          break;
        case 2:
          reduce();
          break;
        case 3:
          spread();
          break;
        case 4:
          writes = rows(writes, array);
          break;
        case 5:
          count();
          break;
        case 6:
          move();
          break;
        default:
          point();
      }
    }
    const std::string types = vector + ", " + vector + ", tensor<f32>, tensor<i32>, " + array;
    const std::string next =
        fmt::format("{}, {}, {}, {}, {}", any(vector), any(vector), any("tensor<f32>"), any("tensor<i32>"), writes);
    return loop_of(
        fmt::format("%xs: {1}, %a0: {0}, %b0: {0}, %s0: tensor<f32>, %k0: tensor<i32>, %ys0: {1}", vector, array),
        iterations, "%a = %a0, %b = %b0, %s = %s0, %k = %k0, %ys = %ys0", types, body_, next,
        "%w#1, %w#2, %w#3, %w#4, %w#5");
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  static std::string vector_of(int lanes) { return fmt::format("tensor<{}xf32>", lanes); }
  static int lanes_of(const std::string& vector) { return std::stoi(vector.substr(7)); }
  std::string any(const std::string& type) {
    const auto& values = pool_[type];
    return values[static_cast<size_t>(below(static_cast<int>(values.size())))];
  }
  std::string any_vector() {
    std::vector<std::string> types;
    for (const auto& [type, values] : pool_) {
      if (type.find('x') != std::string::npos) types.push_back(type);
    }
    return types[static_cast<size_t>(below(static_cast<int>(types.size())))];
  }
  std::string give(const std::string& type, const std::string& text) {
    const std::string name = fmt::format("%n{}", number_++);
    body_ += fmt::format("    {} = {}\n", name, text);
    pool_[type].push_back(name);
    return name;
  }
  std::string line(const std::string& text) {
    const std::string name = fmt::format("%n{}", number_++);
    body_ += fmt::format("    {} = {}\n", name, text);
    return name;
  }

  void point() {
    const std::string type = below(4) == 0 ? "tensor<f32>" : any_vector();
    constexpr std::array kTwo = {"add", "subtract", "multiply", "maximum", "minimum"};
    constexpr std::array kOne = {"sine", "tanh", "negate", "floor"};
    const std::string first = any(type);  // one after the other, whatever the compiler
    if (below(3) == 0)
      give(type, fmt::format("stablehlo.{} {} : {}", kOne[static_cast<size_t>(below(4))], first, type));
    else
      give(type, fmt::format("stablehlo.{} {}, {} : {}", kTwo[static_cast<size_t>(below(5))], first, any(type), type));
  }
  void count() {
    constexpr std::array kTwo = {"add", "subtract", "multiply", "maximum", "xor"};
    const std::string first = any("tensor<i32>");
    give("tensor<i32>", fmt::format("stablehlo.{} {}, {} : tensor<i32>", kTwo[static_cast<size_t>(below(5))], first,
                                    any("tensor<i32>")));
  }
  void slice() {
    const std::string type = any_vector();
    const int lanes = lanes_of(type);
    const int first = below(lanes);
    const int step = 1 + below(2);
    const int limit = first + 1 + below(lanes - first);
    const std::string result = vector_of((limit - first + step - 1) / step);
    give(result,
         fmt::format("stablehlo.slice {} [{}:{}:{}] : ({}) -> {}", any(type), first, limit, step, type, result));
  }
  void concatenate() {
    const std::string a = any_vector();
    const std::string b = any_vector();
    if (lanes_of(a) + lanes_of(b) > 64) return;
    const std::string result = vector_of(lanes_of(a) + lanes_of(b));
    const std::string first = any(a);
    give(result, fmt::format("stablehlo.concatenate {}, {}, dim = 0 : ({}, {}) -> {}", first, any(b), a, b, result));
  }
  void move() {
    const std::string type = any_vector();
    if (below(2) == 0) {
      give(type, fmt::format("stablehlo.reverse {}, dims = [0] : {}", any(type), type));
      return;
    }
    const int low = below(4) - 1;
    const int high = below(3);
    const int inside = below(2);
    const int lanes = low + high + lanes_of(type) + (lanes_of(type) - 1) * inside;
    if (lanes < 1 || lanes > 64) return;
    const std::string value = any("tensor<f32>");
    give(vector_of(lanes),
         fmt::format("stablehlo.pad {}, {}, low = [{}], high = [{}], interior = [{}] : ({}, tensor<f32>) -> {}",
                     any(type), value, low, high, inside, type, vector_of(lanes)));
  }
  void reduce() {
    const std::string type = any_vector();
    constexpr std::array kOps = {"add", "maximum", "minimum", "multiply"};
    const std::string init = any("tensor<f32>");
    give(
        "tensor<f32>",
        fmt::format("stablehlo.reduce({} init: {}) applies stablehlo.{} across dimensions = [0] : ({}, tensor<f32>) -> "
                    "tensor<f32>",
                    any(type), init, kOps[static_cast<size_t>(below(4))], type));
  }
  void outer() {
    const std::string type = any_vector();
    const int lanes = lanes_of(type);
    if (lanes > 8) return;
    const std::string square = fmt::format("tensor<{0}x{0}xf32>", lanes);
    const std::string first = any(type);
    const std::string rows =
        line(fmt::format("stablehlo.broadcast_in_dim {}, dims = [0] : ({}) -> {}", first, type, square));
    const std::string columns =
        line(fmt::format("stablehlo.broadcast_in_dim {}, dims = [1] : ({}) -> {}", any(type), type, square));
    const std::string both = line(fmt::format("stablehlo.subtract {}, {} : {}", rows, columns, square));
    const int dim = below(2);
    const std::string init = any("tensor<f32>");
    give(type, fmt::format("stablehlo.reduce({} init: {}) applies stablehlo.{} across dimensions = [{}] : ({}, "
                           "tensor<f32>) -> {}",
                           both, init, below(2) == 0 ? "add" : "maximum", dim, square, type));
  }
  void function() {
    const std::string type = any_vector();
    give(type, fmt::format("stablehlo.{} {} : {}", below(2) == 0 ? "sine" : "log_plus_one", any(type), type));
  }
  void spread() {
    const std::string type = any_vector();
    give(type, fmt::format("stablehlo.broadcast_in_dim {}, dims = [] : (tensor<f32>) -> {}", any("tensor<f32>"), type));
  }
  // A row is read, of what is only read or of what is written, and another is written.
  std::string rows(const std::string& written, const std::string& array) {
    const std::string vector = vector_of(lanes_);
    const std::string one = fmt::format("tensor<1x{}xf32>", lanes_);
    const std::string zero = line("stablehlo.constant dense<0> : tensor<i32>");
    const std::string from = below(3) == 0 ? written : "%xs";
    const std::string read =
        line(fmt::format("stablehlo.dynamic_slice {}, {}, {}, sizes = [1, {}] : ({}, tensor<i32>, "
                         "tensor<i32>) -> {}",
                         from, any("tensor<i32>"), zero, lanes_, array, one));
    give(vector, fmt::format("stablehlo.reshape {} : ({}) -> {}", read, one, vector));
    if (below(2) == 0) return written;
    const std::string row = line(fmt::format("stablehlo.reshape {} : ({}) -> {}", any(vector), vector, one));
    return line(fmt::format("stablehlo.dynamic_update_slice {}, {}, {}, {} : ({}, {}, tensor<i32>, tensor<i32>) -> {}",
                            written, row, any("tensor<i32>"), zero, array, one, array));
  }

  std::mt19937& random_;
  int lanes_;
  int number_ = 0;
  std::string body_;
  std::map<std::string, std::vector<std::string>> pool_;
};

TEST(SmallWhiles, random_bodies_have_the_bits_of_their_steps) {
  Found all;
  constexpr std::array kLanes = {2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 40, 63, 64};
  constexpr std::array kIterations = {0, 1, 2, 7, 50};
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const int lanes = kLanes[random() % kLanes.size()];
    const int iterations = kIterations[random() % kIterations.size()];
    const Found found = expect_same_bits(RandomBody(random, lanes).text(iterations), seed);
    all.small += found.small;
    all.coded += found.coded;
  }
  EXPECT_GT(all.small, 100);
  EXPECT_TRUE(all.coded > 50 || kernels::cpu_level() == kernels::CpuLevel::kBase) << all.coded << " of " << all.small;
}

}  // namespace
}  // namespace meshd::test
