// The dot family: dot_general and dot are one kernel. Private to dot*.cpp.
#pragma once

#include <optional>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

using DotDims = ProductDims;

/// dot_dimension_numbers of a dot_general.
DotDims dot_general_dims(const OpView& view);
/// What dot means for these ranks: the last dim of lhs with the first of rhs.
DotDims dot_dims(const OpView& view);

/// Dims of an operand of this rank that are neither batch nor contracted, ascending.
std::vector<int64_t> free_dims(int64_t rank, const std::vector<int64_t>& batch, const std::vector<int64_t>& contract);

std::vector<ir::Type> infer_dot_general(const OpView& view);
std::vector<ir::Type> infer_dot(const OpView& view);
sharding::FactorRule dot_general_rule(const OpView& view);
sharding::FactorRule dot_rule(const OpView& view);
PreparedKernel prepare_dot_general(const OpView& local);
PreparedKernel prepare_dot(const OpView& local);
/// Fuse::summed of dot_general.
std::optional<PreparedKernel> prepare_dot_sum(const OpView& local, int64_t parts);

/// Fuse::of_transposed and Fuse::as_transposed of dot_general.
std::optional<ir::AttributeList> dot_of_transposed(const OpView& op, size_t operand,
                                                   const std::vector<int64_t>& permutation);
std::optional<ir::AttributeList> dot_as_transposed(const OpView& op, const std::vector<int64_t>& permutation);
/// Whether the kernel reads both operands in place.
bool dot_reads_in_place(const OpView& local, const DotDims& dims, size_t operand);

}  // namespace meshd::ops
