#include "service/compile/plan/shard_sequences.h"

#include <algorithm>
#include <map>

#include "service/ops/kernel_interface.h"

namespace meshd::compile {
namespace {

// What a sequence does to one range of the arena, or to a slot with memory of its own.
struct Use {
  int64_t end = 0;  // in the arena
  int64_t stride = 0;
  bool is_written = false;
  bool is_by_shard = true;  // shard i of a step touches shard i alone
};

// Slots whose pointers loops exchange: each may have the bytes of any of its group.
class Exchanged {
 public:
  explicit Exchanged(const Plan& plan) {
    for (const Block& block : plan.blocks) {
      for (const Step& step : block.steps) {
        for (const auto& [a, b] : step.exchanges) unite(a, b);
      }
    }
  }
  // All slots of the group, the slot itself included.
  [[nodiscard]] std::vector<SlotId> with(SlotId slot) const {
    const auto found = group_of_.find(slot);
    return found == group_of_.end() ? std::vector<SlotId>{slot} : groups_[found->second];
  }

 private:
  void unite(SlotId a, SlotId b) {
    const size_t left = group(a);
    const size_t right = group(b);
    if (left == right) return;
    for (const SlotId slot : groups_[right]) {
      group_of_[slot] = left;
      groups_[left].push_back(slot);
    }
    groups_[right].clear();
  }
  size_t group(SlotId slot) {
    const auto [found, is_new] = group_of_.try_emplace(slot, groups_.size());
    if (is_new) groups_.push_back({slot});
    return found->second;
  }

  std::map<SlotId, size_t> group_of_;
  std::vector<std::vector<SlotId>> groups_;
};

class Sequence {
 public:
  Sequence(const Plan& plan, const Exchanged& exchanged, TableId table)
      : plan_(plan), exchanged_(exchanged), table_(table) {}

  // False: the step has to wait for all shards of those before it, and is not part of the sequence, which is over.
  bool take(const Step& step) {
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

 private:
  [[nodiscard]] const std::vector<int32_t>& devices() const { return plan_.table(table_).shard_of_device; }
  [[nodiscard]] int64_t count() const { return plan_.table(table_).count(); }

  [[nodiscard]] bool packs_for_all(const Step& step) const {
    if (step.kernel->packed_operand < 0) return false;
    const SlotRef& ref = step.operands[static_cast<size_t>(step.kernel->packed_operand)];
    for (int64_t shard = 1; shard < count(); ++shard) {
      if (plan_.slot_shard(ref, shard) != plan_.slot_shard(ref, 0)) return false;
    }
    return true;
  }

  [[nodiscard]] bool is_by_shard(const SlotRef& ref) const {
    if (plan_.table(plan_.slot(ref.slot).table).count() != count()) return false;
    if (ref.map == kIdentity) return true;
    for (int64_t shard = 0; shard < count(); ++shard) {
      if (plan_.slot_shard(ref, shard) != shard) return false;
    }
    return true;
  }

  bool add(const SlotRef& ref, bool is_written) {
    if (ref.slot < 0) return false;
    const bool is_apart = is_by_shard(ref);
    const std::vector<SlotId> slots = exchanged_.with(ref.slot);
    return std::all_of(slots.begin(), slots.end(), [&](SlotId slot) { return add(slot, is_written, is_apart); });
  }

  bool add(SlotId id, bool is_written, bool is_by_shard) {
    const Slot& slot = plan_.slot(id);
    Use use{0, slot.stride, is_written, is_by_shard};
    if (slot.storage == Storage::kConstant || slot.bytes == 0) return true;  // nothing is written there
    if (slot.storage != Storage::kArena) return merge(apart_.try_emplace(id, use).first->second, use);
    use.end = slot.offset + slot.stride * plan_.table(slot.table).count();
    auto at = arena_.upper_bound(slot.offset);
    if (at != arena_.begin() && std::prev(at)->second.end > slot.offset) --at;
    if (at == arena_.end() || at->first >= use.end)
      return merge(arena_.emplace_hint(at, slot.offset, use)->second, use);
    const auto next = std::next(at);
    const bool is_same = at->first == slot.offset && at->second.stride == use.stride && at->second.end == use.end;
    return is_same && (next == arena_.end() || next->first >= use.end) && merge(at->second, use);
  }

  static bool merge(Use& known, const Use& use) {
    known.is_written = known.is_written || use.is_written;
    known.is_by_shard = known.is_by_shard && use.is_by_shard;
    return !known.is_written || known.is_by_shard;
  }

  const Plan& plan_;
  const Exchanged& exchanged_;
  const TableId table_;
  std::map<int64_t, Use> arena_;  // by first byte; no two overlap
  std::map<SlotId, Use> apart_;
};

}  // namespace

void find_shard_sequences(Plan& plan) {
  const Exchanged exchanged(plan);
  for (Block& block : plan.blocks) {
    for (size_t first = 0; first < block.steps.size();) {
      size_t end = first;
      if (plan.table(block.steps[first].table).count() > 1) {
        Sequence sequence(plan, exchanged, block.steps[first].table);
        while (end < block.steps.size() && sequence.take(block.steps[end])) ++end;
      }
      block.steps[first].sequence = static_cast<int32_t>(std::max<size_t>(end - first, 1));
      first = std::max(end, first + 1);
    }
  }
}

}  // namespace meshd::compile
