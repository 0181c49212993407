#include "service/kernels/elementwise/nonfinite.h"

#include <cstring>

namespace meshd::kernels {
namespace {

using tensor::DType;
using tensor::FloatFormat;
using tensor::FloatSpecials;

template <class Bits>
Nonfinite find(const FloatFormat& format, const std::byte* from, int64_t count) {
  constexpr int kBits = 8 * sizeof(Bits);
  const auto below = [](int bits) { return static_cast<Bits>((uint64_t{1} << bits) - 1); };
  const Bits mantissa = below(format.mantissa_bits);
  const Bits exponent = static_cast<Bits>(below(format.exponent_bits) << format.mantissa_bits);
  // The bits that are compared, and how: a NaN is above kIeee's infinity, and the one code of the other formats.
  const bool is_ieee = format.specials == FloatSpecials::kIeee;
  const Bits kept = format.specials == FloatSpecials::kNegZeroNan ? static_cast<Bits>(~Bits{0})
                                                                  : static_cast<Bits>(exponent | mantissa);
  const Bits special = is_ieee                                         ? exponent
                       : format.specials == FloatSpecials::kNegZeroNan ? static_cast<Bits>(uint64_t{1} << (kBits - 1))
                                                                       : kept;
  Nonfinite out;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, from + i * static_cast<int64_t>(sizeof bits), sizeof bits);
    const auto code = static_cast<Bits>(bits & kept);
    out.infinity |= is_ieee && code == special;
    out.nan |= is_ieee ? code > special : code == special;
  }
  return out;
}

}  // namespace

Nonfinite find_nonfinite(DType dtype, const std::byte* from, int64_t count) {
  if (dtype == DType::kComplex64) return find_nonfinite(DType::kFloat32, from, 2 * count);
  if (dtype == DType::kComplex128) return find_nonfinite(DType::kFloat64, from, 2 * count);
  const tensor::DTypeRow& row = tensor::row(dtype);
  if (row.format.exponent_bits == 0 || row.format.specials == FloatSpecials::kNone) return {};
  switch (tensor::size_bytes(dtype)) {
    case 1:
      return find<uint8_t>(row.format, from, count);
    case 2:
      return find<uint16_t>(row.format, from, count);
    case 4:
      return find<uint32_t>(row.format, from, count);
    default:
      return find<uint64_t>(row.format, from, count);
  }
}

}  // namespace meshd::kernels
