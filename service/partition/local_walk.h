// Walks over the ops of a local program, nested blocks included, in the order in which they run.
#pragma once

#include <type_traits>

#include "service/partition/local_program.h"

namespace meshd::partition {

/// Calls fn(op) for each op, an op before those of its blocks. The op is mutable where the block is.
template <typename BlockT, typename Fn>
requires std::is_same_v<std::remove_const_t<BlockT>, LocalBlock>
void walk(BlockT& block, const Fn& fn) {
  for (auto& op : block.ops) {
    fn(op);
    for (auto& inner : op.blocks) walk(inner, fn);
  }
}

/// True when `wanted(op)` is true for an op of the block, or of the blocks within.
template <typename Fn>
bool any_op(const LocalBlock& block, const Fn& wanted) {
  for (const LocalOp& op : block.ops) {
    if (wanted(op)) return true;
    for (const LocalBlock& inner : op.blocks) {
      if (any_op(inner, wanted)) return true;
    }
  }
  return false;
}

/// Calls fn(id) for each read of a value: operands, and what the block and those within return.
template <typename Fn>
void for_each_use(const LocalBlock& block, const Fn& fn) {
  for (const LocalId id : block.results) fn(id);
  for (const LocalOp& op : block.ops) {
    for (const LocalId id : op.operands) fn(id);
    for (const LocalBlock& inner : op.blocks) for_each_use(inner, fn);
  }
}

}  // namespace meshd::partition
