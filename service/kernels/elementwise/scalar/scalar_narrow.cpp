#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "service/kernels/elementwise/lanes/narrow_lanes.h"
#include "service/kernels/elementwise/scalar/scalar_table.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

/// Lanes that pass through the wider type at once: the buffers stay in L1.
constexpr int64_t kWidenedLanes = 512;

/// In which wider type an op on a narrow type is computed.
DType carrier_of(ScalarOp op, DType dtype) {
  if (is_narrow_float(dtype)) return DType::kFloat32;
  switch (facts_of(op).narrow) {
    case NarrowCarrier::kUnsigned:
      return DType::kUint8;
    case NarrowCarrier::kSigned:
      return DType::kInt8;
    case NarrowCarrier::kOfType:
      break;
  }
  return tensor::is_signed_integer(dtype) ? DType::kInt8 : DType::kUint8;
}

ScalarKernel carrier_kernel(ScalarOp op, DType carrier) {
  return carrier == DType::kFloat32 ? find_float32_kernel(op) : find_integer_kernel(op, carrier);
}

void widen(DType dtype, DType carrier, const std::byte* from, std::byte* to, int64_t count) {
  const int bits = tensor::row(dtype).bits;
  if (carrier == DType::kFloat32) return widen_to_float(dtype, from, reinterpret_cast<float*>(to), count);
  if (carrier == DType::kInt8) return extend_signed(bits, from, to, count);
  extend_unsigned(bits, from, to, count);
}

void narrow(ScalarOp op, DType dtype, DType carrier, std::byte* from, std::byte* to, int64_t count) {
  const int bits = tensor::row(dtype).bits;
  if (carrier == DType::kFloat32) return narrow_from_float(dtype, reinterpret_cast<const float*>(from), to, count);
  if (facts_of(op).counts_width) {
    for (int64_t i = 0; i < count; ++i) from[i] = static_cast<std::byte>(static_cast<int>(from[i]) - (8 - bits));
  }
  if (tensor::is_signed_integer(dtype)) return extend_signed(bits, from, to, count);
  extend_unsigned(bits, from, to, count);
}

void run_narrow(ScalarOp op, DType dtype, const std::byte* const* operands, std::byte* result, int64_t count) {
  const DType carrier = carrier_of(op, dtype);
  const ScalarKernel kernel = carrier_kernel(op, carrier);
  const int operand_total = operand_count(op);
  const auto element_bytes = static_cast<size_t>(tensor::size_bytes(dtype));
  const bool gives_bool = result_dtype(op, dtype) == DType::kBool;
  alignas(64) std::array<std::array<std::byte, kWidenedLanes * sizeof(float)>, 4> stage;
  const std::array<const std::byte*, 3> staged = {stage[0].data(), stage[1].data(), stage[2].data()};
  for (int64_t begin = 0; begin < count; begin += kWidenedLanes) {
    const int64_t lanes = std::min(kWidenedLanes, count - begin);
    const auto offset = static_cast<size_t>(begin) * element_bytes;
    for (int i = 0; i < operand_total; ++i) {
      widen(dtype, carrier, operands[i] + offset, stage[static_cast<size_t>(i)].data(), lanes);
    }
    if (gives_bool) {
      kernel(staged.data(), result + begin, lanes);
    } else {
      kernel(staged.data(), stage[3].data(), lanes);
      narrow(op, dtype, carrier, stage[3].data(), result + offset, lanes);
    }
  }
}

template <DType D, ScalarOp Op>
void narrow_kernel(const std::byte* const* operands, std::byte* result, int64_t count) {
  run_narrow(Op, D, operands, result, count);
}

template <DType D, size_t... Op>
constexpr std::array<ScalarKernel, kScalarOpCount> narrow_kernels(std::index_sequence<Op...>) {
  if constexpr (is_narrow_float(D) || is_narrow_integer(D)) {
    return {narrow_kernel<D, static_cast<ScalarOp>(Op)>...};
  } else {
    return {};
  }
}

}  // namespace

ScalarKernel find_narrow_kernel(ScalarOp op, DType dtype) {
  // The neighbour of a value is another one in a narrower type, and complex numbers have no narrow parts.
  if (op == ScalarOp::kNextAfter || op == ScalarOp::kComplex || carrier_kernel(op, carrier_of(op, dtype)) == nullptr)
    return nullptr;
  static constexpr auto kKernels = []<size_t... kNumber>(std::index_sequence<kNumber...>) {
    return std::array{narrow_kernels<static_cast<DType>(kNumber)>(std::make_index_sequence<kScalarOpCount>{})...};
  }
  (std::make_index_sequence<std::size(tensor::kDTypeTable)>{});
  return kKernels[static_cast<size_t>(dtype)][static_cast<size_t>(op)];
}

}  // namespace meshd::kernels
