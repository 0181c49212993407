// Constant folding: runs one op on small values before the program runs, for computed sizes (exported programs with
// dynamic dimensions). It uses the kernels of the rows, so there is no second arithmetic.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Row-major bytes of an unsharded tensor.
using SmallValue = std::shared_ptr<const std::vector<std::byte>>;

/// Values of more elements are not followed.
inline constexpr int64_t kMostSmallElements = 256;

/// Results of an op on known operands: pointwise ops, kernels of one shard without regions, constants. Types in `view`
/// are static. Nothing where the op is of another kind or a tensor is too large. A shape assertion that does not hold
/// throws invalid_argument.
std::optional<std::vector<SmallValue>> evaluate_small(const OpDef& def, const OpView& view,
                                                      std::span<const SmallValue> operands);

/// Runs all work items of a kernel on this thread.
void run_kernel(const PreparedKernel& kernel, std::span<const std::byte* const> operands,
                std::span<std::byte* const> results);

/// Elements of an integer or boolean tensor as int64.
std::vector<int64_t> integers_of(const ir::Type& type, const std::vector<std::byte>& bytes);

}  // namespace meshd::ops
