// Factor rules over the shapes of an op instance.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Dimensions of operands and results; tokens and tuples have none.
inline sharding::FactorRuleBuilder rule_builder(const OpView& view) {
  std::vector<tensor::Dims> operands;
  std::vector<tensor::Dims> results;
  for (const ir::Type& type : view.operands) operands.push_back(type.is_tensor() ? type.dims() : tensor::Dims{});
  for (const ir::Type& type : view.results) results.push_back(type.is_tensor() ? type.dims() : tensor::Dims{});
  return sharding::FactorRuleBuilder(std::move(operands), std::move(results));
}

/// The rule that an op's shards keep to where it is lowered: its row's, since its kernel knows no other;
/// sdy.sharding_rule says how shardings propagate. Of an op that nothing runs, as rule_of().
std::optional<sharding::FactorRule> lowering_rule_of(const OpDef& def, const OpView& view);
/// Whether the text gives the op a rule of its own, by which shardings propagate.
bool has_sharding_rule(const OpView& view);

/// True when dimension `dim` of operand 0 has `factor`.
inline bool has_factor(const sharding::FactorRule& rule, size_t dim, size_t factor) {
  const std::vector<int>& factors = rule.operands[0][dim];
  return std::find(factors.begin(), factors.end(), static_cast<int>(factor)) != factors.end();
}

}  // namespace meshd::ops
