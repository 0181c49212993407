// What a kernel has left in its scratch for calls that follow on the same scratch.
#pragma once

#include <cstddef>

namespace meshd::kernels {

/// A copy of an operand that they have in common, in the order in which their loops read it. The scratch's owner keeps
/// it beside the scratch, and starts a new one where an operand may have changed. One thread at a time.
struct KeptCopy {
  const std::byte* of = nullptr;  ///< where the operand is; null: there is no copy
};

}  // namespace meshd::kernels
