// Factors that an op needs whole though their kind may be cut: windows that overlap, sums over windows.
#pragma once

#include <cstddef>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// True where shards of `factor` alone could not compute shards of the result. `view` is global.
bool keeps_whole(const OpDef& def, const OpView& view, const sharding::FactorRule& rule, size_t factor);

/// A convolution's sum over elements of windows is cut only where there is one window, of all elements in order: elsewhere
/// every shard of the kernel meets every shard of lhs.
bool convolution_keeps_whole(const OpView& view, const sharding::FactorRule& rule, size_t factor);
/// As many windows as elements do not make them independent.
bool select_and_scatter_keeps_whole(const OpView& view, const sharding::FactorRule& rule, size_t factor);

}  // namespace meshd::ops
