// Fuses reductions with the ops that copy what they reduce (Fuse::reduced: a gather), after fusion of the block.
//
// 1. Count how often each step's result is read from memory, other names of it included.
// 2. A step that is a reduction alone, of one value that it is the only reader of and whose op has a kernel for both,
//    takes the place of both steps: what the first step reads is there as long as the second needs it.
//
// Example: gather (table, indices) -> g, reduce (g, zero) -> s. Out: one step (table, indices, zero) -> s; g has no
// memory.
#include <map>
#include <optional>
#include <string>

#include "service/compile/plan/plan_builder.h"

namespace meshd::compile {
namespace {

bool is_reduction_alone(const BuilderStep& step) {
  return step.op != nullptr && step.op->def != nullptr && step.op->def->fuse.reduce_dims != nullptr &&
         step.name == step.op->name && step.operands == step.op->operands;
}

// `reduction` reads what `source` reads, and says so.
void take_over(const BuilderStep& source, ops::PreparedKernel kernel, BuilderStep& reduction) {
  std::vector<LocalId> operands = source.operands;
  operands.push_back(reduction.operands[1]);
  reduction.operands = std::move(operands);
  reduction.kernel = std::move(kernel);
  reduction.name = "fused " + without_dialect(source.name) + " " + without_dialect(reduction.name) + " (2 ops)";
  add_lines(reduction, source.lines);
}

}  // namespace

void fuse_gathers(const PlanBuilder& builder, const std::vector<LocalId>& live_out, std::vector<BuilderStep>& steps) {
  std::map<LocalId, size_t> sources;  // by result: steps whose reduction may be computed without them
  for (size_t i = 0; i < steps.size(); ++i) {
    const BuilderStep& step = steps[i];
    if (step.op != nullptr && step.op->def != nullptr && step.op->def->fuse.reduced != nullptr)
      sources.emplace(step.results[0], i);
  }
  if (sources.empty()) return;
  std::map<LocalId, int64_t> reads;
  for (const LocalId id : live_out) ++reads[builder.memory_of(id)];
  for (const BuilderStep& step : steps) {
    for (const LocalId id : step.operands) ++reads[builder.memory_of(id)];
  }
  std::vector<bool> is_gone(steps.size(), false);
  for (BuilderStep& reduction : steps) {
    if (!is_reduction_alone(reduction) || reduction.operands.size() != 2) continue;
    const auto found = sources.find(reduction.operands[0]);
    if (found == sources.end() || reads[found->first] != 1) continue;
    const BuilderStep& source = steps[found->second];
    if (source.table != reduction.table) continue;
    const LocalView first(builder, *source.op);
    const LocalView second(builder, *reduction.op);
    std::optional<ops::PreparedKernel> kernel = source.op->def->fuse.reduced(first.view, second.view);
    if (!kernel) continue;
    is_gone[found->second] = true;
    take_over(source, *std::move(kernel), reduction);
  }
  size_t number = 0;
  std::erase_if(steps, [&](const BuilderStep&) { return is_gone[number++]; });
}

}  // namespace meshd::compile
