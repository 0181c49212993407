// The gather and scatter family: both read index tuples, the start of windows of an operand. Private to
// gather_scatter*.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Dimension numbers in one vocabulary. "Slices" is the gather's result or the scatter's updates.
struct WindowDims {
  std::vector<int64_t> offset;            ///< dims of slices that are dims of a window
  std::vector<int64_t> collapsed;         ///< operand dims that windows have no dim for
  std::vector<int64_t> operand_batching;  ///< operand dims that go with ...
  std::vector<int64_t> indices_batching;  ///< ... these of the indices
  std::vector<int64_t> index_map;         ///< operand dim of each number of a tuple
  int64_t index_vector_dim = 0;  ///< dim of the indices along which a tuple extends; their rank: tuples of one number
};

/// An attribute of a gather, which no text has: indices are promised to be inside (JAX's PROMISE_IN_BOUNDS), so that
/// its derivative is a scatter at the same indices, which skips those outside. Without it windows are clamped there,
/// too.
inline constexpr std::string_view kPromisedInside = "meshd.promised_inside";

WindowDims gather_dims(const OpView& view);
WindowDims scatter_dims(const OpView& view);
/// The attributes of a gather and a scatter that have these dimensions; those of a scatter say nothing of its indices.
ir::AttributeList gather_attributes(const WindowDims& dims, const std::vector<int64_t>& slice_sizes);
ir::AttributeList scatter_attributes(const WindowDims& dims);

/// Dims of the operand that windows have a dim for, ascending: the i-th is that of offset[i].
std::vector<int64_t> window_dims(const WindowDims& dims, int64_t operand_rank);
/// Dims of slices that are dims of tuples, ascending.
std::vector<int64_t> batch_dims(const WindowDims& dims, int64_t slices_rank);
/// Dims of the indices without the tuple's own, ascending: the i-th is that of batch_dims[i].
std::vector<int64_t> tuple_dims(const WindowDims& dims, int64_t indices_rank);

/// The most that an index can be where a window of a dimension begins: of narrow types, as far as they reach.
/// Example: windows of 1 of 200 elements: 199, of i8 127.
inline int64_t most_start(int64_t size, int64_t window, tensor::DType index) {
  return static_cast<int64_t>(std::min(static_cast<uint64_t>(size - window), tensor::largest_value(index)));
}

/// A scatter's operands are N inputs, the indices, N updates.
size_t scatter_count(const OpView& view);
/// The body of a scatter returns its updates unchanged.
bool only_replaces(const OpView& view);

/// What a gather says of its dimensions, whatever the sizes of its windows are; returns the rank of the result.
int64_t expect_gather_dims(const OpView& view, const WindowDims& dims);
std::vector<ir::Type> infer_gather(const OpView& view);
std::vector<ir::Type> infer_scatter(const OpView& view);
sharding::FactorRule gather_rule(const OpView& view);
sharding::FactorRule scatter_rule(const OpView& view);
PreparedKernel prepare_gather(const OpView& local);
/// A reduction of all tuples of a gather with windows that are contiguous rows.
std::optional<PreparedKernel> prepare_gathered_reduction(const OpView& gather, const OpView& reduction);
PreparedKernel prepare_scatter(const OpView& local);
ir::AttributeList localize_gather(const OpView& global, const OpView& local);
/// Adds which operand dims windows have one index of: a shard counts those from where it begins.
ir::AttributeList localize_scatter(const OpView& global, const OpView& local);

/// Reverse mode (gather_scatter_vjp.cpp). A scatter has a derivative where its body is one of add, multiply, maximum
/// and minimum, or replaces.
std::vector<Contribution> vjp_gather(const Vjp& v);
std::vector<Contribution> vjp_scatter(const Vjp& v);

}  // namespace meshd::ops
