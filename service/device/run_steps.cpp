// Kernels and collectives for each distinct shard in turn, in work groups that end at checkpoints.
#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "service/device/run_impl.h"
#include "service/ops/kernel_interface.h"

namespace meshd::device {
namespace {

// A work group: short against a time slice, long against the overhead of a kernel call.
constexpr double kWorkGroupNs = 1'000'000;
constexpr size_t kInlinePointers = 24;

// Pointers of one call, on the stack unless there are many.
class Pointers {
 public:
  explicit Pointers(size_t count) {
    if (count > kInlinePointers) many_.resize(count);
  }
  std::byte** data() { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<std::byte*, kInlinePointers> few_;  // written before they are read
  std::vector<std::byte*> many_;
};

}  // namespace

RunImpl::WorkItems RunImpl::work_items_of(const compile::Step& step, int64_t shard) const {
  if (step.collective == nullptr) return {.shard = shard, .end = step.kernel->work_count};
  if (exchange_ != nullptr && exchange_->in_parts.count(shard) > 0) {
    const compile::CollectivePart part = part_of(step, shard, owners_.rank);
    return {.shard = shard, .begin = part.begin_item, .end = part.end_item};
  }
  return {.shard = shard, .end = step.collective->get(plan()).work_items[static_cast<size_t>(shard)]};
}

bool RunImpl::shares_packed_operand(const compile::Step& step, std::span<const int32_t> shards) {
  if (step.kernel->packed_operand < 0 || shards.size() < 2) return false;
  const compile::SlotRef& operand = step.operands[static_cast<size_t>(step.kernel->packed_operand)];
  const std::byte* const first = pointer(operand, shards.front());
  return std::all_of(shards.begin(), shards.end(), [&](int32_t shard) { return pointer(operand, shard) == first; });
}

void RunImpl::run_work_groups(const compile::Step& step, const WorkItems& work_items, Lane lane,
                              core::Checkpoint& checkpoint) {
  if (work_items.begin >= work_items.end) return;
  const int64_t all = work_items.end - work_items.begin;
  if (step.kernel->passes_checkpoints || work_items.estimated_ns <= kWorkGroupNs || all == 1) {
    return run_work_items(step, work_items, lane, checkpoint);
  }
  // By the estimate at first, and then by the time that items take.
  auto count =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(all) * kWorkGroupNs / work_items.estimated_ns));
  core::SteadyTime begun = std::chrono::steady_clock::now();
  for (int64_t at = work_items.begin; at < work_items.end;) {
    const int64_t end = std::min(work_items.end, at + count);
    run_work_items(step, {.shard = work_items.shard, .begin = at, .end = end}, lane, checkpoint);
    const auto took = static_cast<double>((std::chrono::steady_clock::now() - begun).count());
    if (took > 2 * kWorkGroupNs) count = std::max<int64_t>(1, count / 2);
    if (took < kWorkGroupNs / 2 && end - at == count) count *= 2;
    at = end;
    checkpoint.pass();
    begun = std::chrono::steady_clock::now();
  }
}

void RunImpl::run_work_items(const compile::Step& step, const WorkItems& work_items, Lane lane,
                             core::Checkpoint& checkpoint) {
  const int64_t shard = work_items.shard;
  std::byte* const scratch = step.kernel->scratch_bytes > 0 ? scratch_ + lane.scratch_at : nullptr;
  std::byte* const* const pointers = lane.pointers != nullptr ? lane.pointers : pointers_.data();
  const auto pointer_of = [&](const compile::SlotRef& ref) {
    return pointers[static_cast<size_t>(ref.first + plan().slot_shard(ref, shard))];
  };
  Pointers results(step.results.size());
  for (size_t i = 0; i < step.results.size(); ++i) results.data()[i] = pointer_of(step.results[i]);
  if (step.collective != nullptr) {
    const compile::Collective& collective = step.collective->get(plan());
    const auto& sources = collective.sources[static_cast<size_t>(shard)];
    Pointers from(sources.size());
    std::vector<char> packed;
    for (size_t i = 0; i < sources.size(); ++i) {
      const compile::CollectiveSource& source = sources[i];
      const compile::SlotRef& operand = step.operands[static_cast<size_t>(source.operand)];
      from.data()[i] = pointers_[static_cast<size_t>(operand.first + source.slot_shard)];
      if (exchange_ == nullptr) continue;
      const auto came = exchange_->received.find({shard, static_cast<int64_t>(i)});
      if (came == exchange_->received.end()) continue;
      if (packed.empty()) packed.resize(sources.size(), 0);
      packed[i] = 1;
      from.data()[i] = came->second->data();
      if (exchange_->in_parts.count(shard) > 0) from.data()[i] -= part_of(step, shard, owners_.rank).begin_byte;
    }
    compile::CollectiveCall call;
    call.shard = shard;
    call.sources = from.data();
    call.packed = packed.empty() ? nullptr : packed.data();
    call.results = results.data();
    call.begin = work_items.begin;
    call.end = work_items.end;
    call.scratch = scratch;
    call.checkpoint = &checkpoint;
    return collective.run(call);
  }
  Pointers operands(step.operands.size());
  for (size_t i = 0; i < step.operands.size(); ++i) operands.data()[i] = pointer_of(step.operands[i]);
  ops::KernelCall call;
  call.operands = operands.data();
  call.results = results.data();
  call.begin = work_items.begin;
  call.end = work_items.end;
  call.checkpoint = &checkpoint;
  call.scratch = scratch;
  call.kept = lane.kept;
  if (step.kernel->workspace_bytes > 0) {
    const int64_t place =
        local_arena_ ? local_arena_->workspace_places[static_cast<size_t>(step.table)][static_cast<size_t>(shard)]
                     : shard;
    call.workspace = scratch_ + plan().shared_scratch_bytes + place * step.kernel->workspace_bytes;
  }
  if (!step.offsets.empty()) call.result_offsets = step.offsets.data() + shard * step.offset_rank;
  step.kernel->run(call);
}

// Counted before it is done: a step that would go beyond the budget is not begun. The shards of other ranks count, too:
// every rank counts what one process would, and ends at the same step.
void RunImpl::charge(const compile::Step& step, size_t shard_count) {
  const auto count = static_cast<double>(shard_count);
  operations_ += step.flops * count;
  bytes_ += step.bytes * count;
  const auto check = [&](double used, double budget, const char* what, const char* option) {
    if (budget <= 0 || used <= budget) return;
    std::ostringstream text;
    text.precision(4);
    text << "the run has executed " << used << " " << what << " with this step, it may execute " << budget << " ("
         << option << ")";
    fail_at(step, "budget_exceeded", text.str());
  };
  check(operations_, request_.operation_budget, "operations", "--operation-budget");
  check(bytes_, request_.byte_budget, "bytes of reads and writes", "--byte-budget");
}

RunImpl::Next RunImpl::execute_kernel(const compile::Step& step) {
  return execute_shards(step, active_shards(*frames_.back().active, step.table));
}

RunImpl::Next RunImpl::execute_collective(const compile::Step& step) {
  ActiveSet& active = *frames_.back().active;
  const std::span<const int32_t> shards = active_shards(active, step.table);
  if (exchange_ != nullptr && exchange_->is_made) return gather_parts(step);
  if (!active.is_all()) check_members(step, shards);
  if (!owners_.is_alone && !exchange_sources(step)) return Next::kSuspended;
  return execute_shards(step, shards);
}

void RunImpl::check_members(const compile::Step& step, std::span<const int32_t> shards) const {
  const ActiveSet& active = *frames_.back().active;
  for (const int32_t shard : shards) {
    for (const compile::CollectiveSource& source : step.collective->get(plan()).sources[static_cast<size_t>(shard)]) {
      if (active.holder(source.table, source.shard) >= 0) continue;
      fail_at(step, "program_failed",
              fmt::format("only some members of its group reach it: device {} left the loop or took another branch, so "
                          "its part is missing",
                          source.device));
    }
  }
}

RunImpl::Next RunImpl::execute_shards(const compile::Step& step, std::span<const int32_t> shards) {
  const double of_one = step.estimated_ns / static_cast<double>(plan().table(step.table).count());
  const double estimated = of_one * static_cast<double>(shards.size());
  if (is_lent_ && estimated > kLentStepNs) return Next::kYield;
  charge(step, shard_count_everywhere(*frames_.back().active, step.table));
  if (seeks_nonfinite()) look_at_operands(step, shards);
  if (const std::optional<Next> next = share({&step, 1}, shards, estimated)) return *next;
  RunCheckpoint checkpoint(*this, is_lent_);
  kernels::PackedOperand kept;
  const Lane lane{0, shares_packed_operand(step, shards) ? &kept : nullptr};
  for (const int32_t shard : shards) {
    WorkItems work_items = work_items_of(step, shard);
    work_items.estimated_ns = of_one;
    run_work_groups(step, work_items, lane, checkpoint);
  }
  stats_.kernel_calls += static_cast<int64_t>(shards.size());
  return shards_done({&step, 1});
}

RunImpl::Next RunImpl::shards_done(std::span<const compile::Step> steps) {
  if (exchange_ != nullptr && !exchange_->in_parts.empty()) {
    exchange_->is_made = true;
    return Next::kGoOn;  // it is executed again, to gather the parts
  }
  exchange_.reset();
  Next next = Next::kGoOn;
  for (const compile::Step& step : steps) {
    if (step_done(step) == Next::kYield) next = Next::kYield;
  }
  return next;
}

}  // namespace meshd::device
