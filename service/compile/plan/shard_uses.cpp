#include "service/compile/plan/shard_uses.h"

#include <algorithm>
#include <utility>

#include "service/ops/kernel_interface.h"

namespace meshd::compile {

ExchangedSlots::ExchangedSlots(const Plan& plan) {
  for (const Block& block : plan.blocks) {
    for (const Step& step : block.steps) {
      for (const auto& [a, b] : step.exchanges) unite(a, b);
    }
  }
}

std::vector<SlotId> ExchangedSlots::with(SlotId slot) const {
  const auto found = group_of_.find(slot);
  return found == group_of_.end() ? std::vector<SlotId>{slot} : groups_[found->second];
}

void ExchangedSlots::unite(SlotId a, SlotId b) {
  const size_t left = group(a);
  const size_t right = group(b);
  if (left == right) return;
  for (const SlotId slot : groups_[right]) {
    group_of_[slot] = left;
    groups_[left].push_back(slot);
  }
  groups_[right].clear();
}

size_t ExchangedSlots::group(SlotId slot) {
  const auto [found, is_new] = group_of_.try_emplace(slot, groups_.size());
  if (is_new) groups_.push_back({slot});
  return found->second;
}

ShardUses::ShardUses(const Plan& plan, const ExchangedSlots& exchanged, TableId table, std::set<SlotId> replicated,
                     std::set<SlotId> apart)
    : plan_(plan), exchanged_(exchanged), table_(table), replicated_(std::move(replicated)), apart_(std::move(apart)) {}

bool ShardUses::take(const Step& step) {
  if (step.kind != StepKind::kKernel || step.results.empty()) return false;
  const bool is_ours = step.table == table_ || plan_.table(step.table).shard_of_device == devices();
  if (!is_ours || !step.kernel->barriers.empty() || step.kernel->workspace_bytes > 0 || packs_for_all(step))
    return false;
  const auto adds = [this](bool is_written) {
    return [this, is_written](const SlotRef& ref) { return add(ref, is_written); };
  };
  return std::all_of(step.operands.begin(), step.operands.end(), adds(false)) &&
         std::all_of(step.results.begin(), step.results.end(), adds(true));
}

bool ShardUses::take_replicated(const Step& step) {
  return std::all_of(step.operands.begin(), step.operands.end(), [&](const SlotRef& ref) { return add(ref, false); });
}

bool ShardUses::packs_for_all(const Step& step) const {
  if (step.kernel->packed_operand < 0) return false;
  const SlotRef& ref = step.operands[static_cast<size_t>(step.kernel->packed_operand)];
  for (int64_t shard = 1; shard < count(); ++shard) {
    if (plan_.slot_shard(ref, shard) != plan_.slot_shard(ref, 0)) return false;
  }
  return true;
}

bool ShardUses::is_by_shard(const SlotRef& ref) const {
  if (plan_.table(plan_.slot(ref.slot).table).count() != count()) return false;
  if (ref.map == kIdentity) return true;
  if (static_cast<int64_t>(plan_.maps[static_cast<size_t>(ref.map)].size()) != count())
    return false;  // that of a step over one shard
  for (int64_t shard = 0; shard < count(); ++shard) {
    if (plan_.slot_shard(ref, shard) != shard) return false;
  }
  return true;
}

bool ShardUses::add(const SlotRef& ref, bool is_written) {
  if (ref.slot < 0) return false;
  if (replicated_.count(ref.slot) > 0) return !is_written;
  const bool is_apart = is_by_shard(ref);
  if (apart_.count(ref.slot) > 0) return is_apart;
  const std::vector<SlotId> slots = exchanged_.with(ref.slot);
  return std::all_of(slots.begin(), slots.end(), [&](SlotId slot) { return add(slot, is_written, is_apart); });
}

bool ShardUses::add(SlotId id, bool is_written, bool is_by_shard) {
  const Slot& slot = plan_.slot(id);
  Use use{0, slot.stride, is_written, is_by_shard};
  if (slot.storage == Storage::kConstant || slot.bytes == 0) return true;  // nothing is written there
  if (slot.storage != Storage::kArena) return merge(outside_.try_emplace(id, use).first->second, use);
  use.end = slot.offset + slot.stride * plan_.table(slot.table).count();
  auto at = arena_.upper_bound(slot.offset);
  if (at != arena_.begin() && std::prev(at)->second.end > slot.offset) --at;
  if (at == arena_.end() || at->first >= use.end) return merge(arena_.emplace_hint(at, slot.offset, use)->second, use);
  const auto next = std::next(at);
  const bool is_same = at->first == slot.offset && at->second.stride == use.stride && at->second.end == use.end;
  return is_same && (next == arena_.end() || next->first >= use.end) && merge(at->second, use);
}

bool ShardUses::merge(Use& known, const Use& use) {
  known.is_written = known.is_written || use.is_written;
  known.is_by_shard = known.is_by_shard && use.is_by_shard;
  return !known.is_written || known.is_by_shard;
}

}  // namespace meshd::compile
