// The compiler's caches: which requests share work.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "service/compile/explain/snapshots.h"
#include "service/compile/pipeline.h"
#include "service/compile/rewrite/gradient_text.h"
#include "service/core/error.h"
#include "service/program/parse_stablehlo.h"
#include "tests/support/long_program.h"

namespace meshd::compile {
namespace {

std::map<size_t, tensor::DenseValue> second_is(uint8_t value) {
  const std::byte bytes[] = {std::byte{value}};
  return {{1, tensor::dense_copy({tensor::DType::kUint8, {}}, bytes)}};
}

TEST(Compiler, static_arguments_of_equal_values_are_one_program) {
  Compiler compiler(1, 8);
  const ParsedRef parsed = compiler.parse(
      "stablehlo",
      "func.func @main(%a: tensor<ui8>, %b: tensor<ui8>) -> tensor<ui8> { %0 = stablehlo.add %a, %b : tensor<ui8>\n "
      "return %0 : tensor<ui8> }");
  EXPECT_EQ(compiler.with_static(parsed, {}), parsed);
  const ParsedRef five = compiler.with_static(parsed, second_is(5));
  EXPECT_EQ(five->arguments.size(), 1U);
  EXPECT_EQ(compiler.with_static(parsed, second_is(5)), five);
  EXPECT_NE(compiler.with_static(parsed, second_is(6)), five);
  EXPECT_NE(compiler.with_static(parsed, second_is(6))->id, five->id);
  const CompileCounters counters = compiler.counters();
  EXPECT_EQ(counters.static_count, 2);
  EXPECT_EQ(counters.static_hits, 2);
  EXPECT_EQ(compiler.lower(five, {}), compiler.lower(five, {}));
  EXPECT_THROW(compiler.with_static(parsed, {{0, tensor::new_dense({tensor::DType::kFloat32, {}})}}), core::Error);
}

/// In the loop, the called function and the branch, too; a product that does not change in the loop stays in it.
TEST(Compiler, unfused_lowering_is_one_of_its_own_with_a_step_for_each_op) {
  Compiler compiler(1, 8);
  const ParsedRef parsed =
      compiler.parse("stablehlo", R"(func.func private @chain(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.log %a : tensor<4x4xf32>
  %1 = stablehlo.add %0, %a : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
func.func public @main(%x: tensor<4x4xf32>, %n: tensor<i32>) -> tensor<4x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4x4xf32> cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %c = func.call @chain(%y) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %z = stablehlo.subtract %c, %d : tensor<4x4xf32>
    stablehlo.return %j, %z : tensor<i32>, tensor<4x4xf32>
  }
  %1 = "stablehlo.case"(%n) ({
    %2 = stablehlo.sine %0#1 : tensor<4x4xf32>
    %3 = stablehlo.sqrt %2 : tensor<4x4xf32>
    stablehlo.return %3 : tensor<4x4xf32>
  }) : (tensor<i32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
})");
  const auto names = [](const LoweredRef& lowered) {
    std::string out;
    for (const Block& block : lowered->plan->blocks) {
      out += block.steps.empty() ? "" : "|";
      for (const Step& step : block.steps) {
        if (step.name != "copy" && step.name != "fill")
          out += step.name.substr(step.name.starts_with("stablehlo.") ? 10 : 0) + " ";
      }
    }
    return out;
  };
  LowerRequest unfused;
  unfused.is_unfused = true;
  const LoweredRef apart = compiler.lower(parsed, unfused);
  const LoweredRef fused = compiler.lower(parsed, {});
  EXPECT_EQ(names(apart), "|while case |compare |add log add dot_general subtract |sine sqrt ");
  EXPECT_EQ(names(fused),
            "|dot_general while case |compare |add fused log .. subtract (3 ops) |fused sine sqrt (2 ops) ");
  EXPECT_NE(apart->id, fused->id);
  EXPECT_EQ(compiler.lower(parsed, unfused), apart);
  EXPECT_EQ(compiler.counters().lower_count, 2);
}

TEST(Compiler, dynamic_arguments_of_equal_types_are_one_program) {
  Compiler compiler(1, 8);
  const ParsedRef parsed =
      compiler.parse("stablehlo", "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }");
  const auto of = [&](int64_t size) { return compiler.specialise(parsed, {{tensor::DType::kFloat32, {size}}}); };
  const ParsedRef three = of(3);
  EXPECT_EQ(three->argument(0).type.dims(), (tensor::Dims{3}));
  EXPECT_EQ(of(3), three);
  EXPECT_NE(of(4), three);
  EXPECT_EQ(compiler.counters().specialise_count, 2);
  EXPECT_EQ(compiler.counters().specialise_hits, 1);
  EXPECT_EQ(compiler.specialise(three, {{tensor::DType::kFloat32, {3}}}), three) << "nothing is dynamic in it";
}

std::string program_with_constant(int value, int64_t elements) {
  const std::string type = "tensor<" + std::to_string(elements) + "xf32>";
  std::string data = "[" + std::to_string(value) + ".0";
  for (int64_t i = 1; i < elements; ++i) data += ",0.5";
  return "func.func @main() -> " + type + " { %0 = stablehlo.constant dense<" + data + "]> : " + type +
         "\n return %0 : " + type + " }";
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const core::Error& error) {
    return std::string(error.code().word());
  }
  return "";
}

TEST(Compiler, what_compiling_takes_is_held_meanwhile) {
  using meshd::testing::adding;
  const auto ledger = core::MemoryLedger::create(int64_t{5} << 20);  // requests: 4 MiB
  Compiler compiler(1, 8);
  compiler.count_work({.ledger = ledger, .refuses = false});
  const ParsedRef accepted = compiler.parse("stablehlo", adding(9'000));
  EXPECT_GT(ledger->stats()[0].peak_bytes, int64_t{4} << 20) << "counted, and not refused";
  EXPECT_EQ(ledger->held_bytes(), 0);
  compiler.count_work({.ledger = ledger});
  EXPECT_EQ(error_of([&] { compiler.parse("stablehlo", adding(10'000)); }), "memory_exceeded");
  EXPECT_EQ(error_of([&] { compiler.lower(accepted, {}); }), "memory_exceeded");
  const ParsedRef parsed = compiler.parse("stablehlo", adding(2'000));
  {
    core::MemoryReservation other(ledger, core::MemoryAccount::kRequests);
    ASSERT_TRUE(other.try_grow_beyond(int64_t{5} << 20));
    EXPECT_EQ(error_of([&] { compiler.parse("stablehlo", adding(2'001)); }), "memory_full");
    EXPECT_EQ(error_of([&] { compiler.lower(parsed, {}); }), "memory_full");
    EXPECT_EQ(compiler.parse("stablehlo", adding(2'000)), parsed) << "nothing is to be done";
    EXPECT_EQ(compiler.parse("stablehlo", adding(3))->arguments.size(), 1U) << "it takes little";
  }
  EXPECT_NE(compiler.lower(parsed, {}), nullptr);
  EXPECT_EQ(ledger->held_bytes(), 0);
  EXPECT_GT(ledger->stats()[0].peak_bytes, int64_t{4} << 20);
}

TEST(Compiler, what_tracing_and_differentiating_take_is_held_meanwhile) {
  const auto ledger = core::MemoryLedger::create(int64_t{5} << 20);  // requests: 4 MiB
  Compiler compiler(1, 8);
  compiler.count_work({.ledger = ledger});
  const auto adding = [&](int loops) {  // 50 additions each
    std::string text = "def f(x):\n";
    for (int i = 0; i < loops; ++i) text += " for i in range(50):\n  x = x + x\n";
    return compiler.parse("numpy", text + " return x\n");
  };
  const numpy::Inputs inputs{{{numpy::ArrayInput{{tensor::DType::kFloat32, {2}}}}}, {}};
  EXPECT_EQ(error_of([&] { compiler.trace(adding(300), inputs, {}); }), "memory_exceeded");
  EXPECT_GT(ledger->stats()[0].peak_bytes, int64_t{4} << 20) << "it was held as it grew";
  const ParsedRef traced = compiler.trace(adding(22), inputs, {});
  {
    core::MemoryReservation other(ledger, core::MemoryAccount::kRequests);
    ASSERT_TRUE(other.try_grow_beyond(int64_t{5} << 20));
    EXPECT_EQ(error_of([&] { compiler.trace(adding(23), inputs, {}); }), "memory_full");
    EXPECT_EQ(error_of([&] { compiler.gradient_text(*traced, {{0}, {0}, false, true}); }), "memory_full");
  }
  EXPECT_NE(compiler.gradient_text(*traced, {{0}, {0}, false, true}), "");
  EXPECT_EQ(ledger->held_bytes(), 0);
}

TEST(Compiler, caches_are_bounded_by_bytes) {
  const auto ledger = core::MemoryLedger::create(int64_t{1} << 30);
  const auto held = [&] { return ledger->held_bytes(); };
  Compiler compiler(1, 512, int64_t{8} << 20, {ledger, core::MemoryAccount::kPrograms});
  const std::string first = program_with_constant(0, 100'000);
  compiler.lower(compiler.parse("stablehlo", first), {});
  EXPECT_GT(held(), int64_t{3} * 400'000) << "the text, and the constant in program and plan";
  for (int i = 1; i < 40; ++i) {
    compiler.lower(compiler.parse("stablehlo", program_with_constant(i, 100'000)), {});
    EXPECT_LE(held(), int64_t{8} << 20);
  }
  EXPECT_GT(held(), int64_t{3} << 20);
  compiler.parse("stablehlo", program_with_constant(39, 100'000));
  EXPECT_EQ(compiler.counters().parse_count, 40) << "what was used last is still there";
  compiler.parse("stablehlo", first);
  EXPECT_EQ(compiler.counters().parse_count, 41) << "what was used longest ago has left";
}

// The module of the text keeps its dynamic dimensions and the inlined one has numbers: neither mixes them.
TEST(Compiler, stages_of_a_specialised_program_are_programs) {
  Compiler compiler(1, 8);
  const ParsedRef parsed = compiler.parse("stablehlo", R"(func.func private @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.negate %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @f(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
})");
  const ParsedRef four = compiler.specialise(parsed, {{tensor::DType::kFloat32, {4}}});
  EXPECT_EQ(four->result(0).type.dims(), (tensor::Dims{4}));
  const std::vector<std::string_view> names{"parse",        "unpack_tuples", "import_gspmd", "static_arguments",
                                            "inline_calls", "specialise",    "propagate",    "rewrite"};
  const std::vector<Snapshot> made = snapshots(explain(four, {}, 1), {}, names);
  ASSERT_EQ(made.size(), names.size());
  for (const Snapshot& each : made) {
    const bool has_numbers = each.name == "specialise" || each.name == "propagate" || each.name == "rewrite";
    EXPECT_NO_THROW({
      const ir::Type type = program::parse_stablehlo(each.text)->main().arguments[0].type;
      EXPECT_EQ(ir::to_string(type), has_numbers ? "tensor<4xf32>" : "tensor<?xf32>") << each.name;
    }) << each.name
       << each.text;
  }
}

TEST(Compiler, bindings_are_counted_by_lowering_and_devices) {
  Compiler compiler(1, 8);
  const ParsedRef parsed =
      compiler.parse("stablehlo", "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }");
  const LoweredRef lowered = compiler.lower(parsed, {});
  EXPECT_FALSE(compiler.count_binding(lowered, {0}));
  EXPECT_FALSE(compiler.count_binding(lowered, {1}));
  EXPECT_TRUE(compiler.count_binding(lowered, {0}));
  EXPECT_EQ(compiler.counters().bind_count, 2);
  EXPECT_EQ(compiler.counters().bind_hits, 1);
}

TEST(Compiler, steps_of_loops_and_branches_have_the_lines_of_their_ops) {
  Compiler compiler(1, 4);
  const ParsedRef parsed =
      compiler.parse("stablehlo", R"(func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %x = %a) : tensor<i32>, tensor<4xf32>
    cond {
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %r = "stablehlo.case"(%j) ({
        %s = stablehlo.cosine %x : tensor<4xf32>
        stablehlo.return %s : tensor<4xf32>
      }, {
        stablehlo.return %x : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      stablehlo.return %j, %r : tensor<i32>, tensor<4xf32>
    }
  return %0#1 : tensor<4xf32>
})");
  const LoweredRef lowered = compiler.lower(parsed, {});
  std::set<std::pair<std::string, int32_t>> lines;
  for (const Block& block : lowered->plan->blocks) {
    for (const Step& step : block.steps) lines.emplace(step.name, step.location.line);
  }
  for (const auto& [name, line] :
       {std::pair("stablehlo.while", 4), std::pair("stablehlo.compare", 6), std::pair("stablehlo.add", 9),
        std::pair("stablehlo.case", 10), std::pair("stablehlo.cosine", 11)}) {
    EXPECT_TRUE(lines.contains({name, line})) << name << "\n" << to_text(*lowered->plan);
  }
}

TEST(Compiler, gather_is_read_where_it_is_by_the_reduction_that_alone_reads_it) {
  Compiler compiler(1, 8);
  const auto names = [&](const std::string& result_type, const std::string& result) {
    const ParsedRef parsed = compiler.parse(
        "stablehlo", "func.func @main(%t: tensor<100x64xf32>, %i: tensor<30x1xi32>) -> " + result_type + R"( {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}> : (tensor<100x64xf32>, tensor<30x1xi32>) -> tensor<30x64xf32>
  %1 = stablehlo.reshape %0 : (tensor<30x64xf32>) -> tensor<1920xf32>
  %2 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<30x64xf32>, tensor<f32>) -> tensor<64xf32>
  return )" + result + " : " +
                         (result_type[0] == '(' ? result_type.substr(1, result_type.size() - 2) : result_type) + "\n}");
    std::vector<std::string> out;
    for (const Step& step : compiler.lower(parsed, {})->plan->blocks[0].steps) out.push_back(step.name);
    return out;
  };
  EXPECT_EQ(names("tensor<64xf32>", "%2"), (std::vector<std::string>{"fused gather reduce (2 ops)"}));
  const std::vector<std::string> apart = {"stablehlo.gather", "stablehlo.reduce"};
  EXPECT_EQ(names("(tensor<64xf32>, tensor<30x64xf32>)", "%2, %0"), apart);
  EXPECT_EQ(names("(tensor<64xf32>, tensor<1920xf32>)", "%2, %1"), apart) << "read under another name";
}

/// A fused reduction reads the init value in the body's type.
TEST(Compiler, reduction_with_wider_accumulators_than_its_init_values_is_refused) {
  Compiler compiler(1, 8);
  const auto lowered = [&](const std::string& type) {
    const std::string scalar = "tensor<" + type + ">";
    const ParsedRef parsed = compiler.parse(
        "stablehlo", "func.func @main(%a: tensor<8xf32>, %z: tensor<f32>) -> " + scalar + R"( {
  %0 = stablehlo.reduce(%a init: %z) across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> )" +
                         scalar + "\n   reducer(%x: " + scalar + ", %y: " + scalar +
                         ") {\n    %s = stablehlo.add %x, %y : " + scalar + "\n    stablehlo.return %s : " + scalar +
                         "\n  }\n  return %0 : " + scalar + "\n}");
    try {
      compiler.lower(parsed, {});
      return std::string("none");
    } catch (const core::Error& error) {
      return std::string(error.code().word());
    }
  };
  EXPECT_EQ(lowered("f32"), "none");
  EXPECT_EQ(lowered("f64"), "unsupported_dtype");
}

}  // namespace
}  // namespace meshd::compile
