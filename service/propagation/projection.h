// Shardings of one op's tensors seen through its rule: axes of factors in place of axes of dimensions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "service/propagation/axis_list.h"
#include "service/propagation/open_sharding.h"
#include "service/sharding/factor_rule.h"

namespace meshd::propagation {

/// What one tensor says about one factor.
struct FactorAxes {
  int factor = 0;
  AxisList axes;
  /// Axes that did not fit this factor's size; they stay in the dimension and block everything behind.
  AxisList overflow;
  bool closed = false;
  bool minor_most = false;  ///< last factor of its dimension: need not be divided evenly
};

/// One tensor. Example: 64 rows cut by "x"=4, reshaped from 2x32, rule ([ij]): i=2 has "x":(1)2, j=32 has "x":(2)2.
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

/// Axes of a dimension are dealt to its factors, major first, until each is full; an axis is split where a factor takes
/// a part. `sharding` may be null: then all factors are open and empty.
TensorProjection project(const sharding::TensorFactors& factors, const OpenSharding* sharding,
                         const sharding::FactorRule& rule, const mesh::Mesh& mesh);

/// The way back. Axes behind a factor that is not full are left out: they would need a strided view.
OpenSharding unproject(const TensorProjection& tensor, const sharding::TensorFactors& factors,
                       const sharding::FactorRule& rule, int mesh_row, const mesh::Mesh& mesh);

}  // namespace meshd::propagation
