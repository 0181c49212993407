// Shardy's own collectives and data_flow_edge, as its passes print them: on global values each is a reshard of its
// operand, whose axes are given redundantly.
#pragma once

#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Rows of sdy.all_gather, all_slice, all_to_all, all_reduce, reduce_scatter, collective_permute, sharded_to_unreduced,
/// replicated_to_unreduced, data_flow_edge. The result's sharding is attribute `sharding` (`out_sharding` in text).
std::vector<OpDef> sdy_collective_rows();

}  // namespace meshd::ops
