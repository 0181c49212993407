#include "service/sharding/factor_rule.h"

#include <fmt/core.h>

namespace meshd::sharding {
namespace {

/// i, j, ..., z, z_1, z_2, ...
std::string factor_name(int factor) {
  constexpr int kLetterCount = 'z' - 'i' + 1;
  if (factor < kLetterCount) return std::string(1, static_cast<char>('i' + factor));
  return fmt::format("z_{}", factor - kLetterCount + 1);
}

std::string tensors_text(const std::vector<TensorFactors>& tensors) {
  std::string out;
  for (const TensorFactors& dims : tensors) {
    out += out.empty() ? "[" : ", [";
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      if (dim) out += ", ";
      for (const int factor : dims[dim]) out += factor_name(factor);
    }
    out += "]";
  }
  return out;
}

template <typename Predicate>
std::string set_text(const FactorRule& rule, const char* name, Predicate&& member) {
  std::string out;
  for (size_t i = 0; i < rule.factors.size(); ++i) {
    if (member(rule.factors[i])) out += (out.empty() ? "" : ", ") + factor_name(static_cast<int>(i));
  }
  return out.empty() ? out : std::string(" ") + name + "={" + out + "}";
}

void map_dims(std::vector<TensorFactors>& tensors, const std::vector<int>& dims, int factor) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= 0) tensors.at(i).at(static_cast<size_t>(dims[i])).push_back(factor);
  }
}

void fill_empty_dims(std::vector<TensorFactors>& tensors, std::vector<Factor>& factors) {
  for (TensorFactors& dims : tensors) {
    for (std::vector<int>& dim : dims) {
      if (!dim.empty()) continue;
      dim.push_back(static_cast<int>(factors.size()));
      factors.push_back({});
    }
  }
}

}  // namespace

std::string to_sdy(const FactorRule& rule) {
  std::string out = "(" + tensors_text(rule.operands) + ")->(" + tensors_text(rule.results) + ")";
  if (!rule.factors.empty()) out += " {";
  for (size_t i = 0; i < rule.factors.size(); ++i) {
    out += fmt::format("{}{}={}", i ? ", " : "", factor_name(static_cast<int>(i)), rule.factors[i].size);
  }
  if (!rule.factors.empty()) out += "}";
  const auto of_kind = [](FactorKind kind) { return [kind](const Factor& factor) { return factor.kind == kind; }; };
  out += set_text(rule, "reduction", of_kind(FactorKind::kReduction));
  out += set_text(rule, "need_replication", of_kind(FactorKind::kNeedReplication));
  out += set_text(rule, "permutation", of_kind(FactorKind::kPermutation));
  out += set_text(rule, "blocked_propagation", [](const Factor& factor) { return factor.blocked; });
  return rule.is_custom ? out + ", custom" : out;
}

FactorRuleBuilder::FactorRuleBuilder(std::vector<tensor::Dims> operand_dims, std::vector<tensor::Dims> result_dims)
    : operand_dims_(std::move(operand_dims)), result_dims_(std::move(result_dims)) {
  for (const tensor::Dims& dims : operand_dims_) rule_.operands.emplace_back(dims.size());
  for (const tensor::Dims& dims : result_dims_) rule_.results.emplace_back(dims.size());
}

FactorRuleBuilder& FactorRuleBuilder::factor(std::vector<int> operand_dims, std::vector<int> result_dims, int64_t size,
                                             FactorKind kind, bool blocked) {
  const int index = static_cast<int>(rule_.factors.size());
  map_dims(rule_.operands, operand_dims, index);
  map_dims(rule_.results, result_dims, index);
  rule_.factors.push_back({size, kind, blocked});
  return *this;
}

FactorRuleBuilder& FactorRuleBuilder::everywhere(int dim, int64_t size, FactorKind kind, bool blocked) {
  // Scalars (an init value, an index) have no dimensions to take part with.
  std::vector<int> operands;
  std::vector<int> results;
  for (const TensorFactors& tensor : rule_.operands) operands.push_back(tensor.empty() ? -1 : dim);
  for (const TensorFactors& tensor : rule_.results) results.push_back(tensor.empty() ? -1 : dim);
  return factor(std::move(operands), std::move(results), size, kind, blocked);
}

FactorRuleBuilder& FactorRuleBuilder::pointwise() {
  const tensor::Dims& dims = result_dims_.empty() ? operand_dims_.at(0) : result_dims_[0];
  for (size_t dim = 0; dim < dims.size(); ++dim) everywhere(static_cast<int>(dim), dims[dim]);
  return *this;
}

FactorRule FactorRuleBuilder::build() {
  FactorRule rule = rule_;
  fill_empty_dims(rule.operands, rule.factors);
  fill_empty_dims(rule.results, rule.factors);
  return rule;
}

}  // namespace meshd::sharding
