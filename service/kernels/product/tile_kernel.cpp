#include "service/kernels/product/tile_kernel.h"

#include <cstddef>
#include <type_traits>
#include <utility>

#include "service/kernels/cpu.h"
#include "service/kernels/product/lanes.h"

#if defined(__x86_64__)
#include <immintrin.h>
// Of builtins that return vectors of a level that the function around them does not have: it is inlined where it does.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace meshd::kernels {
namespace {

// What an element of a does to the sums of a vector of b.
enum class Product : uint8_t { kOne, kPairs };

// By builtins: intrinsics would have to be of the level of the function that they are inlined into in the end.
template <class Width>
[[gnu::always_inline]] inline void add_pairs(typename Width::Vector& sums, uint32_t factor,
                                             const typename Width::Vector& row) {
  using Vector = typename Width::Vector;
#if defined(__x86_64__)
  const Vector factors = factor - Vector{};
  if constexpr (sizeof(Vector) == 64) {
    sums += (Vector)__builtin_ia32_pmaddwd512_mask((__v32hi)factors, (__v32hi)row, __v16si{}, 0xFFFF);
  } else if constexpr (sizeof(Vector) == 32) {
    sums += (Vector)__builtin_ia32_pmaddwd256((__v16hi)factors, (__v16hi)row);
  } else {
    sums += (Vector)__builtin_ia32_pmaddwd128((__v8hi)factors, (__v8hi)row);
  }
#else
  using Index = typename Width::Index;  // signed lanes
  const auto low = static_cast<uint32_t>(static_cast<int32_t>(factor << 16) >> 16);
  const auto high = static_cast<uint32_t>(static_cast<int32_t>(factor) >> 16);
  sums += low * (Vector)((Index)(row << 16) >> 16) + high * (Vector)((Index)row >> 16);
#endif
}

template <class Width, Product kProduct>
[[gnu::always_inline]] inline void add_product(typename Width::Vector& sums, typename Width::Element factor,
                                               const typename Width::Vector& row) {
  if constexpr (kProduct == Product::kPairs)
    add_pairs<Width>(sums, factor, row);
  else
    sums += factor * row;
}

// The sums of `depth` terms, from where a and b are on, to where they end. Each loop but the one over the terms is
// unrolled, so that sums are registers.
template <class Width, Product kProduct, int kRows, int kVectors, TileRows kOrder>
[[gnu::always_inline]] inline void sum_terms(typename Width::Vector (&sums)[kRows][kVectors], int64_t depth,
                                             const typename Width::Element*& a, int64_t a_pitch,
                                             const typename Width::Element*& b, int64_t b_pitch) {
  using Vector = typename Width::Vector;
  constexpr int64_t kLanes = Width::kCount;
  // With AVX2 a row of b in a tile is one cache line, which the processor's own prefetcher asks for too late.
  constexpr int64_t kTermsAhead = 32;
  constexpr bool prefetches = kVectors == 2 && sizeof(Vector) == 32;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[i][v] = Vector{};
  }
  for (int64_t left = depth; left > 0; --left) {
    Vector row[kVectors];
    if constexpr (prefetches) __builtin_prefetch(b + kTermsAhead * b_pitch);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) row[v] = *reinterpret_cast<const Vector*>(b + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const typename Width::Element factor = a[i * (kOrder == TileRows::kColumns ? 1
                                                    : kOrder == TileRows::kStrip ? kTilePitch
                                                                                 : a_pitch)];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) add_product<Width, kProduct>(sums[i][v], factor, row[v]);
    }
    a += kOrder == TileRows::kColumns ? a_pitch : 1;
    b += b_pitch;
  }
}

template <class Width, Product kProduct, int kRows, int kVectors, TileRows kOrder>
[[gnu::always_inline]] inline void multiply_tile(const TileCall<typename Width::Element>& given) {
  using T = typename Width::Element;
  using Vector = typename Width::Vector;
  constexpr int64_t kLanes = Width::kCount;
  const TileCall<T> call = given;  // in registers: stores to c might otherwise change it
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    // Read or written when the sums are made.
    __builtin_prefetch(call.c + i * call.c_pitch, 1);
    __builtin_prefetch(call.c + i * call.c_pitch + kLanes * kVectors - 1, 1);
  }
  const T* a = call.a;
  const T* b = call.b;
  const bool is_halved = std::is_floating_point_v<T> && call.depth > kTileChain;
  const int64_t second = is_halved ? call.depth / 2 : 0;
  Vector sums[kRows][kVectors];
  sum_terms<Width, kProduct, kRows, kVectors, kOrder>(sums, call.depth - second, a, call.a_pitch, b, call.b_pitch);
  if (is_halved) {
    Vector first[kRows][kVectors];  // in memory
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) first[i][v] = sums[i][v];
    }
    sum_terms<Width, kProduct, kRows, kVectors, kOrder>(sums, second, a, call.a_pitch, b, call.b_pitch);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[i][v] = first[i][v] + sums[i][v];
    }
  }
  T* c = call.c;
  if (call.adds) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, c += call.c_pitch) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Vector*>(c + v * kLanes) += sums[i][v];
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += call.c_pitch) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Vector*>(c + v * kLanes) = sums[i][v];
  }
}

template <typename T>
void transpose_elements(const T* columns, int64_t column_pitch, int64_t count, int64_t first, int64_t depth, T* rows,
                        int64_t row_pitch) {
  for (int64_t p = first; p < depth; ++p) {
    for (int64_t j = 0; j < count; ++j) rows[p * row_pitch + j] = columns[j * column_pitch + p];
  }
}

template <typename T>
void transpose_base(const T* columns, int64_t column_pitch, int64_t count, int64_t depth, T* rows, int64_t row_pitch) {
  transpose_elements(columns, column_pitch, count, 0, depth, rows, row_pitch);
}

// Squares of 8 x 8 in registers: pairs, then fours, then eights change places.
template <typename T>
[[gnu::always_inline]] inline void transpose_squares(const T* columns, int64_t column_pitch, int64_t count,
                                                     int64_t depth, T* rows, int64_t row_pitch) {
  using Vector = typename Lanes<T, 32>::Vector;
  using Index = typename Lanes<T, 32>::Index;
  constexpr int64_t kSide = 8;
  const int64_t whole = depth - depth % kSide;
  int64_t j = 0;
  for (; j + kSide <= count; j += kSide) {
    for (int64_t p = 0; p < whole; p += kSide) {
      Vector in[kSide];
      Vector pairs[kSide];
      Vector fours[kSide];
#pragma GCC unroll 8
      for (int64_t i = 0; i < kSide; ++i)
        in[i] = *reinterpret_cast<const Vector*>(columns + (j + i) * column_pitch + p);
#pragma GCC unroll 4
      for (int64_t i = 0; i < kSide; i += 2) {
        pairs[i] = __builtin_shuffle(in[i], in[i + 1], Index{0, 8, 1, 9, 4, 12, 5, 13});
        pairs[i + 1] = __builtin_shuffle(in[i], in[i + 1], Index{2, 10, 3, 11, 6, 14, 7, 15});
      }
#pragma GCC unroll 2
      for (int64_t i = 0; i < kSide; i += 4) {
#pragma GCC unroll 2
        for (int64_t k = 0; k < 2; ++k) {
          fours[i + 2 * k] = __builtin_shuffle(pairs[i + k], pairs[i + k + 2], Index{0, 1, 8, 9, 4, 5, 12, 13});
          fours[i + 2 * k + 1] = __builtin_shuffle(pairs[i + k], pairs[i + k + 2], Index{2, 3, 10, 11, 6, 7, 14, 15});
        }
      }
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) {
        T* const to = rows + (p + i) * row_pitch + j;
        *reinterpret_cast<Vector*>(to) = __builtin_shuffle(fours[i], fours[i + 4], Index{0, 1, 2, 3, 8, 9, 10, 11});
        *reinterpret_cast<Vector*>(to + 4 * row_pitch) =
            __builtin_shuffle(fours[i], fours[i + 4], Index{4, 5, 6, 7, 12, 13, 14, 15});
      }
    }
    transpose_elements(columns + j * column_pitch, column_pitch, kSide, whole, depth, rows + j, row_pitch);
  }
  transpose_elements(columns + j * column_pitch, column_pitch, count - j, 0, depth, rows + j, row_pitch);
}

template <typename T, Product kProduct, int kRows, int kVectors, TileRows kOrder>
void tile_base(const TileCall<T>& call) {
  multiply_tile<Lanes<T, 16>, kProduct, kRows, kVectors, kOrder>(call);
}

#if defined(__x86_64__)
template <typename T, Product kProduct, int kRows, int kVectors, TileRows kOrder>
[[gnu::target("arch=x86-64-v3")]] void tile_v3(const TileCall<T>& call) {
  multiply_tile<Lanes<T, 32>, kProduct, kRows, kVectors, kOrder>(call);
}

template <typename T, Product kProduct, int kRows, int kVectors, TileRows kOrder>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void tile_v4(const TileCall<T>& call) {
  multiply_tile<Lanes<T, 64>, kProduct, kRows, kVectors, kOrder>(call);
}

template <typename T>
[[gnu::target("arch=x86-64-v3")]] void transpose_v3(const T* columns, int64_t column_pitch, int64_t count,
                                                    int64_t depth, T* rows, int64_t row_pitch) {
  transpose_squares(columns, column_pitch, count, depth, rows, row_pitch);
}
#endif

// Sums in 12 of 16 registers, or in 28 of 32, leave enough for the operands.
template <CpuLevel kLevel>
constexpr int kRowsOf = kLevel == CpuLevel::kV4 ? 14 : 6;

template <typename T, Product kProduct, CpuLevel kLevel, int kRows, int kVectors, TileRows kOrder>
constexpr TileKernel<T> kernel_of() {
#if defined(__x86_64__)
  if constexpr (kLevel == CpuLevel::kV4) return tile_v4<T, kProduct, kRows, kVectors, kOrder>;
  if constexpr (kLevel == CpuLevel::kV3) return tile_v3<T, kProduct, kRows, kVectors, kOrder>;
#endif
  return tile_base<T, kProduct, kRows, kVectors, kOrder>;
}

template <typename T, Product kProduct, CpuLevel kLevel, TileRows kOrder, int... kRow>
void fill_order(TileKernels<T>& out, std::integer_sequence<int, kRow...> /*rows*/) {
  auto& kernels = out.kernels[static_cast<std::size_t>(kOrder)];
  ((kernels[0][kRow + 1] = kernel_of<T, kProduct, kLevel, kRow + 1, 1, kOrder>()), ...);
  ((kernels[1][kRow + 1] = kernel_of<T, kProduct, kLevel, kRow + 1, 2, kOrder>()), ...);
}

template <typename T, Product kProduct, CpuLevel kLevel>
TileKernels<T> kernels_of(int64_t lanes, TransposeKernel<T> transpose) {
  TileKernels<T> out;
  out.rows = kRowsOf<kLevel>;
  out.lanes = lanes;
  out.transpose = transpose;
  const auto rows = std::make_integer_sequence<int, kRowsOf<kLevel>>{};
  fill_order<T, kProduct, kLevel, TileRows::kColumns>(out, rows);
  fill_order<T, kProduct, kLevel, TileRows::kStrip>(out, rows);
  if constexpr (kProduct == Product::kOne) fill_order<T, kProduct, kLevel, TileRows::kApart>(out, rows);
  return out;
}

template <typename T, Product kProduct = Product::kOne>
TileKernels<T> for_this_cpu() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return kernels_of<T, kProduct, CpuLevel::kV4>(16, transpose_v3<T>);
  if (cpu_level() == CpuLevel::kV3) return kernels_of<T, kProduct, CpuLevel::kV3>(8, transpose_v3<T>);
#endif
  return kernels_of<T, kProduct, CpuLevel::kBase>(4, transpose_base<T>);
}

}  // namespace

template <>
const TileKernels<float>& tile_kernels<float>() {
  static const TileKernels<float> kernels = for_this_cpu<float>();
  return kernels;
}

template <>
const TileKernels<uint32_t>& tile_kernels<uint32_t>() {
  static const TileKernels<uint32_t> kernels = for_this_cpu<uint32_t>();
  return kernels;
}

const TileKernels<uint32_t>& pair_tile_kernels() {
  static const TileKernels<uint32_t> kernels = for_this_cpu<uint32_t, Product::kPairs>();
  return kernels;
}

}  // namespace meshd::kernels
