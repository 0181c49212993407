// A factor rule builder over the shapes of an op instance.
#pragma once

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

}  // namespace meshd::ops
