// The computation of a region of scalars, written over whole tensors: what a reduction, a window or a map does to one
// element, to all of them.
//
// Example: {(%a, %b): %m = maximum %a, %b; return %m} over two tensors of 4x8 -> maximum of tensors of 4x8.
#pragma once

#include <vector>

#include "service/ops/rewrites/writer.h"

namespace meshd::ops {

/// Whether a region has only pointwise ops and constants.
bool is_pointwise(const ir::Function& function, const ir::Region& region);
/// What a pointwise region returns of `arguments`, tensors of `dims`, which may be those of scalars. Scalars that the
/// region has or reads from around it are repeated.
std::vector<ir::ValueId> lifted_region(const ir::Region& region, const std::vector<ir::ValueId>& arguments,
                                       const tensor::Dims& dims, Writer& writer);

}  // namespace meshd::ops
