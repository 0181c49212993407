// Identity elements of the reductions that partition may split over shards.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "service/ir/attribute.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::partition {

/// Bytes of e with op(e, x) == x for all x; nothing where none is known (the factor then stays unsharded).
std::optional<std::vector<std::byte>> identity_element(kernels::ScalarOp op, tensor::DType dtype);

/// True when the constant is the identity of `op` (both zeros count for sums).
bool is_identity(const ir::DenseAttr& constant, kernels::ScalarOp op);

}  // namespace meshd::partition
