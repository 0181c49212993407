// What a kernel has left in its scratch for calls that follow on the same scratch.
#pragma once

#include <cstddef>
#include <string_view>

namespace meshd::kernels {

/// An operand that they have in common, packed in the order in which their loops read it. The scratch's owner keeps
/// this beside the scratch, and starts a new one where an operand may have changed. One thread at a time.
struct PackedOperand {
  const std::byte* of = nullptr;  ///< where the operand is; null: none is packed
  std::string_view by;            ///< whose loops have packed it: gemm_choice()
};

}  // namespace meshd::kernels
