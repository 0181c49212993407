#include "service/ops/reduction/top_k_rules.h"

#include <span>
#include <vector>

#include "service/ops/checks.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRuleBuilder;

/// -1 for tensors without dimension `dim`.
std::vector<int> where_present(std::span<const ir::Type> types, int dim) {
  std::vector<int> out;
  for (const ir::Type& type : types) out.push_back(dim < type.rank() ? dim : -1);
  return out;
}

}  // namespace

size_t approx_reduced_dim(const OpView& view) {
  const tensor::Dims& in = view.operands[0].dims();
  const tensor::Dims& out = view.results[0].dims();
  if (const ir::Attribute* config = ir::find(attributes_of(view), "mhlo.backend_config")) {
    const auto* entries = config->as<ir::DictAttr>();
    const int64_t dim = entries == nullptr ? -1 : ir::int_or(entries->entries, "reduction_dim", -1);
    if (dim >= 0 && dim < static_cast<int64_t>(in.size())) return static_cast<size_t>(dim);
  }
  for (size_t d = 0; d < in.size() && d < out.size(); ++d) {
    if (in[d] != out[d]) return d;
  }
  return in.empty() ? 0 : in.size() - 1;
}

sharding::FactorRule top_k_rule(const OpView& view) {
  if (view.operands.empty() || view.results.empty() || view.operands[0].rank() != view.results[0].rank()) {
    reject(view, call_text(view) + ": operand 0 and result 0 must have one rank");
  }
  FactorRuleBuilder builder = rule_builder(view);
  const tensor::Dims& in = view.operands[0].dims();
  const tensor::Dims& out = view.results[0].dims();
  for (int dim = 0; dim < static_cast<int>(in.size()); ++dim) {
    const auto at = static_cast<size_t>(dim);
    // Where k is the full size the last dimension is sorted, though its size stays.
    const bool kept = in[at] == out[at] && at + 1 < in.size();
    builder.factor(where_present(view.operands, dim), where_present(view.results, dim), in[at],
                   kept ? FactorKind::kPassThrough : FactorKind::kNeedReplication, !kept);
  }
  return builder.build();
}

sharding::FactorRule approx_top_k_rule(const OpView& view) {
  if (view.operands.empty() || view.results.empty() || view.operands[0].rank() != view.results[0].rank()) {
    return top_k_rule(view);
  }
  FactorRuleBuilder builder = rule_builder(view);
  const tensor::Dims& in = view.operands[0].dims();
  const tensor::Dims& out = view.results[0].dims();
  const size_t reduced = approx_reduced_dim(view);
  const std::vector<int> no_operand(view.operands.size(), -1);
  const std::vector<int> no_result(view.results.size(), -1);
  for (int dim = 0; dim < static_cast<int>(in.size()); ++dim) {
    const auto at = static_cast<size_t>(dim);
    const std::vector<int> operands = where_present(view.operands, dim);
    const std::vector<int> results = where_present(view.results, dim);
    if (in[at] == out[at] && at != reduced) {
      builder.factor(operands, results, in[at]);
      continue;
    }
    builder.factor(operands, no_result, in[at]);
    builder.factor(no_operand, results, out[at], FactorKind::kNeedReplication, true);
  }
  return builder.build();
}

}  // namespace meshd::ops
