#include "service/compile/plan/shared_reads.h"

#include <algorithm>

namespace meshd::compile {
namespace {

bool is_elsewhere(const Plan& plan, TableId table, const SlotRef& ref) {
  if (ref.slot < 0) return false;
  const Slot& slot = plan.slot(ref.slot);
  if (slot.storage == Storage::kConstant || (slot.table == table && ref.map == kIdentity)) return false;
  const std::vector<int32_t>& shards = plan.table(table).shard_of_device;
  const std::vector<int32_t>& held = plan.table(slot.table).shard_of_device;
  for (size_t device = 0; device < shards.size(); ++device) {
    if (shards[device] >= 0 && held[device] != plan.slot_shard(ref, shards[device])) return true;
  }
  return false;
}

}  // namespace

bool reads_other_shards(const Plan& plan) {
  const auto any = [&](TableId table, const std::vector<SlotRef>& refs) {
    return std::any_of(refs.begin(), refs.end(), [&](const SlotRef& ref) { return is_elsewhere(plan, table, ref); });
  };
  for (const Block& block : plan.blocks) {
    for (const Step& step : block.steps) {
      if (step.collective == nullptr && any(step.table, step.operands)) return true;
      if (any(step.table, step.results)) return true;
    }
  }
  return std::any_of(plan.results.begin(), plan.results.end(),
                     [&](const PlanParameter& result) { return is_elsewhere(plan, result.table, result.slot_ref); });
}

}  // namespace meshd::compile
