// The blocks of registers in which a loop of small steps is executed (kernels::SmallWhile): one of each piece of each
// shard, in the run's scratch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "service/compile/plan/plan.h"
#include "service/kernels/fused/small_while.h"

namespace meshd::device {

/// One thread. The form, the scratch and what the pointers point to must outlive it.
class SmallWhileBlocks {
 public:
  /// `table`: the run's pointers, by slot, then shard.
  SmallWhileBlocks(const compile::SmallWhileStep& form, std::byte* scratch, const std::vector<std::byte*>& table)
      : form_(form), loop_(*form.loop), scratch_(scratch) {
    memory_.reserve(form.pointers.size());
    for (const int64_t pointer : form.pointers) memory_.push_back(table[static_cast<size_t>(pointer)]);
  }

  void load() {
    for_each([&](std::byte* block, int64_t piece, std::byte* const* values) { loop_.load(block, piece, values); });
  }
  /// At most `most` iterations of each shard. One whose condition is false stays as it is while others go on.
  kernels::SmallWhile::Outcome run(int64_t most) {
    kernels::SmallWhile::Outcome out{.is_over = true};
    for_each([&](std::byte* block, int64_t piece, std::byte* const* values) {
      const kernels::SmallWhile::Outcome one = loop_.run(block, piece, values, most);
      out.iterations = std::max(out.iterations, one.iterations);
      out.is_over = out.is_over && one.is_over;
    });
    return out;
  }
  void store() {
    for_each([&](std::byte* block, int64_t piece, std::byte* const* values) { loop_.store(block, piece, values); });
  }

 private:
  template <class Use>
  void for_each(const Use& use) {
    for (int64_t shard = 0; shard < form_.shard_count; ++shard) {
      std::byte* const* const values = memory_.data() + shard * form_.value_count;
      for (int64_t piece = 0; piece < loop_.pieces(); ++piece)
        use(scratch_ + (shard * loop_.pieces() + piece) * loop_.block_bytes(), piece, values);
    }
  }

  const compile::SmallWhileStep& form_;
  const kernels::SmallWhile& loop_;
  std::byte* const scratch_;
  std::vector<std::byte*> memory_;  // [shard][value]
};

}  // namespace meshd::device
