// Conversions between any two types: directly where a loop exists, else through a type that represents every value of
// the operand at the result's precision.
#include <algorithm>
#include <array>
#include <utility>

#include "service/kernels/elementwise/convert/convert_tables.h"
#include "service/kernels/elementwise/functors/complex_functors.h"
#include "service/kernels/elementwise/lanes/narrow_lanes.h"
#include "service/kernels/elementwise/scalar/scalar_tables.h"
#include "service/tensor/half.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

constexpr int64_t kConvertedLanes = 256;

ScalarKernel find_direct(DType in, DType out) {
  if (tensor::is_float(in)) return find_convert_from_float(in, out);
  if (tensor::is_signed_integer(in)) return find_convert_from_signed(in, out);
  return find_convert_from_unsigned(in, out);
}

/// The type an operand is read as: itself when loops read it directly; the real part of a complex number.
DType operand_carrier(DType in) {
  if (is_narrow_float(in) && in != DType::kBfloat16) return DType::kFloat32;
  if (is_narrow_integer(in)) return tensor::is_signed_integer(in) ? DType::kInt8 : DType::kUint8;
  if (in == DType::kComplex64) return DType::kFloat32;
  if (in == DType::kComplex128) return DType::kFloat64;
  return in;
}

/// The type from which a result is made, given what the operand is read as.
DType result_carrier(DType from, DType out) {
  if (is_narrow_float(out) && out != DType::kBfloat16) return from == DType::kFloat64 ? from : DType::kFloat32;
  // Floats are held at the ends of the narrow range, so they have to arrive as floats; integers only lose high bits.
  if (is_narrow_integer(out)) return tensor::is_float(from) ? DType::kFloat64 : DType::kInt8;
  if (out == DType::kComplex64) return DType::kFloat32;
  if (out == DType::kComplex128) return DType::kFloat64;
  return out;
}

void read_operand(DType in, const std::byte* from, std::byte* to, int64_t count) {
  const int bits = tensor::row(in).bits;
  if (in == DType::kComplex64 || in == DType::kComplex128) {
    find_complex_kernel(ScalarOp::kReal, in)(&from, to, count);
  } else if (is_narrow_float(in)) {
    widen_to_float(in, from, reinterpret_cast<float*>(to), count);
  } else if (tensor::is_signed_integer(in)) {
    extend_signed(bits, from, to, count);
  } else {
    extend_unsigned(bits, from, to, count);
  }
}

/// Doubles as integers of few bits, held at the ends of their range.
void saturate_narrow(DType out, const double* from, std::byte* to, int64_t count) {
  const int bits = tensor::row(out).bits;
  const bool is_signed = tensor::is_signed_integer(out);
  const int highest = (1 << (is_signed ? bits - 1 : bits)) - 1;
  const int lowest = is_signed ? -highest - 1 : 0;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<std::byte>(std::clamp(saturate<int32_t>(from[i]), lowest, highest));
  }
}

template <class T>
void write_complex(const T* from, std::byte* to, int64_t count) {
  auto* const pairs = reinterpret_cast<ComplexPair<T>*>(to);
  for (int64_t i = 0; i < count; ++i) pairs[i] = {from[i], T{0}};
}

void write_result(DType carrier, DType out, const std::byte* from, std::byte* to, int64_t count) {
  const auto* const floats = reinterpret_cast<const float*>(from);
  const auto* const doubles = reinterpret_cast<const double*>(from);
  if (out == DType::kComplex64) return write_complex(floats, to, count);
  if (out == DType::kComplex128) return write_complex(doubles, to, count);
  if (is_narrow_integer(out)) {
    const int bits = tensor::row(out).bits;
    if (carrier == DType::kFloat64) return saturate_narrow(out, doubles, to, count);
    return tensor::is_signed_integer(out) ? extend_signed(bits, from, to, count)
                                          : extend_unsigned(bits, from, to, count);
  }
  if (carrier == DType::kFloat32) return narrow_from_float(out, floats, to, count);
  if (out == DType::kFloat16) {
    auto* const halves = reinterpret_cast<uint16_t*>(to);
    for (int64_t i = 0; i < count; ++i) {
      halves[i] =
          static_cast<uint16_t>(tensor::encode_float(tensor::float_format(tensor::DType::kFloat16), doubles[i]));
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<std::byte>(tensor::encode_float8(out, doubles[i]));
}

void run_staged(DType in, DType out, const std::byte* from, std::byte* to, int64_t count) {
  const DType first = operand_carrier(in);
  const DType second = result_carrier(first, out);
  const ScalarKernel between = first == second ? nullptr : find_direct(first, second);
  alignas(64) std::array<std::byte, kConvertedLanes * sizeof(double)> read;
  alignas(64) std::array<std::byte, kConvertedLanes * sizeof(double)> converted;
  for (int64_t begin = 0; begin < count; begin += kConvertedLanes) {
    const int64_t lanes = std::min(kConvertedLanes, count - begin);
    const std::byte* stage = from + begin * tensor::size_bytes(in);
    std::byte* const target = to + begin * tensor::size_bytes(out);
    if (in != first) {
      read_operand(in, stage, read.data(), lanes);
      stage = read.data();
    }
    if (between != nullptr) {
      between(&stage, out == second ? target : converted.data(), lanes);
      stage = converted.data();
    }
    if (out != second) {
      write_result(second, out, stage, target, lanes);
    } else if (between == nullptr) {
      std::copy_n(stage, lanes * tensor::size_bytes(out), target);
    }
  }
}

template <class Out, class In>
void convert_pair(const std::byte* const* operands, std::byte* result, int64_t count) {
  const auto* const from = reinterpret_cast<const ComplexPair<In>*>(operands[0]);
  auto* const to = reinterpret_cast<ComplexPair<Out>*>(result);
  for (int64_t i = 0; i < count; ++i) to[i] = {static_cast<Out>(from[i].re), static_cast<Out>(from[i].im)};
}

constexpr size_t kDTypes = std::size(tensor::kDTypeTable);

template <size_t Pair>
void staged_kernel(const std::byte* const* operands, std::byte* result, int64_t count) {
  run_staged(static_cast<DType>(Pair / kDTypes), static_cast<DType>(Pair % kDTypes), operands[0], result, count);
}

template <size_t... Pair>
ScalarKernel staged_kernel_of(size_t pair, std::index_sequence<Pair...>) {
  static constexpr std::array<ScalarKernel, sizeof...(Pair)> kTable = {staged_kernel<Pair>...};
  return kTable[pair];
}

}  // namespace

ScalarKernel find_convert_kernel(DType in, DType out) {
  if (in == out && !is_narrow_integer(in)) return find_copy_kernel(tensor::size_bytes(in));
  if (in == DType::kComplex64 && out == DType::kComplex128) return convert_pair<double, float>;
  if (in == DType::kComplex128 && out == DType::kComplex64) return convert_pair<float, double>;
  if (operand_carrier(in) == in && result_carrier(in, out) == out) return find_direct(in, out);
  const size_t pair = static_cast<size_t>(in) * kDTypes + static_cast<size_t>(out);
  return staged_kernel_of(pair, std::make_index_sequence<kDTypes * kDTypes>{});
}

}  // namespace meshd::kernels
