#include "service/program/gradient/dead_ops.h"

#include <algorithm>
#include <unordered_set>

#include "service/ir/walk.h"
#include "service/ops/op_def.h"

namespace meshd::program {
namespace {

using Values = std::unordered_set<ir::ValueId>;

class DeadOps {
 public:
  DeadOps(const ir::Function& function, UnreadEffects effects) : function_(function), effects_(effects) {}

  // `live` gets what the region reads.
  void run(ir::Region& region, Values& live) {
    std::vector<ir::Op> kept;
    for (size_t i = region.ops.size(); i-- > 0;) {
      ir::Op& op = region.ops[i];
      const bool is_terminator = i + 1 == region.ops.size();
      const bool is_read =
          std::any_of(op.results.begin(), op.results.end(), [&](ir::ValueId id) { return live.contains(id); });
      if (!is_terminator && !is_read && !(effects_ == UnreadEffects::kKept && has_effects(op))) continue;
      live.insert(op.operands.begin(), op.operands.end());
      for (ir::Region& nested : op.regions) run(nested, live);
      kept.push_back(std::move(op));
    }
    std::reverse(kept.begin(), kept.end());
    region.ops = std::move(kept);
  }

 private:
  [[nodiscard]] bool has_effects(const ir::Op& op) const {
    bool found = false;
    ir::walk(op, [&](const ir::Op& inner) { found = found || has_effect(function_, inner); });
    return found;
  }

  const ir::Function& function_;
  UnreadEffects effects_;
};

}  // namespace

bool has_effect(const ir::Function& function, const ir::Op& op) {
  const ops::OpDef& def = ops::op(op.code);
  if (ops::role_of(def.body) == ops::Structural::kReturn) return false;
  const ops::OpInstance instance(function, op);
  return ops::has_effect(def, instance.view);
}

void remove_dead_ops(const ir::Function& function, ir::Region& region, UnreadEffects effects) {
  Values live;
  DeadOps(function, effects).run(region, live);
}

}  // namespace meshd::program
