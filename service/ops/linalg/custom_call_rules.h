// Factor rules of the custom-call targets that Shardy has rules for.
#pragma once

#include "service/ops/op_def.h"

namespace meshd::ops {

/// ApproxTopK, mhlo.topk: dimensions that keep their size pass through, the others are replicated and blocked.
sharding::FactorRule top_k_rule(const OpView& view);
/// The same, but operands share a factor in the dimension that shrinks, and each result has its own.
sharding::FactorRule approx_top_k_rule(const OpView& view);
/// The dimension that an approximate top k reduces: written in the configuration, else the one that the results have
/// less of, else the last.
size_t approx_reduced_dim(const OpView& view);
/// Eigh: batch dimensions, and both matrix dimensions to the vectors, the last one also to the values.
sharding::FactorRule eigh_rule(const OpView& view);
/// Qr: batch dimensions, and both matrix dimensions to the first result.
sharding::FactorRule qr_rule(const OpView& view);
/// ProductOfElementaryHouseholderReflectors: batch dimensions, and both matrix dimensions of the first operand.
sharding::FactorRule householder_rule(const OpView& view);

}  // namespace meshd::ops
