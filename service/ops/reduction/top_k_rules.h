// Factor rules of the ops that keep some elements of a dimension: chlo.top_k, and the custom calls that Shardy has
// rules for.
#pragma once

#include <cstddef>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// chlo.top_k, mhlo.topk: dimensions that keep their size pass through, the others are replicated and blocked.
sharding::FactorRule top_k_rule(const OpView& view);
/// ApproxTopK, PartialReduce: the same, but operands share a factor in the dimension that shrinks, and each result has
/// its own.
sharding::FactorRule approx_top_k_rule(const OpView& view);
/// The dimension that an approximate top k reduces: written in the configuration, else the one that the results have
/// less of, else the last.
size_t approx_reduced_dim(const OpView& view);

}  // namespace meshd::ops
