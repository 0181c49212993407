// A factor-based sharding rule (Shardy's OpShardingRule), einsum-like: every dimension of an op's operands and results
// is a list of factors, and dimensions with a factor in common are sharded alike. Propagation and partition read
// nothing else about an op. Shardy: transforms/propagation/op_sharding_rule_registry.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "service/tensor/shape.h"

namespace meshd::sharding {

/// What sharding a factor means for the op.
enum class FactorKind : uint8_t {
  kPassThrough,      ///< same axes in operands and results: nothing to do
  kReduction,        ///< in operands only: results are partial and need an all-reduce
  kNeedReplication,  ///< the op needs it unsharded
  kPermutation,      ///< shardable if neighbours exchange edges
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::kPassThrough;
  bool blocked = false;  ///< shardings do not propagate along it
  friend bool operator==(const Factor&, const Factor&) = default;
};

/// Factor indices of each dimension of one tensor, major first; each has at least one, dimensions of size 1 too.
/// Example: reshape 2x32 -> 64 has factors i=2, j=32: operand ([i], [j]), result ([i, j]).
using TensorFactors = std::vector<std::vector<int>>;

struct FactorRule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands;
  std::vector<TensorFactors> results;
  /// Set by sdy.sharding_rule<..., custom>.
  bool is_custom = false;

  friend bool operator==(const FactorRule&, const FactorRule&) = default;
};

/// ([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}: as Shardy prints it.
std::string to_sdy(const FactorRule& rule);

/// Builds rules a line at a time, as OpShardingRuleBuilder does. Example, matrix product 8x16 . 16x32:
///   FactorRuleBuilder b({{8,16},{16,32}}, {{8,32}});  b.factor({0,-1},{0},8); b.factor({-1,1},{1},32);
///   b.factor({1,0},{-1},16,kReduction); b.build();
class FactorRuleBuilder {
 public:
  FactorRuleBuilder(std::vector<tensor::Dims> operand_dims, std::vector<tensor::Dims> result_dims);

  /// One factor: its dimension in each operand and each result, -1 where a tensor does not have it.
  FactorRuleBuilder& factor(std::vector<int> operand_dims, std::vector<int> result_dims, int64_t size,
                            FactorKind kind = FactorKind::kPassThrough, bool blocked = false);
  /// A factor with the same dimension `dim` in every operand and result.
  FactorRuleBuilder& everywhere(int dim, int64_t size, FactorKind kind = FactorKind::kPassThrough,
                                bool blocked = false);
  /// All operands and results have one shape: a factor for each dimension.
  FactorRuleBuilder& pointwise();
  /// Dimensions without a factor get one of size 1 of their own (Shardy does so when a rule is built).
  [[nodiscard]] FactorRule build();

 private:
  std::vector<tensor::Dims> operand_dims_;
  std::vector<tensor::Dims> result_dims_;
  FactorRule rule_;
};

}  // namespace meshd::sharding
