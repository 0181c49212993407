#include "service/kernels/elementwise/lanes/narrow_lanes.h"

#include <fmt/core.h>

#include <array>
#include <iterator>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "service/core/error.h"
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

/// Loops between one byte-wide float type and float; null for other types.
using WidenFloat8 = void (*)(const uint8_t*, float*, int64_t);
using NarrowFloat8 = void (*)(const float*, uint8_t*, int64_t);
struct Float8Loops {
  WidenFloat8 widen = nullptr;
  NarrowFloat8 narrow = nullptr;
};

template <DType D>
constexpr Float8Loops float8_loops() {
  if constexpr (tensor::is_float(D) && tensor::size_bytes(D) == 1) {
    return {widen_float8<D>, narrow_float8<D>};
  } else {
    return {};
  }
}

const Float8Loops& float8_loops_of(DType dtype) {
  static constexpr auto kLoops = []<size_t... kNumber>(std::index_sequence<kNumber...>) {
    return std::array{float8_loops<static_cast<DType>(kNumber)>()...};
  }
  (std::make_index_sequence<std::size(tensor::kDTypeTable)>{});
  return kLoops[static_cast<size_t>(dtype)];
}

}  // namespace

void widen_to_float(DType dtype, const std::byte* from, float* to, int64_t count) {
  if (const WidenFloat8 widen = float8_loops_of(dtype).widen; widen != nullptr)
    return widen(reinterpret_cast<const uint8_t*>(from), to, count);
  const auto* const halves = reinterpret_cast<const uint16_t*>(from);
  if (dtype == DType::kFloat16) return widen_float16(halves, to, count);
  if (dtype != DType::kBfloat16) throw core::Error("internal", fmt::format("no loop widens {}", tensor::name(dtype)));
  for (int64_t i = 0; i < count; ++i) to[i] = tensor::bfloat16_to_float(halves[i]);
}

void narrow_from_float(DType dtype, const float* from, std::byte* to, int64_t count) {
  if (const NarrowFloat8 narrow = float8_loops_of(dtype).narrow; narrow != nullptr)
    return narrow(from, reinterpret_cast<uint8_t*>(to), count);
  auto* const halves = reinterpret_cast<uint16_t*>(to);
  if (dtype == DType::kFloat16) return narrow_float16(from, halves, count);
  if (dtype != DType::kBfloat16)
    throw core::Error("internal", fmt::format("no loop narrows to {}", tensor::name(dtype)));
  for (int64_t i = 0; i < count; ++i) halves[i] = tensor::float_to_bfloat16(from[i]);
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
