// Producer-consumer fusion, after fusion of the block: a step whose result one reduction alone reads is
// computed by that, and the result has no memory.
//
// 1. Count how often each step's result is read from memory, other names of it included.
// 2. A reduction of one value that it is the only reader of takes the place of both steps: what the first step reads is
//    there as long as the second needs it. It may be
//    a. a reduction along dimensions of what an op only copies (Fuse::reduced);
//    b. a sum over shards of what an op computes of each (Fuse::summed): the shards are added while they are computed.
//       One process alone: between processes a partial sum is less to send than what it is computed of.
//
// Example of a: gather (table, indices) -> g, reduce (g, zero) -> s. Out: one step (table, indices, zero) -> s.
// Example of b, x=4: %0 = dot_general of 1024x64 and 64x512, both sharded along the 64, then its sum over x. In: four
// shards of %0, 2 MiB each, and their sum. Out: one step that, for each block of the sum, multiplies shard 0's operands
// into it and adds the products of shards 1, 2 and 3: no shard of %0 has memory, and the bits are the same.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "service/compile/plan/collectives.h"
#include "service/compile/plan/plan_builder.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::compile {
namespace {

void take_over(const BuilderStep& producer, ops::PreparedKernel kernel, BuilderStep& consumer) {
  consumer.kernel = std::move(kernel);
  note_producer(consumer, producer.name, producer.lines);
}

bool fuse_reduction(const PlanBuilder& builder, const BuilderStep& producer, BuilderStep& reduction) {
  const auto reduced = producer.op->def->fuse.reduced;
  if (reduced == nullptr || !is_single_op(reduction) || reduction.op->def->fuse.reduce_dims == nullptr) return false;
  if (reduction.operands.size() != 2 || producer.table != reduction.table) return false;
  const LocalView first(*builder.program, *producer.op);
  const LocalView second(*builder.program, *reduction.op);
  std::optional<ops::PreparedKernel> kernel = reduced(first.view, second.view);
  if (!kernel) return false;
  std::vector<LocalId> operands = producer.operands;
  operands.push_back(reduction.operands[1]);
  reduction.operands = std::move(operands);
  take_over(producer, *std::move(kernel), reduction);
  return true;
}

// Whether the reduction over shards adds elements of this type.
bool adds(const PlanBuilder& builder, const LocalOp& reduction, tensor::DType dtype) {
  const kernels::TileProgram reducer = ops::compile_scalar_region(*builder.program->function, reduction.regions.at(0));
  return reducer.registers[0] == dtype && kernels::as_single_binary(reducer) == kernels::ScalarOp::kAdd;
}

bool fuse_sum(const PlanBuilder& builder, const BuilderStep& producer, BuilderStep& sum) {
  const auto summed = producer.op->def->fuse.summed;
  if (summed == nullptr || sum.op == nullptr || sum.op->kind != partition::LocalKind::kReduceShards) return false;
  const sharding::SubAxisSet reduced = sum.op->reduced;
  const BuilderValue& result = builder.value(sum.op->results[0]);
  const int number = result.type.layout.view;
  if (sum.operands.size() != 1 || !adds(builder, *sum.op, result.type.local.dtype)) return false;
  // Each part reads a shard that its own devices alone hold: where control flow diverges, a device that is missing is
  // found by that.
  const auto varies = [&](LocalId id) { return (builder.value(id).type.varies & reduced) == reduced; };
  const auto is_here = [&](LocalId id) { return builder.value(id).type.layout.view == number; };
  if (std::none_of(producer.operands.begin(), producer.operands.end(), varies)) return false;
  if (!std::all_of(producer.operands.begin(), producer.operands.end(), is_here)) return false;
  const LocalView view(*builder.program, *producer.op);
  std::optional<ops::PreparedKernel> kernel = summed(view.view, builder.tables.view(number).distinct_count(reduced));
  if (!kernel) return false;
  sum.operands = producer.operands;
  take_over(producer, *std::move(kernel), sum);
  sum.collective = sum_maker(*sum.op, sum.operands, sum.kernel);
  return true;
}

}  // namespace

void fuse_producers(const PlanBuilder& builder, const std::vector<LocalId>& live_out, bool fuses_sums,
                    std::vector<BuilderStep>& steps) {
  std::map<LocalId, size_t> producers;  // by result
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!is_single_op(steps[i])) continue;
    const ops::Fuse& fuse = steps[i].op->def->fuse;
    if (fuse.reduced != nullptr || fuse.summed != nullptr) producers.emplace(steps[i].results[0], i);
  }
  if (producers.empty()) return;
  std::map<LocalId, int64_t> reads;
  for (const BuilderStep& step : steps) {
    for (const LocalId id : step.operands) ++reads[builder.memory_of(id)];
  }
  for (const LocalId id : live_out) ++reads[builder.memory_of(id)];
  std::vector<bool> is_gone(steps.size(), false);
  for (size_t i = 0; i < steps.size(); ++i) {
    BuilderStep& consumer = steps[i];
    if (consumer.operands.empty()) continue;
    const auto found = producers.find(consumer.operands[0]);
    if (found == producers.end() || reads[found->first] != 1) continue;
    const BuilderStep& producer = steps[found->second];
    if (fuse_reduction(builder, producer, consumer) || (fuses_sums && fuse_sum(builder, producer, consumer)))
      is_gone[found->second] = true;
  }
  size_t number = 0;
  std::erase_if(steps, [&](const BuilderStep&) { return is_gone[number++]; });
}

}  // namespace meshd::compile
