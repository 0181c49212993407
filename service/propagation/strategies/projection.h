// The sharding projection of an op: axes of factors in place of axes of dimensions. Shardy's sharding_projection.h.
//
// Invariant: as long as no factor has grown, unproject() inverts project().
//
// Steps of project() for one dimension, whose factors are listed major first:
//   1. A factor that is not minor-most takes from the front of the axes what divides the rest of its size. An axis is
//      split where only a part of it divides.
//   2. Where such a factor is not full and axes are left, they are its overflow, and the factors behind are closed.
//   3. The minor-most factor takes all axes that are left; it may be uneven.
//
// Examples:
//   mesh a=4, 64 rows [{"a"}] = factors 2 and 32:  2 has "a":(1)2, 32 has "a":(2)2
//   mesh x=8, 48 rows [{"x"}] = factors 6 and 8:   6 has "x":(1)2 and overflow "x":(2)4, 8 has none and is closed;
//     the reshape of 12x48 [{}, {"x"}] to 12x6x8 therefore gives [{}, {"x":(1)2}, {}]
//   mesh a=4, b=2, [{"a", "b"}] = factors 3 and 8: 3 has none and overflow "a", "b"
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "service/propagation/graph/axis_list.h"
#include "service/propagation/graph/open_sharding.h"
#include "service/sharding/factor_rule.h"

namespace meshd::propagation {

/// The axes of one factor in one tensor.
struct FactorAxes {
  int factor = 0;
  AxisList axes;
  /// Axes that do not divide this factor's size; they stay in the dimension and block all factors behind.
  AxisList overflow;
  bool closed = false;
  bool minor_most = false;  ///< last factor of its dimension: need not be divided evenly
};

struct TensorProjection {
  std::vector<FactorAxes> factors;
  AxisList replicated;
  AxisList unreduced;

  [[nodiscard]] FactorAxes* find(int factor);
  [[nodiscard]] const FactorAxes* find(int factor) const;
};

/// All tensors of one op instance.
struct Projection {
  std::vector<TensorProjection> operands;
  std::vector<TensorProjection> results;
};

/// The projection of one tensor. `sharding` may be null: then all factors are open and empty.
TensorProjection project(const sharding::TensorFactors& factors, const OpenSharding* sharding,
                         const sharding::FactorRule& rule, const mesh::Mesh& mesh);

/// The inverse of project(). Axes behind a factor that is not full are dropped: they would need a strided view.
OpenSharding unproject(const TensorProjection& tensor, const sharding::TensorFactors& factors,
                       const sharding::FactorRule& rule, int mesh_row, const mesh::Mesh& mesh);

}  // namespace meshd::propagation
