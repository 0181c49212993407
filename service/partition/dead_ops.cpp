#include "service/partition/dead_ops.h"

#include <algorithm>
#include <utility>

#include "service/ops/op_def.h"
#include "service/partition/local_walk.h"

namespace meshd::partition {
namespace {

bool has_effect(const LocalOp& op) {
  if (op.kind == LocalKind::kEffect) return op.effect.has_side_effect;
  return op.kind == LocalKind::kOp && op.def != nullptr && op.def->has_effect;
}

bool must_happen(const LocalOp& op) {
  return has_effect(op) || std::any_of(op.blocks.begin(), op.blocks.end(),
                                       [](const LocalBlock& inner) { return any_op(inner, has_effect); });
}

// From the last op to the first: what reads a value is behind what makes it.
void drop_dead(LocalBlock& block, std::vector<bool>& is_read) {
  const auto mark = [&](const std::vector<LocalId>& ids) {
    for (const LocalId id : ids) is_read[static_cast<size_t>(id)] = true;
  };
  mark(block.results);
  std::vector<LocalOp> live;
  for (auto op = block.ops.rbegin(); op != block.ops.rend(); ++op) {
    const bool is_live = must_happen(*op) || std::any_of(op->results.begin(), op->results.end(),
                                                         [&](LocalId id) { return is_read[static_cast<size_t>(id)]; });
    if (!is_live) continue;
    mark(op->operands);
    for (LocalBlock& inner : op->blocks) drop_dead(inner, is_read);
    live.push_back(std::move(*op));
  }
  std::reverse(live.begin(), live.end());
  block.ops = std::move(live);
}

}  // namespace

void drop_dead_ops(LocalProgram& program) {
  std::vector<bool> is_read(program.values.size());
  drop_dead(program.body, is_read);
}

}  // namespace meshd::partition
