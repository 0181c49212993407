// Which sub-axes each factor of an op's rule gets. Pure.
#pragma once

#include <span>
#include <vector>

#include "service/partition/shard_layout.h"
#include "service/sharding/factor_rule.h"

namespace meshd::partition {

/// A tensor of the op: its dims and where it lies or should lie; its weight in the choice is its size.
struct OpTensor {
  tensor::Dims dims;
  ShardLayout layout;
};

/// Sub-axes of every factor, in the rule's order; all in one view.
struct FactorSubAxes {
  int view = 0;
  std::vector<std::vector<int>> sub_axes;
};

/// Greedy: the tensor and factor with the most bytes first; a sub-axis serves one factor. Factors in `uncut` stay
/// whole. A factor that shares a dimension with others is cut only where the cut divides, and a minor one only behind a
/// major one cut to the end. Sub-axes in `taken` (manual axes around) are not used. Tensors: operands then results, in
/// the rule's order.
FactorSubAxes choose_factor_sub_axes(const sharding::FactorRule& rule, std::span<const OpTensor> op_tensors,
                                     std::span<const sharding::MeshView> views, std::span<const bool> uncut,
                                     sharding::SubAxisSet taken);

/// Other choices worth a look: each tensor's own cuts first, and the same with sub-axes that would lie idle (they cut
/// factors that stay whole) given to a factor that they divide. The same rules hold; some may be equal.
std::vector<FactorSubAxes> other_choices(const sharding::FactorRule& rule, std::span<const OpTensor> op_tensors,
                                         std::span<const sharding::MeshView> views, std::span<const bool> uncut,
                                         sharding::SubAxisSet taken);

/// The layout that the chosen sub-axes mean for a tensor.
ShardLayout layout_of(const FactorSubAxes& choice, const sharding::TensorFactors& factors);

}  // namespace meshd::partition
