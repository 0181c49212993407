// Operations on bfloat16 through those on float.
#pragma once

#include <cstdint>

#include "service/tensor/half.h"

namespace meshd::kernels {

/// An op of float on bfloat16 operands, its result rounded once.
template <class Op>
struct InBfloat16 {
  template <class... A>
  static uint16_t apply(A... a) {
    return tensor::float_to_bfloat16(Op::apply(tensor::bfloat16_to_float(a)...));
  }
};

}  // namespace meshd::kernels
