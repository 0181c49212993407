// Where the time of a first call goes: for each file of StableHLO given, milliseconds of each stage between its text
// and its plan. `devices` is taken from the module's mesh. Medians of the rounds after the first; the first round, in
// which the process touches its code and memory for the first time, is the last column.
//
//   compile_bench FILE.mlir...
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/compile/stages.h"
#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/partition/partition.h"
#include "service/program/parse_stablehlo.h"

namespace {

using namespace meshd;
using Clock = std::chrono::steady_clock;

enum Stage : size_t { kParse, kInline, kPropagate, kPartition, kPlan, kStages };
using Times = std::array<double, kStages>;

double sum(const Times& times) { return std::accumulate(times.begin(), times.end(), 0.0); }

/// Runs `work` and adds its milliseconds.
template <typename Work>
auto timed(double& into, Work&& work) {
  const auto start = Clock::now();
  auto made = work();
  into += std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return made;
}

struct Round {
  Times times{};
  size_t ops = 0;
  int64_t steps = 0;
};

Round compile_once(const std::string& text) {
  Round round;
  compile::Compiler compiler(2, 4);
  double reading = 0;
  const ir::ModuleRef module = timed(round.times[kParse], [&] { return program::parse_stablehlo(text); });
  const compile::ParsedRef parsed = timed(reading, [&] { return compiler.parse("stablehlo", text); });
  round.times[kInline] = std::max(0.0, reading - round.times[kParse]);
  ir::walk(parsed->flat->main().body, [&](const ir::Op&) { ++round.ops; });
  compile::LowerRequest request;
  for (const ir::NamedMesh* mesh : compile::real_meshes(*module)) request.device_count = mesh->mesh->position_count();
  const auto propagated = timed(round.times[kPropagate], [&] { return compile::propagate_for(*parsed, request); });
  const auto local = timed(round.times[kPartition], [&] { return compile::partition_for(propagated, request); });
  const compile::PlanRef plan = timed(round.times[kPlan], [&] { return compile::plan_for(local, request, {2}); });
  round.steps = plan->step_count;
  return round;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void report(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    const Round first = compile_once(text);
    std::array<std::vector<double>, kStages> all;
    for (int i = 0; i < 7; ++i) {
      const Round round = compile_once(text);
      for (size_t stage = 0; stage < kStages; ++stage) all[stage].push_back(round.times[stage]);
    }
    Times times{};
    for (size_t stage = 0; stage < kStages; ++stage) times[stage] = median(all[stage]);
    std::printf("%-36s %8zu %6zu %5lld %7.2f %7.2f %9.2f %9.2f %7.2f %8.2f %8.2f\n",
                path.substr(path.rfind('/') + 1).c_str(), text.size(), first.ops, static_cast<long long>(first.steps),
                times[kParse], times[kInline], times[kPropagate], times[kPartition], times[kPlan], sum(times),
                sum(first.times));
  } catch (const core::Error& error) {
    std::printf("%-36s %s\n", path.c_str(), error.detail().substr(0, 100).c_str());
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::printf("%-36s %8s %6s %5s %7s %7s %9s %9s %7s %8s %8s\n", "ms", "bytes", "ops", "steps", "parse", "inline",
              "propagate", "partition", "plan", "sum", "first");
  for (int i = 1; i < count; ++i) report(arguments[i]);
}
