// 16-bit floats: the ops that are worth loops of their own because they need no more than a conversion around one
// instruction.
#include "service/kernels/elementwise/functors/bfloat16_functors.h"
#include "service/kernels/elementwise/scalar/scalar_table.h"
#include "service/tensor/half.h"

namespace meshd::kernels {
namespace {

template <class Op>
struct CompareBfloat16 {
  static uint8_t apply(uint16_t a, uint16_t b) {
    return Op::apply(tensor::bfloat16_to_float(a), tensor::bfloat16_to_float(b));
  }
};

/// The kernel of a row that is worth a loop of its own; null for the others.
template <size_t kNumber>
ScalarKernel bfloat16_kernel() {
  constexpr ScalarFacts kFacts = kFactsOf<kNumber>;
  if constexpr (!kFacts.bfloat16_loop) {
    return nullptr;
  } else {
    using F = typename ScalarRow<kNumber>::Floats::template Of<float>;
    if constexpr (kFacts.result == ScalarResult::kBool) {
      return vector_kernel<CompareBfloat16<F>, uint8_t, uint16_t, uint16_t>();
    } else if constexpr (kFacts.operands == 1) {
      return vector_kernel<InBfloat16<F>, uint16_t, uint16_t>();
    } else {
      return vector_kernel<InBfloat16<F>, uint16_t, uint16_t, uint16_t>();
    }
  }
}

/// The neighbour among 16-bit floats, whose codes are in the order of their magnitudes; `kInfinity` is the code of
/// infinity.
template <uint32_t kInfinity>
struct NextAfter16 {
  static uint16_t apply(uint16_t from, uint16_t to) {
    const uint32_t from_magnitude = from & 0x7FFFU;
    const uint32_t to_magnitude = to & 0x7FFFU;
    if (from_magnitude > kInfinity || to_magnitude > kInfinity) {
      return static_cast<uint16_t>(kInfinity | 0x40U | 0x200U);
    }
    if (from == to || (from_magnitude | to_magnitude) == 0) return to;
    if (from_magnitude == 0) return static_cast<uint16_t>((to & 0x8000U) | 1U);
    const bool shrinks = from_magnitude > to_magnitude || ((from ^ to) & 0x8000U) != 0;
    return static_cast<uint16_t>(shrinks ? from - 1U : from + 1U);
  }
};

}  // namespace

ScalarKernel find_bfloat16_kernel(ScalarOp op) {
  return []<size_t... kNumber>(ScalarOp wanted, std::index_sequence<kNumber...>) {
    using Maker = ScalarKernel (*)();
    static constexpr std::array<Maker, kScalarOpCount> kMakers = {bfloat16_kernel<kNumber>...};
    return kMakers[static_cast<size_t>(wanted)]();
  }
  (op, std::make_index_sequence<kScalarOpCount>{});
}

ScalarKernel find_half_next_after_kernel(tensor::DType dtype) {
  if (dtype == tensor::DType::kBfloat16) return call_kernel<NextAfter16<0x7F80>, uint16_t, uint16_t, uint16_t>();
  return call_kernel<NextAfter16<0x7C00>, uint16_t, uint16_t, uint16_t>();
}

}  // namespace meshd::kernels
