#include "service/kernels/fft/fft_line64.h"

#include <algorithm>
#include <utility>

#include "service/kernels/cpu.h"
#include "service/kernels/fft/fft_butterflies.h"

namespace meshd::kernels {
namespace {

constexpr int kSide = 8;

template <class T>
struct Eight {
  typedef T Type __attribute__((vector_size(kSide * sizeof(T))));
  typedef T Loose __attribute__((vector_size(kSide * sizeof(T)), aligned(alignof(T))));  // in memory
};

/// Columns become rows: blocks of 4, 2 and 1 lanes change places.
template <class V>
[[gnu::always_inline]] inline void transpose(V* rows) {
  for (int i = 0; i < 4; ++i) {
    const V a = rows[i];
    const V b = rows[i + 4];
    rows[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    rows[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (const int i : {0, 1, 4, 5}) {
    const V a = rows[i];
    const V b = rows[i + 2];
    rows[i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    rows[i + 2] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (const int i : {0, 2, 4, 6}) {
    const V a = rows[i];
    const V b = rows[i + 1];
    rows[i] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    rows[i + 1] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  }
}

template <class T>
[[gnu::always_inline]] inline void line(ComplexView<const T> from, Planes<const T> twiddles, int64_t pitch, T scale,
                                        ComplexView<T> to) {
  using V = typename Eight<T>::Type;
  using Loose = typename Eight<T>::Loose;
  Complex<V> x[kSide];
  // Element 8 j + q is lane q of x[j].
  const bool swaps_in = from.im < from.re;
  const T* const base = swaps_in ? from.im : from.re;
  for (int j = 0; j < kSide; ++j) {
    const V a = *reinterpret_cast<const Loose*>(base + 2 * kSide * j);
    const V b = *reinterpret_cast<const Loose*>(base + 2 * kSide * j + kSide);
    x[j] = {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
            __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)};
  }
  if (swaps_in) {
    for (Complex<V>& one : x) std::swap(one.re, one.im);
  }
  transform_even<kSide, T>(x);
  V re[kSide];
  V im[kSide];
  re[0] = x[0].re;
  im[0] = x[0].im;
  for (int k = 1; k < kSide; ++k) {
    const V c = *reinterpret_cast<const Loose*>(twiddles.re + k * pitch);
    const V s = *reinterpret_cast<const Loose*>(twiddles.im + k * pitch);
    re[k] = x[k].re * c - x[k].im * s;
    im[k] = x[k].re * s + x[k].im * c;
  }
  transpose(re);
  transpose(im);
  for (int j = 0; j < kSide; ++j) x[j] = {re[j], im[j]};
  transform_even<kSide, T>(x);
  // Value 8 k + q is lane q of x[k].
  const bool swaps_out = to.im < to.re;
  T* const target = swaps_out ? to.im : to.re;
  for (int k = 0; k < kSide; ++k) {
    const V first = (swaps_out ? x[k].im : x[k].re) * scale;
    const V second = (swaps_out ? x[k].re : x[k].im) * scale;
    *reinterpret_cast<Loose*>(target + 2 * kSide * k) =
        __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
    *reinterpret_cast<Loose*>(target + 2 * kSide * k + kSide) =
        __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
  }
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("arch=x86-64-v3")]] void line_v3(ComplexView<const T> from, Planes<const T> twiddles, int64_t pitch,
                                               T scale, ComplexView<T> to) {
  line(from, twiddles, pitch, scale, to);
}
template <class T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void line_v4(ComplexView<const T> from,
                                                                       Planes<const T> twiddles, int64_t pitch, T scale,
                                                                       ComplexView<T> to) {
  line(from, twiddles, pitch, scale, to);
}
#endif

}  // namespace

template <class T>
FftLine64<T> fft_line64() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return line_v4<T>;
  if (cpu_level() == CpuLevel::kV3 && sizeof(T) == sizeof(float)) return line_v3<T>;
#endif
  return nullptr;
}

template FftLine64<float> fft_line64<float>();
template FftLine64<double> fft_line64<double>();

}  // namespace meshd::kernels
