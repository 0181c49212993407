#include "service/compile/plan/shard_whiles.h"

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "service/compile/plan/shard_uses.h"
#include "service/core/checked_math.h"
#include "service/ops/kernel_interface.h"
#include "service/tensor/buffer.h"

namespace meshd::compile {
namespace {

// The form of one loop.
class LoopFinder {
 public:
  LoopFinder(const Plan& plan, const ExchangedSlots& exchanged, const Step& loop)
      : plan_(plan), exchanged_(exchanged), loop_(loop) {}

  std::shared_ptr<const ShardWhileStep> find() {
    const bool has_kernels_alone = for_all_steps([](const Step& step) { return step.kind == StepKind::kKernel; });
    if (!has_kernels_alone || plan_.pointer_count > kMostPointers || !is_replicated(loop_.table)) return nullptr;
    // The condition may be another name of one shard of a value that each device computes for itself.
    if (!is_replicated(plan_.slot(loop_.operands[0].slot).table)) return nullptr;
    if (!choose_table() || !find_replicated()) return nullptr;
    find_apart();
    ShardUses sequence(plan_, exchanged_, made_.table, replicated_, apart_);
    const bool is_one = for_all_steps([&](const Step& step) {
      return is_replicated(step.table) ? sequence.take_replicated(step) : sequence.take(step);
    });
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
  static constexpr int64_t kMostReplicatedBytes = 4096;
  static constexpr int64_t kMostOwnBytes = int64_t{256} << 10;  // stays in a core's caches

  [[nodiscard]] const std::vector<Step>& steps(int block) const {
    return plan_.block(loop_.blocks_first + block).steps;
  }
  template <class Check>
  bool for_all_steps(const Check& check) const {
    return std::all_of(steps(0).begin(), steps(0).end(), check) && std::all_of(steps(1).begin(), steps(1).end(), check);
  }
  [[nodiscard]] bool is_replicated(TableId table) const { return plan_.table(table).count() == 1; }

  // That of the first step over several shards.
  bool choose_table() {
    const auto found =
        std::find_if(steps(1).begin(), steps(1).end(), [&](const Step& step) { return !is_replicated(step.table); });
    if (found == steps(1).end()) return false;
    made_.table = found->table;
    // The same devices as those that have the condition.
    const std::vector<int32_t>& ours = plan_.table(made_.table).shard_of_device;
    const std::vector<int32_t>& of_condition = plan_.table(loop_.table).shard_of_device;
    return std::equal(ours.begin(), ours.end(), of_condition.begin(), of_condition.end(),
                      [](int32_t a, int32_t b) { return (a < 0) == (b < 0); });
  }

  // What is written and has one shard; false where that is not for each thread to do.
  bool find_replicated() {
    int64_t bytes = 0;
    const auto add = [&](SlotId id) {
      if (id < 0 || !is_replicated(plan_.slot(id).table) || plan_.slot(id).storage == Storage::kConstant) return false;
      if (replicated_.insert(id).second) bytes += plan_.slot(id).bytes;
      return bytes <= kMostReplicatedBytes;
    };
    const auto adds_results = [&](const Step& step) {
      if (!is_replicated(step.table)) return true;
      const bool is_pointwise = step.kernel->fused != nullptr || step.is_copy;
      return is_pointwise && step.offsets.empty() && !step.results.empty() &&
             std::all_of(step.results.begin(), step.results.end(),
                         [&](const SlotRef& ref) { return ref.map == kIdentity && add(ref.slot); });
    };
    std::set<SlotId> exchanged;  // each once: after two iterations all is where it was
    const auto adds_exchanged = [&](const std::pair<SlotId, SlotId>& pair) {
      const TableId left = plan_.slot(pair.first).table;
      const TableId right = plan_.slot(pair.second).table;
      if (!exchanged.insert(pair.first).second || !exchanged.insert(pair.second).second) return false;
      if (is_replicated(left) && is_replicated(right)) return add(pair.first) && add(pair.second);
      const int64_t count = plan_.table(made_.table).count();
      return plan_.table(left).count() == count && plan_.table(right).count() == count;
    };
    return for_all_steps(adds_results) && std::all_of(loop_.exchanges.begin(), loop_.exchanges.end(), adds_exchanged);
  }

  // Slots that share bytes of the arena are not carried. Replicated ones are each thread's own in any case; the others
  // are where shard i of one has bytes of another shard of another one.
  void find_apart() {
    std::set<SlotId> used = replicated_;
    for_all_steps([&](const Step& step) {
      for (const SlotRef& ref : step.operands) used.insert(ref.slot);
      for (const SlotRef& ref : step.results) used.insert(ref.slot);
      return true;
    });
    for (const auto& [a, b] : loop_.exchanges) used.insert({a, b});
    std::vector<SlotId> order;
    for (const SlotId slot : used) {
      if (slot >= 0 && plan_.slot(slot).storage == Storage::kArena && end_of(slot) > plan_.slot(slot).offset)
        order.push_back(slot);
    }
    std::sort(order.begin(), order.end(),
              [&](SlotId a, SlotId b) { return plan_.slot(a).offset < plan_.slot(b).offset; });
    for (size_t first = 0; first < order.size();) {
      int64_t end = end_of(order[first]);
      size_t behind = first + 1;
      for (; behind < order.size() && plan_.slot(order[behind]).offset < end; ++behind)
        end = std::max(end, end_of(order[behind]));
      if (behind > first + 1) note_shared({order.begin() + static_cast<std::ptrdiff_t>(first), behind - first});
      first = behind;
    }
  }

  [[nodiscard]] int64_t end_of(SlotId id) const {
    const Slot& slot = plan_.slot(id);
    return slot.offset + slot.stride * plan_.table(slot.table).count();
  }

  // Each of them shares bytes with another one.
  void note_shared(std::span<const SlotId> slots) {
    std::vector<SlotId> of_shards;
    for (const SlotId slot : slots) {
      if (replicated_.count(slot) > 0)
        lives_in_one_iteration_.insert(slot);
      else
        of_shards.push_back(slot);
    }
    const auto has_bytes_of_first = [&](SlotId id) {
      const Slot& a = plan_.slot(id);
      const Slot& b = plan_.slot(of_shards.front());
      return a.offset == b.offset && a.stride == b.stride && end_of(id) == end_of(of_shards.front());
    };
    if (!std::all_of(of_shards.begin(), of_shards.end(), has_bytes_of_first))
      apart_.insert(of_shards.begin(), of_shards.end());
  }

  // Behind the scratch of the steps.
  bool place_own() {
    const int64_t begin = made_.scratch_bytes;
    const auto place = [&](SlotId slot, bool is_of_all, bool is_carried) {
      made_.own.push_back({slot, made_.scratch_bytes, is_of_all, is_carried});
      made_.scratch_bytes += core::round_up(plan_.slot(slot).bytes, tensor::kBufferAlignment);
      return made_.scratch_bytes - begin <= kMostOwnBytes;
    };
    return std::all_of(replicated_.begin(), replicated_.end(),
                       [&](SlotId slot) { return place(slot, true, lives_in_one_iteration_.count(slot) == 0); }) &&
           std::all_of(apart_.begin(), apart_.end(), [&](SlotId slot) { return place(slot, false, false); });
  }

  void add_costs(int block, LoopCost& cost) {
    for (const Step& step : steps(block)) {
      cost.add(step, plan_.table(step.table).count());
      made_.scratch_bytes = std::max(made_.scratch_bytes, step.kernel->scratch_bytes);
    }
  }

  const Plan& plan_;
  const ExchangedSlots& exchanged_;
  const Step& loop_;
  std::set<SlotId> replicated_;
  std::set<SlotId> apart_;
  std::set<SlotId> lives_in_one_iteration_;  // of the replicated ones
  ShardWhileStep made_;
};

}  // namespace

void find_shard_whiles(Plan& plan) {
  const ExchangedSlots exchanged(plan);
  for (Block& block : plan.blocks) {
    for (Step& step : block.steps) {
      if (step.kind == StepKind::kWhile) step.by_shard = LoopFinder(plan, exchanged, step).find();
    }
  }
}

}  // namespace meshd::compile
