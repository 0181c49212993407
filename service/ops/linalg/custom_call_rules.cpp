#include "service/ops/linalg/custom_call_rules.h"

#include <fmt/core.h>

#include <string>

#include "service/ops/checks.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRuleBuilder;

void expect_counts(const OpView& view, std::string_view target, size_t operands, size_t results) {
  if (view.operands.size() == operands && view.results.size() == results) return;
  reject(view, fmt::format("custom_call @{}: has {} operands and {} results, got {} and {}", target, operands, results,
                           view.operands.size(), view.results.size()));
}

void expect_matrices(const OpView& view, std::string_view target) {
  if (view.operands[0].is_tensor() && view.operands[0].rank() >= 2) return;
  reject(view, "custom_call @" + std::string(target) + ": operand 0 must be a matrix or a batch of them, got " +
                   operand_text(view, 0));
}

}  // namespace

sharding::FactorRule eigh_rule(const OpView& view) {
  expect_counts(view, "Eigh", 1, 2);
  expect_matrices(view, "Eigh");
  const tensor::Dims& dims = view.operands[0].dims();
  const int rows = static_cast<int>(dims.size()) - 2;
  FactorRuleBuilder builder = rule_builder(view);
  for (int dim = 0; dim < rows; ++dim) builder.factor({dim}, {dim, dim}, dims[static_cast<size_t>(dim)]);
  builder.factor({rows}, {rows, -1}, dims[static_cast<size_t>(rows)]);
  builder.factor({rows + 1}, {rows + 1, rows}, dims[static_cast<size_t>(rows) + 1]);
  return builder.build();
}

sharding::FactorRule qr_rule(const OpView& view) {
  expect_counts(view, "Qr", 1, 2);
  expect_matrices(view, "Qr");
  const tensor::Dims& dims = view.operands[0].dims();
  const int rows = static_cast<int>(dims.size()) - 2;
  FactorRuleBuilder builder = rule_builder(view);
  for (int dim = 0; dim < rows; ++dim) builder.factor({dim}, {dim, dim}, dims[static_cast<size_t>(dim)]);
  for (int dim = rows; dim < rows + 2; ++dim) {
    builder.factor({dim}, {dim, -1}, dims[static_cast<size_t>(dim)], FactorKind::kNeedReplication);
  }
  builder.factor({-1}, {-1, rows}, view.results[1].dims().back(), FactorKind::kNeedReplication);
  return builder.build();
}

sharding::FactorRule householder_rule(const OpView& view) {
  expect_counts(view, "ProductOfElementaryHouseholderReflectors", 2, 1);
  expect_matrices(view, "ProductOfElementaryHouseholderReflectors");
  const tensor::Dims& dims = view.operands[0].dims();
  const int rows = static_cast<int>(dims.size()) - 2;
  FactorRuleBuilder builder = rule_builder(view);
  for (int dim = 0; dim < rows; ++dim) builder.factor({dim, dim}, {dim}, dims[static_cast<size_t>(dim)]);
  for (int dim = rows; dim < rows + 2; ++dim) {
    builder.factor({dim, -1}, {dim}, dims[static_cast<size_t>(dim)], FactorKind::kNeedReplication);
  }
  builder.factor({-1, rows}, {-1}, view.operands[1].dims().back(), FactorKind::kNeedReplication);
  return builder.build();
}

}  // namespace meshd::ops
