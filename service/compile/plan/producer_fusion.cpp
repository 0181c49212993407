// Producer-consumer fusion, after fusion of the block: a step whose result one reduction or concatenation alone reads
// is computed by that, and the result has no memory.
//
// 1. Count how often each step's result is read from memory, other names of it included.
// 2. A reduction of one value that it is the only reader of takes the place of both steps: what the first step reads is
//    there as long as the second needs it. It may be
//    a. a reduction along dimensions of what an op only copies (Fuse::reduced);
//    b. a sum over shards of what an op computes of each (Fuse::summed): the shards are added while they are computed.
//       One process alone: between processes a partial sum is less to send than what it is computed of.
// 3. A concatenation that alone reads elements that a step copies out of a value (a slice, reversed dims, a broadcast),
//    reads that value (Fuse::of_views): jnp.roll is one step. Only where the value is there at that time anyway: it is
//    read later, too, or nothing is executed between the two.
//
// Example of a: gather (table, indices) -> g, reduce (g, zero) -> s. Out: one step (table, indices, zero) -> s.
// Example of b, x=4: %0 = dot_general of 1024x64 and 64x512, both sharded along the 64, then its sum over x. In: four
// shards of %0, 2 MiB each, and their sum. Out: one step that, for each block of the sum, multiplies shard 0's operands
// into it and adds the products of shards 1, 2 and 3: no shard of %0 has memory, and the bits are the same.
#include <fmt/core.h>

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

bool is_single_op(const BuilderStep& step) {
  return step.op != nullptr && step.op->def != nullptr && step.name == step.op->name &&
         step.operands == step.op->operands;
}

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

std::optional<ops::StridedView> view_of(const LocalOp& op, const ops::OpView& local) {
  const ops::IndexingMap map = op.def->fuse.read(local);
  if (map.same_bytes) return std::nullopt;
  ops::StridedView view;
  view.strides.assign(local.results[0].dims().size(), 0);
  const tensor::Dims strides = tensor::row_major_strides(local.operands[0].dims());
  for (size_t d = 0; d < strides.size(); ++d) {
    const ops::IndexingMap::Dim& dim = map.dims[d];
    view.offset += dim.start * strides[d];
    if (dim.result_dim >= 0) view.strides[static_cast<size_t>(dim.result_dim)] += dim.step * strides[d];
  }
  return view;
}

/// Of the steps right in front of step `consumer`, one after the other, that make its operands, the first; the consumer
/// itself where there are none.
size_t first_of_producers(const std::vector<BuilderStep>& steps, size_t consumer) {
  const std::set<LocalId> operands(steps[consumer].operands.begin(), steps[consumer].operands.end());
  size_t first = consumer;
  while (first > 0 && !steps[first - 1].results.empty() && operands.contains(steps[first - 1].results[0])) --first;
  return first;
}

/// `gone`: where steps are noted that the concatenation takes over. `last_reads`: the last step that reads a value's
/// memory, beyond all steps for what the block returns.
void fuse_views(const PlanBuilder& builder, std::vector<BuilderStep>& steps, const std::map<LocalId, size_t>& producers,
                const std::map<LocalId, int64_t>& reads, const std::map<LocalId, size_t>& last_reads, size_t number,
                std::vector<bool>& gone) {
  BuilderStep& consumer = steps[number];
  std::vector<std::optional<ops::StridedView>> views(consumer.operands.size());
  std::vector<LocalId> operands = consumer.operands;
  std::vector<size_t> taken;
  const size_t first = first_of_producers(steps, number);
  // What a producer reads is there anyway: it is read later, too, or nothing else is executed before the consumer.
  const auto lives_as_long = [&](size_t producer) {
    const auto last = last_reads.find(builder.memory_of(steps[producer].operands[0]));
    return producer >= first || (last != last_reads.end() && last->second >= number);
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto found = producers.find(operands[i]);
    if (found == producers.end()) continue;
    if (const auto count = reads.find(found->first); count == reads.end() || count->second != 1) continue;
    const BuilderStep& producer = steps[found->second];
    if (producer.op->def->fuse.read == nullptr || producer.table != consumer.table) continue;
    if (!lives_as_long(found->second)) continue;
    const LocalView local(*builder.program, *producer.op);
    views[i] = view_of(*producer.op, local.view);
    if (!views[i]) continue;
    operands[i] = producer.operands[0];
    taken.push_back(found->second);
  }
  if (taken.empty()) return;
  const LocalView local(*builder.program, *consumer.op);
  ops::PreparedKernel kernel = consumer.op->def->fuse.of_views(local.view, views);
  consumer.operands = std::move(operands);
  consumer.kernel = std::move(kernel);
  std::vector<int32_t> lines;
  for (const size_t step : taken) {
    gone[step] = true;
    lines.insert(lines.end(), steps[step].lines.begin(), steps[step].lines.end());
  }
  add_lines(consumer, lines);
  consumer.name = fmt::format("fused {} {} ({} ops)", without_dialect(steps[taken[0]].name),
                              without_dialect(consumer.name), taken.size() + 1);
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
    if (fuse.reduced != nullptr || fuse.summed != nullptr || fuse.read != nullptr)
      producers.emplace(steps[i].results[0], i);
  }
  if (producers.empty()) return;
  std::map<LocalId, int64_t> reads;
  std::map<LocalId, size_t> last_reads;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const LocalId id : steps[i].operands) {
      ++reads[builder.memory_of(id)];
      last_reads[builder.memory_of(id)] = i;
    }
  }
  for (const LocalId id : live_out) {
    ++reads[builder.memory_of(id)];
    last_reads[builder.memory_of(id)] = steps.size();
  }
  std::vector<bool> is_gone(steps.size(), false);
  for (size_t i = 0; i < steps.size(); ++i) {
    BuilderStep& consumer = steps[i];
    if (consumer.operands.empty()) continue;
    if (is_single_op(consumer) && consumer.op->def->fuse.of_views != nullptr) {
      fuse_views(builder, steps, producers, reads, last_reads, i, is_gone);
      continue;
    }
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
