// Walks over the ops of a program, nested regions included: MLIR's Operation::walk.
//
// `fn` is called as fn(op), or as fn(op, enclosing) where `enclosing` are the ops around it, outermost first, as a span
// of pointers. It returns nothing, or a WalkResult. The op is mutable where the region is; a visitor may change the op
// (in pre-order its regions too), but not the list of ops that it is in: rewrite_ops is for that.
//
// Example, a region with %0 = add; %1 = while cond {%2 = compare; return} do {%3 = multiply; return}; return:
//   pre-order                   add  while  compare  return  multiply  return  return
//   post-order                  add  compare  return  multiply  return  while  return
//   pre-order, kSkip at while   add  while  return
//   enclosing at multiply       {while}
//
//   int64_t calls = 0;
//   ir::walk(main.body, [&](const ir::Op& op) { calls += op.name == "func.call"; });
#pragma once

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "service/ir/program.h"

namespace meshd::ir {

/// When an op is visited: before the ops of its regions, or after them.
enum class WalkOrder { kPreOrder, kPostOrder };

/// What a visitor requests: continue, skip the op's regions (pre-order only), or end the walk.
enum class WalkResult { kAdvance, kSkip, kInterrupt };

namespace walk_detail {

template <typename OpT, typename Fn>
WalkResult visit(OpT& op, Fn& fn, const std::vector<OpT*>& enclosing) {
  const auto call = [&] {
    if constexpr (std::is_invocable_v<Fn&, OpT&>) {
      return fn(op);
    } else {
      return fn(op, std::span<OpT* const>(enclosing));
    }
  };
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    return WalkResult::kAdvance;
  } else {
    return call();
  }
}

template <WalkOrder kOrder, typename OpT, typename Fn>
bool is_interrupted(OpT& op, Fn& fn, std::vector<OpT*>& enclosing) {
  if constexpr (kOrder == WalkOrder::kPreOrder) {
    const WalkResult result = visit(op, fn, enclosing);
    if (result != WalkResult::kAdvance) return result == WalkResult::kInterrupt;
  }
  enclosing.push_back(&op);
  for (auto& region : op.regions) {
    for (auto& inner : region.ops) {
      if (is_interrupted<kOrder>(inner, fn, enclosing)) return true;
    }
  }
  enclosing.pop_back();
  return kOrder == WalkOrder::kPostOrder && visit(op, fn, enclosing) == WalkResult::kInterrupt;
}

}  // namespace walk_detail

/// Visits the ops of a region (const or not) in the order of the text. Returns true when the visitor interrupted.
template <WalkOrder kOrder = WalkOrder::kPreOrder, typename RegionT, typename Fn>
requires std::is_same_v<std::remove_const_t<RegionT>, Region>
bool walk(RegionT& region, Fn&& fn) {
  using OpT = std::conditional_t<std::is_const_v<RegionT>, const Op, Op>;
  std::vector<OpT*> enclosing;
  for (OpT& op : region.ops) {
    if (walk_detail::is_interrupted<kOrder>(op, fn, enclosing)) return true;
  }
  return false;
}

/// The same for one op and the ops within it.
template <WalkOrder kOrder = WalkOrder::kPreOrder, typename OpT, typename Fn>
requires std::is_same_v<std::remove_const_t<OpT>, Op>
bool walk(OpT& op, Fn&& fn) {
  std::vector<OpT*> enclosing;
  return walk_detail::is_interrupted<kOrder>(op, fn, enclosing);
}

/// The first op, in pre-order, for which `wanted(op)` is true, or null. It points into `region`.
template <typename Fn>
const Op* first_op(const Region& region, Fn&& wanted) {
  const Op* found = nullptr;
  walk(region, [&](const Op& op) {
    if (!wanted(op)) return WalkResult::kAdvance;
    found = &op;
    return WalkResult::kInterrupt;
  });
  return found;
}

/// True when `wanted(op)` is true for an op of the region, or of the regions within.
template <typename Fn>
bool any_op(const Region& region, Fn&& wanted) {
  return first_op(region, std::forward<Fn>(wanted)) != nullptr;
}

/// Rewrites a region and the regions within, innermost first: `fn(Op&& op, std::vector<Op>& out)` appends to `out` what
/// takes the op's place. Example: `add` replaced by `subtract, negate` inside a while gives a while whose body has the
/// two ops, and then fn gets the while itself.
template <typename Fn>
void rewrite_ops(Region& region, Fn&& fn) {
  std::vector<Op> old = std::exchange(region.ops, {});
  region.ops.reserve(old.size());
  for (Op& op : old) {
    for (Region& nested : op.regions) rewrite_ops(nested, fn);
    fn(std::move(op), region.ops);
  }
}

}  // namespace meshd::ir
