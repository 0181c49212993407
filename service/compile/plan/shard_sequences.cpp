#include "service/compile/plan/shard_sequences.h"

#include <algorithm>

#include "service/compile/plan/shard_uses.h"

namespace meshd::compile {

void find_shard_sequences(Plan& plan) {
  const ExchangedSlots exchanged(plan);
  for (Block& block : plan.blocks) {
    for (size_t first = 0; first < block.steps.size();) {
      size_t end = first;
      if (plan.table(block.steps[first].table).count() > 1) {
        ShardUses sequence(plan, exchanged, block.steps[first].table);
        while (end < block.steps.size() && sequence.take(block.steps[end])) ++end;
      }
      block.steps[first].sequence = static_cast<int32_t>(std::max<size_t>(end - first, 1));
      first = std::max(end, first + 1);
    }
  }
}

}  // namespace meshd::compile
