#include "service/kernels/product/side_by_side.h"

#include <algorithm>

#include "service/kernels/cpu.h"
#include "service/kernels/product/lanes.h"
#include "service/kernels/product/tile_kernel.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

// From one matrix after the other to vectors of one element of each.
template <class V, typename T = typename V::Element>
[[gnu::always_inline]] inline void deal(const T* matrices, int64_t step, int64_t count, int64_t elements, T* to) {
  if constexpr (sizeof(T) == sizeof(float)) {
    tile_kernels<T>().transpose(matrices, step, count, elements, to, V::kCount);
  } else {
    for (int64_t e = 0; e < elements; ++e) {
      for (int64_t lane = 0; lane < count; ++lane) to[e * V::kCount + lane] = matrices[lane * step + e];
    }
  }
}

template <class V, typename T = typename V::Element>
[[gnu::always_inline]] inline void collect(const T* vectors, int64_t count, int64_t elements, T* matrices) {
  if constexpr (sizeof(T) == sizeof(float)) {
    tile_kernels<T>().transpose(vectors, V::kCount, elements, count, matrices, elements);
  } else {
    for (int64_t lane = 0; lane < count; ++lane) {
      for (int64_t e = 0; e < elements; ++e) matrices[lane * elements + e] = vectors[e * V::kCount + lane];
    }
  }
}

template <class V>
[[gnu::always_inline]] inline void multiply(const SideBySideShape& shape, const std::byte* a, const std::byte* b,
                                            std::byte* c, int64_t count) {
  using T = typename V::Element;
  using Vector = typename V::Vector;
  // Zeros at first, for the lanes of a last block that has no product for them.
  alignas(64) T left[kMostSideBySide * V::kCount] = {};
  alignas(64) T right[kMostSideBySide * V::kCount] = {};
  alignas(64) T made[kMostSideBySide * V::kCount];
  for (int64_t first = 0; first < count; first += V::kCount) {
    const int64_t some = std::min(V::kCount, count - first);
    deal<V>(reinterpret_cast<const T*>(a) + first * shape.a_step, shape.a_step, some, shape.m * shape.k, left);
    deal<V>(reinterpret_cast<const T*>(b) + first * shape.b_step, shape.b_step, some, shape.k * shape.n, right);
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        const T* x = left + i * shape.a.row_stride * V::kCount;
        const T* y = right + j * shape.b.column_stride * V::kCount;
        Vector sum{};
        for (int64_t p = 0; p < shape.k; ++p) {
          sum += V::at(x) * V::at(y);
          x += shape.a.column_stride * V::kCount;
          y += shape.b.row_stride * V::kCount;
        }
        V::at(made + (i * shape.n + j) * V::kCount) = sum;
      }
    }
    collect<V>(made, some, shape.m * shape.n, reinterpret_cast<T*>(c) + first * shape.m * shape.n);
  }
}

template <typename T>
void multiply_base(const SideBySideShape& shape, const std::byte* a, const std::byte* b, std::byte* c, int64_t count) {
  multiply<Lanes<T, 16>>(shape, a, b, c, count);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("arch=x86-64-v3")]] void multiply_v3(const SideBySideShape& shape, const std::byte* a, const std::byte* b,
                                                   std::byte* c, int64_t count) {
  multiply<Lanes<T, 32>>(shape, a, b, c, count);
}
template <typename T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void multiply_v4(const SideBySideShape& shape,
                                                                           const std::byte* a, const std::byte* b,
                                                                           std::byte* c, int64_t count) {
  multiply<Lanes<T, 64>>(shape, a, b, c, count);
}
#endif

template <typename T>
SideBySide for_this_cpu() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return multiply_v4<T>;
  if (cpu_level() == CpuLevel::kV3) return multiply_v3<T>;
#endif
  return multiply_base<T>;
}

}  // namespace

SideBySide side_by_side(DType dtype) {
  if (dtype == DType::kFloat32) return for_this_cpu<float>();
  return dtype == DType::kFloat64 ? for_this_cpu<double>() : nullptr;
}

int64_t vector_lanes(DType dtype) {
  return tile_kernels<float>().lanes * static_cast<int64_t>(sizeof(float)) / tensor::size_bytes(dtype);
}

}  // namespace meshd::kernels
