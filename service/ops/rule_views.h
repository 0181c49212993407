// Factor rules over the shapes of an op instance.
#pragma once

#include <algorithm>
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

/// True when dimension `dim` of operand 0 has `factor`.
inline bool has_factor(const sharding::FactorRule& rule, size_t dim, size_t factor) {
  const std::vector<int>& factors = rule.operands[0][dim];
  return std::find(factors.begin(), factors.end(), static_cast<int>(factor)) != factors.end();
}

}  // namespace meshd::ops
