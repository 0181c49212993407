#include "service/kernels/elementwise/narrow_lanes.h"

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "service/kernels/cpu.h"
#include "service/tensor/half.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

#if defined(__x86_64__)
// The processor's own float16 conversions, eight lanes at a time; they agree with half.h on every code.
[[gnu::target("avx,f16c")]] int64_t widen_float16_f16c(const uint16_t* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  return i;
}

[[gnu::target("avx,f16c")]] int64_t narrow_float16_f16c(const float* from, uint16_t* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}
#endif

void widen_float16(const uint16_t* from, float* to, int64_t count) {
  int64_t done = 0;
#if defined(__x86_64__)
  if (cpu_level() != CpuLevel::kBase) done = widen_float16_f16c(from, to, count);
#endif
  for (; done < count; ++done) to[done] = tensor::float16_to_float(from[done]);
}

void narrow_float16(const float* from, uint16_t* to, int64_t count) {
  int64_t done = 0;
#if defined(__x86_64__)
  if (cpu_level() != CpuLevel::kBase) done = narrow_float16_f16c(from, to, count);
#endif
  for (; done < count; ++done) to[done] = tensor::float_to_float16(from[done]);
}

template <DType D>
void widen_float8(const uint8_t* from, float* to, int64_t count) {
  static constexpr std::array<float, 256> kValues = tensor::float8_values(D);
  for (int64_t i = 0; i < count; ++i) to[i] = kValues[from[i]];
}

template <DType D>
void narrow_float8(const float* from, uint8_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = tensor::encode_float8(D, from[i]);
}

}  // namespace

bool is_narrow_float(DType dtype) { return tensor::is_float(dtype) && tensor::size_bytes(dtype) < 4; }

bool is_narrow_integer(DType dtype) { return tensor::is_integer(dtype) && tensor::row(dtype).bits < 8; }

void widen_to_float(DType dtype, const std::byte* from, float* to, int64_t count) {
  const auto* const codes = reinterpret_cast<const uint8_t*>(from);
  const auto* const halves = reinterpret_cast<const uint16_t*>(from);
  switch (dtype) {
    case DType::kFloat8E3M4:
      return widen_float8<DType::kFloat8E3M4>(codes, to, count);
    case DType::kFloat8E4M3:
      return widen_float8<DType::kFloat8E4M3>(codes, to, count);
    case DType::kFloat8E4M3B11FNUZ:
      return widen_float8<DType::kFloat8E4M3B11FNUZ>(codes, to, count);
    case DType::kFloat8E4M3FN:
      return widen_float8<DType::kFloat8E4M3FN>(codes, to, count);
    case DType::kFloat8E4M3FNUZ:
      return widen_float8<DType::kFloat8E4M3FNUZ>(codes, to, count);
    case DType::kFloat8E5M2:
      return widen_float8<DType::kFloat8E5M2>(codes, to, count);
    case DType::kFloat8E5M2FNUZ:
      return widen_float8<DType::kFloat8E5M2FNUZ>(codes, to, count);
    case DType::kFloat8E8M0FNU:
      return widen_float8<DType::kFloat8E8M0FNU>(codes, to, count);
    case DType::kBfloat16:
      for (int64_t i = 0; i < count; ++i) to[i] = tensor::bfloat16_to_float(halves[i]);
      return;
    default:
      return widen_float16(halves, to, count);
  }
}

void narrow_from_float(DType dtype, const float* from, std::byte* to, int64_t count) {
  auto* const codes = reinterpret_cast<uint8_t*>(to);
  auto* const halves = reinterpret_cast<uint16_t*>(to);
  switch (dtype) {
    case DType::kFloat8E3M4:
      return narrow_float8<DType::kFloat8E3M4>(from, codes, count);
    case DType::kFloat8E4M3:
      return narrow_float8<DType::kFloat8E4M3>(from, codes, count);
    case DType::kFloat8E4M3B11FNUZ:
      return narrow_float8<DType::kFloat8E4M3B11FNUZ>(from, codes, count);
    case DType::kFloat8E4M3FN:
      return narrow_float8<DType::kFloat8E4M3FN>(from, codes, count);
    case DType::kFloat8E4M3FNUZ:
      return narrow_float8<DType::kFloat8E4M3FNUZ>(from, codes, count);
    case DType::kFloat8E5M2:
      return narrow_float8<DType::kFloat8E5M2>(from, codes, count);
    case DType::kFloat8E5M2FNUZ:
      return narrow_float8<DType::kFloat8E5M2FNUZ>(from, codes, count);
    case DType::kFloat8E8M0FNU:
      return narrow_float8<DType::kFloat8E8M0FNU>(from, codes, count);
    case DType::kBfloat16:
      for (int64_t i = 0; i < count; ++i) halves[i] = tensor::float_to_bfloat16(from[i]);
      return;
    default:
      return narrow_float16(from, halves, count);
  }
}

void extend_signed(int bits, const std::byte* from, std::byte* to, int64_t count) {
  const int shift = 8 - bits;
  const auto* const in = reinterpret_cast<const uint8_t*>(from);
  auto* const out = reinterpret_cast<int8_t*>(to);
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<int8_t>(static_cast<int8_t>(static_cast<uint8_t>(in[i] << shift)) >> shift);
  }
}

void extend_unsigned(int bits, const std::byte* from, std::byte* to, int64_t count) {
  const auto mask = static_cast<uint8_t>((1U << bits) - 1);
  const auto* const in = reinterpret_cast<const uint8_t*>(from);
  auto* const out = reinterpret_cast<uint8_t*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] & mask;
}

}  // namespace meshd::kernels
