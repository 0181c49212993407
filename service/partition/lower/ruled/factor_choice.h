// Chooses the sub-axes for the factors of an op's rule. Pure.
//
// Invariant: all sub-axes are of one view, a sub-axis serves at most one factor, and factors in `unsharded` have none.
// Where a dimension has several factors, a minor one has sub-axes only behind a major one that is sharded to its end.
//
// Steps of choose_factor_sub_axes(), a greedy choice. Shardy (transforms/export/explicit_reshards_util.cc) also ranks
// pairs of factor and axes by the sizes of the tensors that have them; kinds of factors do not count here.
//   1. Take the view of the largest tensor that is sharded.
//   2. Each tensor offers the sub-axes of its dimensions to the factors of its rule, major first.
//   3. The support of an offer is the number of elements of all tensors that make the same offer.
//   4. Grant the offers in the order of their support, up to the first sub-axis that is taken; the first offer in the
//      order of the tensors wins ties. A factor is granted one offer that has free sub-axes.
//   5. Take sub-axes from minor factors behind a major one that is not sharded to its end.
// The result is only a start: least_moving() of sharding_choice.h compares it with other_choices() by bytes.
//
// Example, mesh x=4, y=2, rule ([i, k], [k, j])->([i, j]) with i=8, j=32, k=16:
//   lhs 8x16 [{x}, {y}], rhs 16x32 [{y}, {x}], result 8x32 [{}, {x}]
//   support: j={x} 512 + 256 = 768, k={y} 128 + 512 = 640, i={x} 128
//   -> j={x}, k={y}, i={}: lhs [{}, {y}], rhs [{y}, {x}], result [{}, {x}], partial over y.
#pragma once

#include <span>
#include <vector>

#include "service/partition/shard_layout.h"
#include "service/sharding/factor_rule.h"

namespace meshd::partition {

/// A tensor of the op: its dims, and the layout that it has (operands) or that propagation found (results). Its weight
/// in the choice is its number of elements.
struct OpTensor {
  tensor::Dims dims;
  ShardLayout layout;
};

/// Sub-axes of every factor, in the rule's order; all in one view.
struct FactorSubAxes {
  int view = 0;
  std::vector<std::vector<int>> sub_axes;
};

/// The greedy choice. Factors in `unsharded` stay unsharded. A factor that shares a dimension with others takes only
/// sub-axes that divide it. Sub-axes in `taken` (manual axes around) are not used. Tensors: operands then results, in
/// the rule's order.
FactorSubAxes choose_factor_sub_axes(const sharding::FactorRule& rule, std::span<const OpTensor> op_tensors,
                                     std::span<const sharding::MeshView> views, const std::vector<bool>& unsharded,
                                     sharding::SubAxisSet taken);

/// Other candidates: for each tensor the choice in which its own offers come first, and each choice again with idle
/// sub-axes (of factors that stay unsharded) given to a factor that they divide. The same rules hold; some may be
/// equal.
std::vector<FactorSubAxes> other_choices(const sharding::FactorRule& rule, std::span<const OpTensor> op_tensors,
                                         std::span<const sharding::MeshView> views, const std::vector<bool>& unsharded,
                                         sharding::SubAxisSet taken);

/// The layout of a tensor under a choice. Example: factors ([k], [j]) with j={x}, k={y} -> [{y}, {x}].
ShardLayout layout_of(const FactorSubAxes& choice, const sharding::TensorFactors& factors);

}  // namespace meshd::partition
