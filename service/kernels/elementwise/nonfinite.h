// Which values are no finite numbers: for runs that look for the step that makes the first of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// What is among some values.
struct Nonfinite {
  bool nan = false;
  bool infinity = false;
  Nonfinite& operator|=(const Nonfinite& more) {
    nan |= more.nan;
    infinity |= more.infinity;
    return *this;
  }
};

/// Of `count` elements. A complex number is both of its parts; integers and bools have neither.
Nonfinite find_nonfinite(tensor::DType dtype, const std::byte* from, int64_t count);

}  // namespace meshd::kernels
