// Loops of scatters of short runs of elements: what a body does is in the loop, without a kernel call for each run.
// Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Of updates that are far from each other: so many ahead, their first bytes are fetched.
inline constexpr int64_t kPrefetchRuns = 8;
inline constexpr int64_t kPrefetchBytes = 256;

/// Where a run goes, and where it is in the updates; in elements.
struct ElementRun {
  uint32_t array_at = 0;
  uint32_t update_at = 0;
};

/// Updates in order. Of a line: the run of elements at offsets[i] of the array with run i, `update_stride` bytes behind
/// the one before; kOutside is skipped. Else the runs `runs`, all inside.
struct ElementUpdates {
  std::byte* array = nullptr;
  const std::byte* updates = nullptr;
  int64_t update_stride = 0;
  const uint32_t* offsets = nullptr;
  const ElementRun* runs = nullptr;
  int64_t count = 0;
  int64_t run = 1;
};

using ElementUpdate = void (*)(const ElementUpdates& line);

/// Each element becomes op(element, update), with the bits of the op's kernel, for this processor; null where there is
/// no such loop.
ElementUpdate combining_update(ScalarOp op, tensor::DType dtype, int64_t run);

/// Each element becomes the update, of so many bytes; null where no element has so many.
ElementUpdate replacing_update(int64_t elem_size, int64_t run);

}  // namespace meshd::kernels
