// A plan as text: a line a step, with storage.
#include <fmt/core.h>

#include "service/compile/plan/plan.h"

namespace meshd::compile {
namespace {

const char* storage_name(Storage storage) {
  switch (storage) {
    case Storage::kArena:
      return "arena";
    case Storage::kOwn:
      return "own";
    case Storage::kArgument:
      return "argument";
    case Storage::kConstant:
      return "constant";
  }
  return "";
}

std::string slot_text(const Plan& plan, const SlotRef& ref) {
  const Slot& slot = plan.slot(ref.slot);
  std::string out = storage_name(slot.storage);
  if (slot.storage == Storage::kArgument) {
    out += std::to_string(slot.argument);
  } else if (slot.storage == Storage::kArena) {
    out += fmt::format("+{}", slot.offset);
  } else {
    out += fmt::format("#{}", ref.slot);
  }
  return ref.map == kIdentity ? out : out + "[map]";
}

void block_text(const Plan& plan, BlockId id, int depth, std::string& out) {
  for (const Step& step : plan.block(id).steps) {
    out.append(static_cast<size_t>(depth) * 2, ' ');
    for (size_t i = 0; i < step.results.size(); ++i) out += (i == 0 ? "" : ", ") + slot_text(plan, step.results[i]);
    out += (step.results.empty() ? "" : " = ") + step.name + "(";
    for (size_t i = 0; i < step.operands.size(); ++i) out += (i == 0 ? "" : ", ") + slot_text(plan, step.operands[i]);
    out += fmt::format(") x{}{}", plan.table(step.table).count(), step.small ? ", as one step" : "");
    if (step.by_shard != nullptr) out += ", shard by shard";
    if (step.bound != nullptr) out += ", as bound calls";
    out += step.sequence > 1 ? fmt::format(", {} steps shard by shard\n", step.sequence) : "\n";
    for (const auto& [a, b] : step.exchanges) {
      out.append(static_cast<size_t>(depth) * 2 + 2, ' ');
      out += "exchange " + slot_text(plan, {a, kIdentity, 0}) + " " + slot_text(plan, {b, kIdentity, 0}) + "\n";
    }
    for (int64_t b = 0; b < step.block_count; ++b) {
      out.append(static_cast<size_t>(depth) * 2 + 1, ' ');
      out += fmt::format("block {}\n", b);
      block_text(plan, step.blocks_first + static_cast<BlockId>(b), depth + 1, out);
    }
  }
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string out;
  block_text(plan, 0, 0, out);
  out += fmt::format("arena {}, own {}, scratch {}, peak {}\n", plan.memory.arena, plan.memory.own, plan.memory.scratch,
                     plan.peak_bytes);
  return out;
}

}  // namespace meshd::compile
