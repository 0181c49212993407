#include "service/kernels/elementwise/nonfinite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include "service/tensor/half.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

TEST(Nonfinite, every_code_of_the_narrow_formats_is_what_it_decodes_to) {
  int formats = 0;
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    if (row.kind != tensor::DTypeClass::kFloat || row.bits > 16) continue;
    ++formats;
    for (uint32_t code = 0; code < uint32_t{1} << row.bits; ++code) {
      const double value = row.format.specials == tensor::FloatSpecials::kPowersOfTwo
                               ? tensor::decode_float8_e8m0(static_cast<uint8_t>(code))
                               : tensor::decode_float(row.format, code);
      std::byte bytes[2];
      std::memcpy(bytes, &code, sizeof bytes);
      const Nonfinite found = find_nonfinite(row.dtype, bytes, 1);
      ASSERT_EQ(found.nan, std::isnan(value)) << row.name << " " << code;
      ASSERT_EQ(found.infinity, std::isinf(value)) << row.name << " " << code;
    }
  }
  EXPECT_GE(formats, 10);
}

template <class T>
Nonfinite found_in(DType dtype, const std::vector<T>& values) {
  return find_nonfinite(dtype, reinterpret_cast<const std::byte*>(values.data()), static_cast<int64_t>(values.size()));
}

TEST(Nonfinite, one_among_many_is_found) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> wide(1000, std::numeric_limits<double>::max());
  EXPECT_FALSE(found_in(DType::kFloat64, wide).nan || found_in(DType::kFloat64, wide).infinity);
  wide[999] = -infinity;
  EXPECT_TRUE(!found_in(DType::kFloat64, wide).nan && found_in(DType::kFloat64, wide).infinity);
  std::vector<std::complex<float>> complex(7);
  complex[6] = {0, std::nanf("")};
  EXPECT_TRUE(found_in(DType::kComplex64, complex).nan && !found_in(DType::kComplex64, complex).infinity);
  EXPECT_FALSE(found_in(DType::kUint32, std::vector<uint32_t>{0x7F800000, 0xFFFFFFFF}).nan);
}

}  // namespace
}  // namespace meshd::kernels
