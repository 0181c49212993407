// Pointwise ops on values that are known when a plan is made, for constant folding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// An operand: `count` elements, or one that all are.
struct KnownOperand {
  tensor::DType dtype = tensor::DType::kFloat32;
  bool is_element = false;
  std::span<const std::byte> bytes;
};

/// The `count` elements that the op gives, by the kernels of a run. Throws as emit_scalar().
std::vector<std::byte> evaluate(const ScalarMath& math, const OpView& view, std::span<const KnownOperand> operands,
                                int64_t count);

}  // namespace meshd::ops
