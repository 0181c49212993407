// The kernels of collective rows: results of one member from the operands of all, in group order. No threads, no
// devices.
#pragma once

#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

std::vector<ir::Type> infer_all_gather(const OpView& view);
std::vector<ir::Type> infer_all_reduce(const OpView& view);
std::vector<ir::Type> infer_all_to_all(const OpView& view);
std::vector<ir::Type> infer_reduce_scatter(const OpView& view);
std::vector<ir::Type> infer_collective_permute(const OpView& view);
std::vector<ir::Type> infer_collective_broadcast(const OpView& view);

/// The results of collectives whose types depend on the size of the groups, which may be dynamic. Throws where the op
/// declares others.
std::vector<ir::Type> gathered_types(const OpView& view, int64_t group_size);
std::vector<ir::Type> exchanged_types(const OpView& view, int64_t group_size);
std::vector<ir::Type> scattered_types(const OpView& view, int64_t group_size);

// The kernels throw where results have other types than a group of this size gives: the text alone does not always say
// how large groups are, and theirs may differ.

/// Member m's operand is block m of the result along all_gather_dim.
PreparedGroup prepare_all_gather(const OpView& local, int64_t group_size);
/// Combined element by element with the op's region, left to right in group order, so that results do not depend on the
/// order of arrival.
PreparedGroup prepare_all_reduce(const OpView& local, int64_t group_size);
/// Block r of every member's operand along split_dimension, in group order along concat_dimension, is member r's
/// result.
PreparedGroup prepare_all_to_all(const OpView& local, int64_t group_size);
/// Block r of what all_reduce would give is member r's result.
PreparedGroup prepare_reduce_scatter(const OpView& local, int64_t group_size);
/// A group is a pair (source, target); the target's result is the source's operand.
PreparedGroup prepare_collective_permute(const OpView& local, int64_t group_size);
/// Everybody's result is the first member's operand.
PreparedGroup prepare_collective_broadcast(const OpView& local, int64_t group_size);

}  // namespace meshd::ops
