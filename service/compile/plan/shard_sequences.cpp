#include "service/compile/plan/shard_sequences.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "service/core/checked_math.h"
#include "service/ops/kernel_interface.h"
#include "service/tensor/buffer.h"

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
  /// `common`, `apart`: slots of which each thread has its own, of all shards and of the one that it is at.
  Sequence(const Plan& plan, const Exchanged& exchanged, TableId table, std::set<SlotId> common = {},
           std::set<SlotId> apart = {})
      : plan_(plan), exchanged_(exchanged), table_(table), common_(std::move(common)), apart_(std::move(apart)) {}

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

  // Of a step over one shard, whose results are common.
  bool take_common(const Step& step) {
    return std::all_of(step.operands.begin(), step.operands.end(), [&](const SlotRef& ref) { return add(ref, false); });
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
    if (common_.count(ref.slot) > 0) return !is_written;
    const bool is_apart = is_by_shard(ref);
    if (apart_.count(ref.slot) > 0) return is_apart;
    const std::vector<SlotId> slots = exchanged_.with(ref.slot);
    return std::all_of(slots.begin(), slots.end(), [&](SlotId slot) { return add(slot, is_written, is_apart); });
  }

  bool add(SlotId id, bool is_written, bool is_by_shard) {
    const Slot& slot = plan_.slot(id);
    Use use{0, slot.stride, is_written, is_by_shard};
    if (slot.storage == Storage::kConstant || slot.bytes == 0) return true;  // nothing is written there
    if (slot.storage != Storage::kArena) return merge(outside_.try_emplace(id, use).first->second, use);
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
  const std::set<SlotId> common_;
  const std::set<SlotId> apart_;
  std::map<int64_t, Use> arena_;   // by first byte; no two overlap
  std::map<SlotId, Use> outside_;  // of the arena
};

// The form of one loop.
class LoopFinder {
 public:
  LoopFinder(const Plan& plan, const Exchanged& exchanged, const Step& loop)
      : plan_(plan), exchanged_(exchanged), loop_(loop) {}

  std::shared_ptr<const ShardWhileStep> find() {
    if (plan_.pointer_count > kMostPointers || !is_common(loop_.table) || !choose_table()) return nullptr;
    if (!find_common()) return nullptr;
    find_apart();
    Sequence sequence(plan_, exchanged_, made_.table, common_, apart_);
    const bool is_one = for_all_steps(
        [&](const Step& step) { return is_common(step.table) ? sequence.take_common(step) : sequence.take(step); });
    if (!is_one) return nullptr;
    add_costs(0, made_.condition);
    made_.iteration = made_.condition;
    ++made_.iteration.steps;
    add_costs(1, made_.iteration);
    if (!place_own()) return nullptr;
    return std::make_shared<const ShardWhileStep>(std::move(made_));
  }

 private:
  // Each thread copies so many each time that threads share iterations.
  static constexpr int64_t kMostPointers = int64_t{1} << 14;
  static constexpr int64_t kMostCommonBytes = 4096;
  static constexpr int64_t kMostOwnBytes = int64_t{256} << 10;  // stays in a core's caches

  [[nodiscard]] const std::vector<Step>& steps(int block) const {
    return plan_.block(loop_.blocks_first + block).steps;
  }
  template <class Check>
  bool for_all_steps(const Check& check) const {
    return std::all_of(steps(0).begin(), steps(0).end(), check) && std::all_of(steps(1).begin(), steps(1).end(), check);
  }
  [[nodiscard]] bool is_common(TableId table) const { return plan_.table(table).count() == 1; }

  // That of the first step over several shards.
  bool choose_table() {
    const auto found =
        std::find_if(steps(1).begin(), steps(1).end(), [&](const Step& step) { return !is_common(step.table); });
    if (found == steps(1).end()) return false;
    made_.table = found->table;
    // The same devices as those that have the condition.
    const std::vector<int32_t>& ours = plan_.table(made_.table).shard_of_device;
    const std::vector<int32_t>& of_condition = plan_.table(loop_.table).shard_of_device;
    return std::equal(ours.begin(), ours.end(), of_condition.begin(), of_condition.end(),
                      [](int32_t a, int32_t b) { return (a < 0) == (b < 0); });
  }

  // What is written and has one shard; false where that is not for each thread to do.
  bool find_common() {
    int64_t bytes = 0;
    const auto add = [&](SlotId id) {
      if (id < 0 || !is_common(plan_.slot(id).table) || plan_.slot(id).storage == Storage::kConstant) return false;
      if (common_.insert(id).second) bytes += plan_.slot(id).bytes;
      return bytes <= kMostCommonBytes;
    };
    const auto adds_results = [&](const Step& step) {
      if (!is_common(step.table)) return true;
      const bool is_pointwise = step.kind == StepKind::kKernel && step.offsets.empty() && !step.results.empty() &&
                                (step.kernel->fused != nullptr || step.is_copy);
      return is_pointwise && std::all_of(step.results.begin(), step.results.end(),
                                         [&](const SlotRef& ref) { return ref.map == kIdentity && add(ref.slot); });
    };
    std::set<SlotId> exchanged;  // each once: after two iterations all is where it was
    const auto adds_exchanged = [&](const std::pair<SlotId, SlotId>& pair) {
      const TableId left = plan_.slot(pair.first).table;
      const TableId right = plan_.slot(pair.second).table;
      if (!exchanged.insert(pair.first).second || !exchanged.insert(pair.second).second) return false;
      if (is_common(left) && is_common(right)) return add(pair.first) && add(pair.second);
      const int64_t count = plan_.table(made_.table).count();
      return plan_.table(left).count() == count && plan_.table(right).count() == count;
    };
    return for_all_steps(adds_results) && std::all_of(loop_.exchanges.begin(), loop_.exchanges.end(), adds_exchanged);
  }

  // Of the others, those whose shard has bytes of another shard of another one.
  void find_apart() {
    std::set<SlotId> used;
    for_all_steps([&](const Step& step) {
      for (const auto* refs : {&step.operands, &step.results}) {
        for (const SlotRef& ref : *refs) {
          if (ref.slot >= 0 && common_.count(ref.slot) == 0) used.insert(ref.slot);
        }
      }
      return true;
    });
    for (const auto& [a, b] : loop_.exchanges) {
      if (common_.count(a) == 0) used.insert({a, b});
    }
    for (const SlotId slot : used) {
      const bool is_shared = std::any_of(used.begin(), used.end(), [&](SlotId other) {
        return shares_bytes(slot, other) && !has_bytes_of(slot, other);
      });
      if (is_shared) apart_.insert(slot);
    }
    for (const SlotId slot : common_) {
      const auto shares = [&](SlotId other) { return shares_bytes(slot, other); };
      if (std::any_of(used.begin(), used.end(), shares) || std::any_of(common_.begin(), common_.end(), shares))
        lives_in_one_iteration_.insert(slot);
    }
  }

  [[nodiscard]] bool shares_bytes(SlotId left, SlotId right) const {
    const Slot& a = plan_.slot(left);
    const Slot& b = plan_.slot(right);
    if (left == right || a.storage != Storage::kArena || b.storage != Storage::kArena) return false;
    const auto end = [&](const Slot& slot) { return slot.offset + slot.stride * plan_.table(slot.table).count(); };
    return a.offset < end(b) && b.offset < end(a);
  }
  // Shard by shard.
  [[nodiscard]] bool has_bytes_of(SlotId left, SlotId right) const {
    const Slot& a = plan_.slot(left);
    const Slot& b = plan_.slot(right);
    return a.offset == b.offset && a.stride == b.stride && plan_.table(a.table).count() == plan_.table(b.table).count();
  }

  // Behind the scratch of the steps.
  bool place_own() {
    const int64_t begin = made_.scratch_bytes;
    const auto place = [&](SlotId slot, bool is_of_all, bool is_carried) {
      made_.own.push_back({slot, made_.scratch_bytes, is_of_all, is_carried});
      made_.scratch_bytes += core::round_up(plan_.slot(slot).bytes, tensor::kBufferAlignment);
      return made_.scratch_bytes - begin <= kMostOwnBytes;
    };
    return std::all_of(common_.begin(), common_.end(),
                       [&](SlotId slot) { return place(slot, true, lives_in_one_iteration_.count(slot) == 0); }) &&
           std::all_of(apart_.begin(), apart_.end(), [&](SlotId slot) { return place(slot, false, false); });
  }

  void add_costs(int block, LoopCost& cost) {
    for (const Step& step : steps(block)) {
      const int64_t count = plan_.table(step.table).count();
      ++cost.steps;
      cost.kernel_calls += count;
      cost.flops += step.flops * static_cast<double>(count);
      cost.bytes += step.bytes * static_cast<double>(count);
      cost.estimated_ns += step.estimated_ns;
      made_.scratch_bytes = std::max(made_.scratch_bytes, step.kernel->scratch_bytes);
    }
  }

  const Plan& plan_;
  const Exchanged& exchanged_;
  const Step& loop_;
  std::set<SlotId> common_;
  std::set<SlotId> apart_;
  std::set<SlotId> lives_in_one_iteration_;  // of the common ones
  ShardWhileStep made_;
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
      if (block.steps[first].kind == StepKind::kWhile)
        block.steps[first].by_shard = LoopFinder(plan, exchanged, block.steps[first]).find();
      first = std::max(end, first + 1);
    }
  }
}

}  // namespace meshd::compile
