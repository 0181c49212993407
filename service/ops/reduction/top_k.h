// The largest elements of a dimension: chlo.top_k, and the equivalent custom calls.
#pragma once

#include "service/ops/op_def.h"

namespace meshd::ops {

/// @mhlo.topk: as chlo.top_k, but `k` and `largest` are in the dictionary mhlo.attributes.
PreparedKernel prepare_mhlo_top_k(const OpView& local);
void check_mhlo_top_k(const OpView& view);

/// @ApproxTopK and @PartialReduce where they are exact, which they always may be: inputs sorted by the called
/// comparator along the reduced dimension, then as many of the first as the results have. The comparator is region 0.
PreparedKernel prepare_approx_top_k(const OpView& local);
void check_approx_top_k(const OpView& view);

}  // namespace meshd::ops
