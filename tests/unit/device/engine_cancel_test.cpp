// Cancelled runs, deadlines and budgets take effect inside of a step, whatever kernel runs. Each program would take
// long: tens of seconds to minutes.
#include "service/compile/pipeline.h"
#include "tests/support/eventually.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

struct LongProgram {
  const char* name;
  const char* text;
};

void PrintTo(const LongProgram& program, std::ostream* out) { *out << program.name; }

compile::PlanRef plan_of_text(const std::string& text) {
  compile::Compiler compiler(2, 4);
  return compiler.lower(compiler.parse("stablehlo", text), {})->plan;
}

const std::vector<LongProgram>& long_programs() {
  static const std::vector<LongProgram> kPrograms = {
      {"full_reduction", R"(func.func @main() -> tensor<f32> {
        %0 = stablehlo.iota dim = 0 : tensor<1000000x1000000xf32>
        %c = stablehlo.constant dense<0.0> : tensor<f32>
        %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<1000000x1000000xf32>, tensor<f32>) -> tensor<f32>
        return %1 : tensor<f32>
      })"},
      {"column_reduction", R"(func.func @main() -> tensor<100xi32> {
        %0 = stablehlo.iota dim = 0 : tensor<10000000000x100xi32>
        %c = stablehlo.constant dense<0> : tensor<i32>
        %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.maximum across dimensions = [0] : (tensor<10000000000x100xi32>, tensor<i32>) -> tensor<100xi32>
        return %1 : tensor<100xi32>
      })"},
      {"reduction_by_a_body", R"(func.func @main() -> tensor<f64> {
        %0 = stablehlo.iota dim = 1 : tensor<1000000x1000000xf64>
        %c = stablehlo.constant dense<0.0> : tensor<f64>
        %1 = stablehlo.reduce(%0 init: %c) across dimensions = [0, 1] : (tensor<1000000x1000000xf64>, tensor<f64>) -> tensor<f64>
          reducer(%a: tensor<f64>, %b: tensor<f64>) {
            %s = stablehlo.add %a, %b : tensor<f64>
            %t = stablehlo.tanh %s : tensor<f64>
            stablehlo.return %t : tensor<f64>
          }
        return %1 : tensor<f64>
      })"},
      {"integer_product", R"(func.func @main(%a: tensor<i64>) -> tensor<3000x3000xi64> {
        %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<i64>) -> tensor<3000x10000xi64>
        %1 = stablehlo.reshape %0 : (tensor<3000x10000xi64>) -> tensor<10000x3000xi64>
        %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<3000x10000xi64>, tensor<10000x3000xi64>) -> tensor<3000x3000xi64>
        return %2 : tensor<3000x3000xi64>
      })"},
      {"float_product", R"(func.func @main(%a: tensor<f32>) -> tensor<6000x6000xf32> {
        %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<6000x20000xf32>
        %1 = stablehlo.reshape %0 : (tensor<6000x20000xf32>) -> tensor<20000x6000xf32>
        %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<6000x20000xf32>, tensor<20000x6000xf32>) -> tensor<6000x6000xf32>
        return %2 : tensor<6000x6000xf32>
      })"},
      {"double_product", R"(func.func @main(%a: tensor<f64>) -> tensor<4000x4000xf64> {
        %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f64>) -> tensor<4000x10000xf64>
        %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [1] : (tensor<4000x10000xf64>, tensor<4000x10000xf64>) -> tensor<4000x4000xf64>
        return %1 : tensor<4000x4000xf64>
      })"},
      {"sort_by_a_body", R"(func.func @main() -> tensor<8000000xf32> {
        %0 = stablehlo.iota dim = 0 : tensor<8000000xf32>
        %1 = stablehlo.sine %0 : tensor<8000000xf32>
        %2 = "stablehlo.sort"(%1) <{dimension = 0 : i64, is_stable = true}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.tanh %a : tensor<f32>
            %t = stablehlo.tanh %b : tensor<f32>
            %c = stablehlo.compare LT, %s, %t, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
        }) : (tensor<8000000xf32>) -> tensor<8000000xf32>
        return %2 : tensor<8000000xf32>
      })"},
      {"convolution", R"(func.func @main(%a: tensor<f64>) -> tensor<1x256x256x512xf64> {
        %x = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f64>) -> tensor<1x256x256x64xf64>
        %k = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f64>) -> tensor<9x9x64x512xf64>
        %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[4, 4], [4, 4]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x256x256x64xf64>, tensor<9x9x64x512xf64>) -> tensor<1x256x256x512xf64>
        return %0 : tensor<1x256x256x512xf64>
      })"},
      {"select_and_scatter", R"(func.func @main(%a: tensor<f32>) -> tensor<600x600xf32> {
        %0 = stablehlo.iota dim = 0 : tensor<600x600xf32>
        %1 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<401x401xf32>
        %2 = "stablehlo.select_and_scatter"(%0, %1, %a) <{window_dimensions = array<i64: 200, 200>, window_strides = array<i64: 1, 1>}> ({
          ^bb0(%l: tensor<f32>, %r: tensor<f32>):
            %c = stablehlo.compare GE, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
        }, {
          ^bb0(%l: tensor<f32>, %r: tensor<f32>):
            %s = stablehlo.add %l, %r : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) : (tensor<600x600xf32>, tensor<401x401xf32>, tensor<f32>) -> tensor<600x600xf32>
        return %2 : tensor<600x600xf32>
      })"},
      {"loop", R"(func.func @main() -> tensor<i32> {
        %c = stablehlo.constant dense<0> : tensor<i32>
        %n = stablehlo.constant dense<2147483647> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %0 = stablehlo.while(%i = %c) : tensor<i32> cond {
          %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %j = stablehlo.add %i, %one : tensor<i32>
          stablehlo.return %j : tensor<i32>
        }
        return %0 : tensor<i32>
      })"},
  };
  return kPrograms;
}

class EngineCancel : public ::testing::TestWithParam<LongProgram> {
 protected:
  static device::RunRequest request_for(Bench& bench, const compile::PlanRef& plan) {
    device::RunRequest request;
    request.plan = plan;
    for (const compile::PlanParameter& argument : plan->arguments) {
      device::RunArgument zero;
      zero.shards = {bench.buffer(std::vector<std::byte>(static_cast<size_t>(argument.shard_bytes)))};
      request.arguments.push_back(std::move(zero));
    }
    return request;
  }
};

// The step that is the longest of the program: a loop that is executed as one step, else one that computes.
const compile::Step* long_step(const compile::Plan& plan) {
  const compile::Step* longest = nullptr;
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) {
      if (step.small != nullptr) return &step;
      if (step.kind != compile::StepKind::kWhile && (longest == nullptr || step.estimated_ns > longest->estimated_ns))
        longest = &step;
    }
  }
  return longest;
}

void wait_for_the_long_step(const compile::Plan& plan, const device::Run& run) {
  const compile::Step* const step = long_step(plan);
  ASSERT_TRUE(testing::eventually([&] { return run.progress().op == step->name; }));
}

TEST_P(EngineCancel, run_ends_in_the_middle_of_its_step) {
  const compile::PlanRef plan = plan_of_text(GetParam().text);
  for (const int threads : {1, 2}) {
    Bench bench({.device_count = 1, .threads = threads});
    const auto pending = bench.start(request_for(bench, plan));
    wait_for_the_long_step(*plan, *pending->run);
    const auto begun = std::chrono::steady_clock::now();
    pending->run->cancel(core::Error("cancelled", "enough"));
    const device::RunOutcome out = pending->wait();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    ASSERT_TRUE(out.error.has_value());
    EXPECT_EQ(out.error->code().word(), "cancelled");
    RecordProperty("milliseconds", static_cast<int>(took.count()));
    EXPECT_EQ(bench.engine.stats().planned_bytes, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EngineCancel, ::testing::ValuesIn(long_programs()),
                         [](const auto& program) { return std::string(program.param.name); });

TEST(EngineDeadline, takes_effect_in_the_middle_of_a_step) {
  const compile::PlanRef plan = plan_of_text(long_programs()[0].text);
  Bench bench({.device_count = 1, .threads = 2});
  for (const bool is_lent : {false, true}) {
    device::RunRequest request;
    request.plan = plan;
    request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    request.on_callers_thread = is_lent;
    EXPECT_EQ(bench.start(std::move(request))->wait().error->code().word(), "deadline_exceeded");
  }
}

TEST(EngineCancelEarly, run_can_be_cancelled_before_submit_returns) {
  const compile::PlanRef plan = plan_of_text(long_programs()[0].text);
  Bench bench({.device_count = 1, .threads = 2});
  device::RunRequest request;
  request.plan = plan;
  request.on_callers_thread = true;
  request.on_submit = [](const std::shared_ptr<device::Run>& run) { run->cancel(core::Error("cancelled", "early")); };
  EXPECT_EQ(bench.start(std::move(request))->wait().error->code().word(), "cancelled");
}

TEST(EngineBudget, step_beyond_the_budget_is_not_begun_and_the_error_says_what_was_used) {
  const compile::PlanRef plan = plan_of_text(long_programs()[0].text);
  Bench bench({.device_count = 1, .threads = 2});
  device::RunRequest request;
  request.plan = plan;
  request.operation_budget = 1e9;
  const device::RunOutcome out = bench.start(std::move(request))->wait();
  ASSERT_TRUE(out.error.has_value());
  EXPECT_EQ(out.error->code().word(), "budget_exceeded");
  for (const char* part : {"line ", "operations", "1e+09", "--operation-budget"})
    EXPECT_NE(out.error->detail().find(part), std::string::npos) << out.error->detail();
  ASSERT_FALSE(out.error->diagnostics().empty());
  EXPECT_GT(out.error->diagnostics()[0].line, 0);
}

TEST(EngineBudget, loops_count_each_iteration) {
  const compile::PlanRef plan =
      plan_of_text(R"(func.func @main(%x: tensor<1000000xf32>, %n: tensor<i32>) -> tensor<1000000xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<1000000xf32> cond {
      %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.tanh %v : tensor<1000000xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<1000000xf32>
    }
    return %0#1 : tensor<1000000xf32>
  })");
  Bench bench({.device_count = 1, .threads = 2});
  const auto run = [&](int32_t iterations, double operations, double bytes) {
    device::RunRequest request;
    request.plan = plan;
    request.arguments = {bench.shards<float>({std::vector<float>(1'000'000, 1)}),
                         bench.shards<int32_t>({{iterations}})};
    request.operation_budget = operations;
    request.byte_budget = bytes;
    return bench.start(std::move(request))->wait();
  };
  const device::RunOutcome ten = run(10, 0, 0);
  const device::RunOutcome twenty = run(20, 0, 0);
  ASSERT_TRUE(ten.ok() && twenty.ok());
  EXPECT_GT(ten.stats.operations, 1e7);
  EXPECT_GT(ten.stats.bytes, 8e7);
  EXPECT_NEAR(twenty.stats.operations, 2 * ten.stats.operations, 0.2 * ten.stats.operations);
  EXPECT_TRUE(run(10, ten.stats.operations, ten.stats.bytes).ok());
  for (const auto& [operations, bytes] : {std::pair(ten.stats.operations, 0.0), std::pair(0.0, ten.stats.bytes)}) {
    const device::RunOutcome out = run(20, operations, bytes);
    ASSERT_TRUE(out.error.has_value());
    EXPECT_EQ(out.error->code().word(), "budget_exceeded");
  }
}

}  // namespace
}  // namespace meshd::test
