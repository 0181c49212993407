#include "service/kernels/elementwise/scalar/vector_functions.h"

#include <array>
#include <utility>

#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/scalar/scalar_table.h"

// Set by kernels/CMakeLists.txt where the compiler's options make loops call vector functions.
#if defined(MESHD_LOOPS_CALL_VECTOR_FUNCTIONS) && defined(__x86_64__)
#define MESHD_HAS_VECTOR_FUNCTIONS 1
#include <immintrin.h>
#endif

namespace meshd::kernels {

#if defined(MESHD_HAS_VECTOR_FUNCTIONS)
namespace {

/// The loop of lane_loop.h over the lanes of one vector, so that bits are those of loops.
template <class F, int kLanes, class... Lanes>
[[gnu::always_inline]] inline void apply_to_lanes(float* out, const Lanes*... in) {
#pragma GCC ivdep
  for (int i = 0; i < kLanes; ++i) out[i] = apply_at_level<F, true>(in[i]...);
}

#define MESHD_V3 [[gnu::target("arch=x86-64-v3")]]
#define MESHD_V4 [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]]

template <class F>
MESHD_V3 __m256 unary_v3(__m256 x) {
  alignas(32) std::array<float, 8> lanes, out;
  _mm256_store_ps(lanes.data(), x);
  apply_to_lanes<F, 8>(out.data(), lanes.data());
  return _mm256_load_ps(out.data());
}

template <class F>
MESHD_V3 __m256 binary_v3(__m256 x, __m256 y) {
  alignas(32) std::array<float, 8> first, second, out;
  _mm256_store_ps(first.data(), x);
  _mm256_store_ps(second.data(), y);
  apply_to_lanes<F, 8>(out.data(), first.data(), second.data());
  return _mm256_load_ps(out.data());
}

template <class F>
MESHD_V4 __m512 unary_v4(__m512 x) {
  alignas(64) std::array<float, 16> lanes, out;
  _mm512_store_ps(lanes.data(), x);
  apply_to_lanes<F, 16>(out.data(), lanes.data());
  return _mm512_load_ps(out.data());
}

template <class F>
MESHD_V4 __m512 binary_v4(__m512 x, __m512 y) {
  alignas(64) std::array<float, 16> first, second, out;
  _mm512_store_ps(first.data(), x);
  _mm512_store_ps(second.data(), y);
  apply_to_lanes<F, 16>(out.data(), first.data(), second.data());
  return _mm512_load_ps(out.data());
}

#undef MESHD_V3
#undef MESHD_V4

struct VectorFunction {
  const void* v3 = nullptr;
  const void* v4 = nullptr;
};

template <size_t kNumber>
VectorFunction of_row() {
  if constexpr (!kFactsOf<kNumber>.vector_function) {
    return {};
  } else {
    using F = typename ScalarRow<kNumber>::Floats::template Of<float>;
    if constexpr (kFactsOf<kNumber>.operands == 1) {
      return {reinterpret_cast<const void*>(unary_v3<F>), reinterpret_cast<const void*>(unary_v4<F>)};
    } else {
      return {reinterpret_cast<const void*>(binary_v3<F>), reinterpret_cast<const void*>(binary_v4<F>)};
    }
  }
}

}  // namespace

const void* vector_function(ScalarOp op, CpuLevel level) {
  static const auto kFunctions = []<size_t... kNumber>(std::index_sequence<kNumber...>) {
    return std::array{of_row<kNumber>()...};
  }
  (std::make_index_sequence<kScalarOpCount>{});
  if (level == CpuLevel::kBase) return nullptr;
  const VectorFunction& found = kFunctions[static_cast<size_t>(op)];
  return level == CpuLevel::kV4 ? found.v4 : found.v3;
}
#else
const void* vector_function(ScalarOp /*op*/, CpuLevel /*level*/) { return nullptr; }
#endif

}  // namespace meshd::kernels
