// What a run costs beside its kernels: dispatch and join of small programs, hot and cold; planning; all-reduce of 64
// MiB against memory traffic; page faults of a steady run; two devices against one. Prints medians.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/device/engine.h"

namespace {

using namespace meshd;
using Clock = std::chrono::steady_clock;

double micros_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};

Spread measure(int rounds, const std::function<void()>& pause, const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = 0; i < rounds + 3; ++i) {
    pause();
    const auto start = Clock::now();
    run();
    if (i >= 3) times.push_back(micros_since(start));
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() / 10], times[times.size() - 1 - times.size() / 100]};
}

class Machine {
 public:
  explicit Machine(int threads)
      : compiler_(threads, 16),
        pool_(tensor::BufferPool::create(int64_t{4} << 30)),
        engine_({.device_count = 64, .threads = threads}, pool_) {}

  compile::PlanRef plan(const std::string& text, int64_t devices) {
    compile::LowerRequest request;
    request.device_count = devices;
    return compiler_.lower(compiler_.parse("stablehlo", text), request)->plan;
  }

  std::vector<device::RunArgument> arguments(const compile::Plan& plan) {
    std::vector<device::RunArgument> out;
    for (const compile::PlanParameter& argument : plan.arguments) {
      device::RunArgument made;
      for (int64_t i = 0; i < plan.table(argument.table).count(); ++i) {
        made.shards.push_back(pool_->allocate(argument.shard_bytes));
        auto* numbers = reinterpret_cast<float*>(made.shards.back()->data());
        std::fill_n(numbers, argument.shard_bytes / 4, 1.0F);
      }
      out.push_back(std::move(made));
    }
    return out;
  }

  device::RunStats run(const compile::PlanRef& plan, const std::vector<device::RunArgument>& arguments, bool lent) {
    device::RunRequest request;
    request.plan = plan;
    request.arguments = arguments;
    request.on_callers_thread = lent;
    std::mutex mutex;
    std::condition_variable there;
    bool done = false;
    device::RunStats stats;
    engine_.submit(std::move(request), [&](device::RunOutcome outcome) {
      if (outcome.error) std::printf("failed: %s\n", outcome.error->detail().c_str());
      const std::lock_guard held(mutex);
      stats = std::move(outcome.stats);
      done = true;
      there.notify_one();
    });
    std::unique_lock held(mutex);
    there.wait(held, [&] { return done; });
    return stats;
  }

 private:
  compile::Compiler compiler_;
  std::shared_ptr<tensor::BufferPool> pool_;
  device::Engine engine_;
};

std::string mesh_text(int64_t devices) { return "sdy.mesh @mesh = <[\"x\"=" + std::to_string(devices) + "]>\n"; }

std::string negate_text(int64_t devices) {
  const std::string type = "tensor<" + std::to_string(devices) + "xf32>";
  return mesh_text(devices) + "func.func @main(%a: " + type + " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> " +
         type + " {\n  %0 = stablehlo.negate %a : " + type + "\n  return %0 : " + type + "\n}\n";
}

// `count` steps that cannot be fused, over 4x4.
std::string steps_text(int count) {
  std::string text = "func.func @main(%0: tensor<4x4xf32>) -> tensor<4x4xf32> {\n";
  for (int i = 0; i < count; ++i) {
    text += "  %" + std::to_string(i + 1) + " = stablehlo.transpose %" + std::to_string(i) +
            ", dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>\n";
  }
  return text + "  return %" + std::to_string(count) + " : tensor<4x4xf32>\n}\n";
}

// Fifty pointwise ops and reductions in between: what the planner is asked for.
std::string mixed_text() {
  std::string text = "func.func @main(%0: tensor<64x64xf32>) -> tensor<64x64xf32> {\n";
  const char* const ops[] = {"tanh", "exponential", "negate", "abs", "sqrt"};
  for (int i = 0; i < 50; ++i) {
    text += "  %" + std::to_string(i + 1) + " = stablehlo." + ops[i % 5] + " %" + std::to_string(i) +
            " : tensor<64x64xf32>\n";
  }
  return text + "  return %50 : tensor<64x64xf32>\n}\n";
}

std::string all_reduce_text(int64_t devices, int64_t elements) {
  const std::string whole = "tensor<" + std::to_string(devices * elements) + "xf32>";
  const std::string local = "tensor<" + std::to_string(elements) + "xf32>";
  std::string members;
  for (int64_t i = 0; i < devices; ++i) members += (i == 0 ? "" : ", ") + std::to_string(i);
  return mesh_text(devices) + "func.func @main(%a: " + whole +
         " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> " + local +
         " {\n  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\"}]>] out_shardings=[<@mesh, [{}]>] "
         "manual_axes={\"x\"} (%b: " +
         local +
         ") {\n    %1 = \"stablehlo.all_reduce\"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = "
         "1>, "
         "replica_groups = dense<[[" +
         members + "]]> : tensor<1x" + std::to_string(devices) +
         "xi64>, use_global_device_ids}> ({\n"
         "    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n      %s = stablehlo.add %x, %y : tensor<f32>\n      "
         "stablehlo.return %s : tensor<f32>\n"
         "    }) : (" +
         local + ") -> " + local + "\n    sdy.return %1 : " + local + "\n  } : (" + whole + ") -> " + local +
         "\n  return %0 : " + local + "\n}\n";
}

std::string heavy_text(int64_t devices) {
  const std::string type = "tensor<" + std::to_string(devices * 1048576) + "xf32>";
  std::string text = mesh_text(devices) + "func.func @main(%0: " + type +
                     " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> " + type + " {\n";
  for (int i = 0; i < 20; ++i) {
    text += "  %" + std::to_string(i + 1) + " = stablehlo.tanh %" + std::to_string(i) + " : " + type + "\n";
  }
  return text + "  return %20 : " + type + "\n}\n";
}

void nothing() {}
void sleep_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

void report(const std::string& what, const Spread& spread) {
  std::printf("%-58s %10.1f us  [%.1f .. %.1f]\n", what.c_str(), spread.median, spread.low, spread.high);
}

}  // namespace

int main() {
  Machine machine(2);
  for (const int64_t devices : {2, 8, 64}) {
    const auto plan = machine.plan(negate_text(devices), devices);
    const auto arguments = machine.arguments(*plan);
    const std::string name = "negate on " + std::to_string(devices) + " devices, ";
    for (const bool is_lent : {true, false}) {
      const std::string thread = name + (is_lent ? "caller's thread" : "thread of the pool");
      report(thread + ", hot", measure(2000, nothing, [&] { machine.run(plan, arguments, is_lent); }));
      report(thread + ", cold", measure(100, sleep_a_little, [&] { machine.run(plan, arguments, is_lent); }));
    }
  }
  {
    const auto plan = machine.plan(steps_text(50), 1);
    const auto arguments = machine.arguments(*plan);
    report("50 small steps, caller's thread", measure(2000, nothing, [&] { machine.run(plan, arguments, true); }));
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 1000; ++i) machine.run(plan, arguments, true);
    getrusage(RUSAGE_SELF, &after);
    std::printf("page faults in 1,000 steady runs: %ld\n", after.ru_minflt - before.ru_minflt);
  }
  for (const auto& [name, text] : {std::pair<const char*, std::string>{"50 pointwise ops (one chain)", mixed_text()},
                                   {"50 steps", steps_text(50)}}) {
    const Spread spread = measure(50, nothing, [&] {
      compile::Compiler fresh(2, 4);
      fresh.lower(fresh.parse("stablehlo", text), {});
    });
    report(std::string("text to plan: ") + name, spread);
  }
  for (const int64_t devices : {2, 8}) {
    constexpr int64_t kElements = int64_t{16} << 20;
    const auto plan = machine.plan(all_reduce_text(devices, kElements), devices);
    const auto arguments = machine.arguments(*plan);
    const Spread spread = measure(15, nothing, [&] { machine.run(plan, arguments, false); });
    report("all-reduce of 64 MiB over " + std::to_string(devices) + " devices", spread);
    const double traffic = static_cast<double>((devices + 1) * kElements * 4);
    std::printf("  %.1f GB/s of reads and writes\n", traffic / spread.median / 1000);
    std::vector<std::byte> from(kElements * 4, std::byte{1});
    std::vector<std::byte> to(kElements * 4, std::byte{1});
    const Spread copy = measure(15, nothing, [&] { std::memcpy(to.data(), from.data(), from.size()); });
    std::printf("  %.1f GB/s by memcpy on one thread\n", 2.0 * static_cast<double>(from.size()) / copy.median / 1000);
  }
  {
    Machine alone(1);
    const auto one = alone.plan(heavy_text(1), 1);
    const auto one_arguments = alone.arguments(*one);
    const Spread single = measure(9, nothing, [&] { alone.run(one, one_arguments, true); });
    const auto two = machine.plan(heavy_text(2), 2);
    const auto two_arguments = machine.arguments(*two);
    const Spread both = measure(9, nothing, [&] { machine.run(two, two_arguments, false); });
    std::printf("two devices on two threads do %.2f times the work of one on one\n", 2 * single.median / both.median);
  }
  return 0;
}
