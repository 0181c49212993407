#include "service/ops/shard_rules.h"

#include <array>

#include "service/ops/shard_writers.h"

namespace meshd::ops {
namespace {

// Sums over shards are put together by the body where each accumulator has one op with its value. Operands are inputs,
// then init values.
std::optional<Combine> combine_reduce(const OpView& view) {
  const size_t count = view.operands.size() / 2;
  Combine combine;
  combine.ops = combining_ops(view, count);
  if (combine.ops.empty()) return std::nullopt;
  for (size_t i = 0; i < 2 * count; ++i) combine.operand_results.push_back(static_cast<int>(i % count));
  for (size_t i = 0; i < count; ++i) combine.starts.push_back(static_cast<int>(count + i));
  return combine;
}

struct Rule {
  std::string_view name;
  std::optional<Combine> (*combine)(const OpView&) = nullptr;
  OnShardFn on_shard = nullptr;
};

const Rule* rule_named(std::string_view name) {
  static const std::array<Rule, 4> kRules{{
      {"stablehlo.gather", combine_gather, gather_on_shard},
      {"stablehlo.scatter", combine_scatter, scatter_on_shard},
      {"stablehlo.reduce", combine_reduce, nullptr},
      {"stablehlo.dynamic_update_slice", nullptr, dynamic_update_slice_on_shard},
  }};
  for (const Rule& rule : kRules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

}  // namespace

std::optional<Combine> combine_of(const OpDef& def, const OpView& view) {
  if (const Rule* rule = rule_named(def.name); rule != nullptr && rule->combine != nullptr) return rule->combine(view);
  const auto op = def.combine != nullptr ? def.combine(view) : std::nullopt;
  if (!op) return std::nullopt;
  return Combine{{*op}, std::vector<int>(view.operands.size(), 0), {-1}};
}

OnShardFn on_shard_of(const OpDef& def) {
  const Rule* rule = rule_named(def.name);
  return rule == nullptr ? nullptr : rule->on_shard;
}

std::vector<kernels::ScalarOp> combining_ops(const OpView& view, size_t count) {
  if (view.regions.size() != 1 || view.function == nullptr) return {};
  const kernels::TileProgram program = compile_scalar_region(*view.function, view.regions[0]);
  if (program.outputs.size() != count || program.input_count != static_cast<int>(2 * count)) return {};
  std::vector<kernels::ScalarOp> ops;
  for (size_t i = 0; i < count; ++i) {
    const std::array<uint16_t, 2> pair{static_cast<uint16_t>(i), static_cast<uint16_t>(count + i)};
    for (const kernels::TileInstruction& made : program.instructions) {
      if (made.result != program.outputs[i] || made.kernel == nullptr || kernels::operand_count(made.op) != 2) continue;
      const bool is_straight = made.operands[0] == pair[0] && made.operands[1] == pair[1];
      const bool is_swapped = made.operands[0] == pair[1] && made.operands[1] == pair[0];
      if (kernels::is_associative(made.op) && (is_straight || is_swapped)) ops.push_back(made.op);
    }
    if (ops.size() != i + 1) return {};
  }
  return ops;
}

}  // namespace meshd::ops
