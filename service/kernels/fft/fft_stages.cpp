#include "service/kernels/fft/fft_stages.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "service/kernels/cpu.h"
#include "service/kernels/fft/fft_butterflies.h"
#include "service/kernels/fft/fft_vectors.h"

// Vectors wider than the processor's are passed by reference only; nothing depends on how they would be passed.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace meshd::kernels {
namespace {

/// Terms of a sum that are added along one chain: the rounding errors of longer ones add up.
constexpr int kChainTerms = 16;

/// A transform of odd length, of at most kMost, by sums and differences of the elements that mirror each other.
template <int kMost, class T, class V>
[[gnu::always_inline]] inline void transform_odd(int radix, const T* roots, Complex<V>* a) {
  const int half = (radix - 1) / 2;
  Complex<V> out[kMost];
  out[0] = a[0];
  for (int j = 1; j <= half; ++j) {
    add_sub(a[j], a[radix - j], a[j], a[radix - j]);
    out[0] = {out[0].re + a[j].re, out[0].im + a[j].im};
  }
  // Two results at a time: an element is loaded once for both, and neither waits for its own sums.
  for (int first = 1; first <= half; first += 2) {
    const int results[2] = {first, first < half ? first + 1 : first};
    Complex<V> even[2];
    Complex<V> odd[2];
    for (int begin = 1; begin <= half; begin += kChainTerms) {
      const int end = begin + kChainTerms <= half ? begin + kChainTerms : half + 1;
      const Complex<V>& cosines = a[begin];
      const Complex<V>& sines = a[radix - begin];
      Complex<V> more_even[2];
      Complex<V> more_odd[2];
      int turns[2];
      for (int i = 0; i < 2; ++i) {
        turns[i] = begin * results[i] % radix;
        const T cosine = roots[2 * turns[i]];
        const T sine = roots[2 * turns[i] + 1];
        if (begin == 1) {
          more_even[i] = {a[0].re + cosines.re * cosine, a[0].im + cosines.im * cosine};
        } else {
          more_even[i] = {cosines.re * cosine, cosines.im * cosine};
        }
        more_odd[i] = {sines.re * sine, sines.im * sine};
      }
      for (int j = begin + 1; j < end; ++j) {
        for (int i = 0; i < 2; ++i) {
          turns[i] += turns[i] + results[i] >= radix ? results[i] - radix : results[i];
          const T cosine = roots[2 * turns[i]];
          const T sine = roots[2 * turns[i] + 1];
          more_even[i] = {more_even[i].re + a[j].re * cosine, more_even[i].im + a[j].im * cosine};
          more_odd[i] = {more_odd[i].re + a[radix - j].re * sine, more_odd[i].im + a[radix - j].im * sine};
        }
      }
      for (int i = 0; i < 2; ++i) {
        even[i] = begin == 1 ? more_even[i] : Complex<V>{even[i].re + more_even[i].re, even[i].im + more_even[i].im};
        odd[i] = begin == 1 ? more_odd[i] : Complex<V>{odd[i].re + more_odd[i].re, odd[i].im + more_odd[i].im};
      }
    }
    for (int i = 0; i < 2; ++i) {
      out[results[i]] = {even[i].re + odd[i].im, even[i].im - odd[i].re};
      out[radix - results[i]] = {even[i].re - odd[i].im, even[i].im + odd[i].re};
    }
  }
  for (int k = 0; k < radix; ++k) a[k] = out[k];
}

/// One pass: from[q + lanes (p + rest j)] to to[q + lanes (radix p + k)], for lanes that earlier passes have
/// multiplied.
template <int kRadix, bool kLast, int64_t kBytes, class T>
[[gnu::always_inline]] inline void pass_loop(int runtime_radix, int64_t rest, int64_t lanes, const T* twiddles,
                                             const T* roots, Planes<const T> from, Planes<T> to) {
  using V = typename Vectors<T, kBytes>::Type;
  const int radix = kRadix == 0 ? runtime_radix : kRadix;
  const int64_t step = rest * lanes;
  for (int64_t p = 0; p < rest; ++p) {
    const T* const factors = twiddles + p * 2 * (radix - 1);
    const T* const from_re = from.re + p * lanes;
    const T* const from_im = from.im + p * lanes;
    T* const to_re = to.re + p * radix * lanes;
    T* const to_im = to.im + p * radix * lanes;
    for (int64_t q = 0; q < lanes; q += Vectors<T, kBytes>::kCount) {
      constexpr int kMost = kRadix == 0 ? kFftMaxRadix : kRadix;
      Complex<V> a[kMost];
      a[0] = {*reinterpret_cast<const V*>(from_re + q), *reinterpret_cast<const V*>(from_im + q)};
      for (int j = 1; j < radix; ++j) {
        a[j] = {*reinterpret_cast<const V*>(from_re + q + j * step),
                *reinterpret_cast<const V*>(from_im + q + j * step)};
      }
      if constexpr (kRadix != 0 && kRadix % 2 == 0) {
        transform_even<kRadix, T>(a);
      } else {
        transform_odd<kMost, T>(radix, roots, a);
      }
      *reinterpret_cast<V*>(to_re + q) = a[0].re;
      *reinterpret_cast<V*>(to_im + q) = a[0].im;
      for (int k = 1; k < radix; ++k) {
        if constexpr (kLast) {  // its factors are all one
          *reinterpret_cast<V*>(to_re + q + k * lanes) = a[k].re;
          *reinterpret_cast<V*>(to_im + q + k * lanes) = a[k].im;
          continue;
        }
        const T re = factors[2 * (k - 1)];
        const T im = factors[2 * (k - 1) + 1];
        *reinterpret_cast<V*>(to_re + q + k * lanes) = a[k].re * re - a[k].im * im;
        *reinterpret_cast<V*>(to_im + q + k * lanes) = a[k].re * im + a[k].im * re;
      }
    }
  }
}

template <int kRadix, int64_t kBytes, class T>
[[gnu::always_inline]] inline void run_pass(int radix, int64_t rest, int64_t lanes, const T* twiddles, const T* roots,
                                            Planes<const T> from, Planes<T> to) {
  if (rest == 1) return pass_loop<kRadix, true, kBytes>(radix, rest, lanes, twiddles, roots, from, to);
  pass_loop<kRadix, false, kBytes>(radix, rest, lanes, twiddles, roots, from, to);
}

template <int64_t kBytes, class T>
[[gnu::always_inline]] inline bool transform_lanes(const FftPasses<T>& passes, int64_t lanes, Planes<T> x,
                                                   Planes<T> y) {
  bool in_y = false;
  for (const auto& pass : passes.passes) {
    const Planes<const T> from = in_y ? Planes<const T>{y.re, y.im} : Planes<const T>{x.re, x.im};
    const Planes<T> to = in_y ? x : y;
    const T* const twiddles = passes.table.data() + pass.twiddles;
    const T* const roots = passes.table.data() + pass.roots;
    const int radix = static_cast<int>(pass.radix);
    switch (radix) {
      case 2:
        run_pass<2, kBytes>(2, pass.rest, lanes, twiddles, roots, from, to);
        break;
      case 3:
        run_pass<3, kBytes>(3, pass.rest, lanes, twiddles, roots, from, to);
        break;
      case 4:
        run_pass<4, kBytes>(4, pass.rest, lanes, twiddles, roots, from, to);
        break;
      case 5:
        run_pass<5, kBytes>(5, pass.rest, lanes, twiddles, roots, from, to);
        break;
      case 7:
        run_pass<7, kBytes>(7, pass.rest, lanes, twiddles, roots, from, to);
        break;
      case 8:
        run_pass<8, kBytes>(8, pass.rest, lanes, twiddles, roots, from, to);
        break;
      default:
        run_pass<0, kBytes>(radix, pass.rest, lanes, twiddles, roots, from, to);
        break;
    }
    lanes *= pass.radix;
    in_y = !in_y;
  }
  return in_y;
}

template <int64_t kStep, int64_t kBytes, class T>
[[gnu::always_inline]] inline void load_rows(ComplexView<const T> from, int64_t rows, int64_t pitch, int64_t columns,
                                             int64_t lanes, Planes<T> to) {
  using V = typename Vectors<T, kBytes>::Loose;
  using Both = Pairs<T, kBytes>;
  constexpr int64_t kCount = Vectors<T, kBytes>::kCount;
  // Of pairs, the part that comes first.
  const bool is_swapped = from.im < from.re;
  const T* const base = is_swapped ? from.im : from.re;
  const Planes<T> parts = is_swapped ? Planes<T>{to.im, to.re} : to;
  for (int64_t j = 0; j < rows; ++j) {
    T* const to_re = to.re + j * lanes;
    T* const to_im = to.im + j * lanes;
    int64_t q = 0;
    for (; q + kCount <= columns; q += kCount) {
      if constexpr (kStep == 2) {
        Both::load(base + 2 * (j * pitch + q), *reinterpret_cast<typename Both::V*>(parts.re + j * lanes + q),
                   *reinterpret_cast<typename Both::V*>(parts.im + j * lanes + q), Both::kLanes);
      } else {
        *reinterpret_cast<V*>(to_re + q) = *reinterpret_cast<const V*>(from.re + j * pitch + q);
        *reinterpret_cast<V*>(to_im + q) = *reinterpret_cast<const V*>(from.im + j * pitch + q);
      }
    }
    for (; q < columns; ++q) {
      to_re[q] = from.re[(j * pitch + q) * kStep];
      to_im[q] = from.im[(j * pitch + q) * kStep];
    }
    for (; q < lanes; ++q) to_re[q] = to_im[q] = 0;
  }
}

template <int64_t kStep, int64_t kBytes, class T>
[[gnu::always_inline]] inline void store_rows(Planes<const T> from, int64_t rows, int64_t pitch, int64_t columns,
                                              int64_t lanes, T scale, ComplexView<T> to) {
  using V = typename Vectors<T, kBytes>::Loose;
  using Both = Pairs<T, kBytes>;
  constexpr int64_t kCount = Vectors<T, kBytes>::kCount;
  const bool is_swapped = to.im < to.re;
  T* const base = is_swapped ? to.im : to.re;
  const Planes<const T> parts = is_swapped ? Planes<const T>{from.im, from.re} : from;
  for (int64_t j = 0; j < rows; ++j) {
    const T* const from_re = from.re + j * lanes;
    const T* const from_im = from.im + j * lanes;
    int64_t q = 0;
    for (; q + kCount <= columns; q += kCount) {
      if constexpr (kStep == 2) {
        Both::store(*reinterpret_cast<const V*>(parts.re + j * lanes + q) * scale,
                    *reinterpret_cast<const V*>(parts.im + j * lanes + q) * scale, base + 2 * (j * pitch + q),
                    Both::kLanes);
      } else {
        *reinterpret_cast<V*>(to.re + j * pitch + q) = *reinterpret_cast<const V*>(from_re + q) * scale;
        *reinterpret_cast<V*>(to.im + j * pitch + q) = *reinterpret_cast<const V*>(from_im + q) * scale;
      }
    }
    for (; q < columns; ++q) {
      to.re[(j * pitch + q) * kStep] = from_re[q] * scale;
      to.im[(j * pitch + q) * kStep] = from_im[q] * scale;
    }
  }
}

template <int64_t kBytes, class T>
[[gnu::always_inline]] inline void load_lanes(ComplexView<const T> from, int64_t rows, int64_t pitch, int64_t columns,
                                              int64_t lanes, Planes<T> to) {
  return from.step == 1 ? load_rows<1, kBytes>(from, rows, pitch, columns, lanes, to)
                        : load_rows<2, kBytes>(from, rows, pitch, columns, lanes, to);
}
template <int64_t kBytes, class T>
[[gnu::always_inline]] inline void store_lanes(Planes<const T> from, int64_t rows, int64_t pitch, int64_t columns,
                                               int64_t lanes, T scale, ComplexView<T> to) {
  return to.step == 1 ? store_rows<1, kBytes>(from, rows, pitch, columns, lanes, scale, to)
                      : store_rows<2, kBytes>(from, rows, pitch, columns, lanes, scale, to);
}

/// Of each two rows that are kBlock apart, blocks of kBlock lanes change places.
template <size_t kBlock, class V, size_t... kLane>
[[gnu::always_inline]] inline void exchange(V* rows, std::index_sequence<kLane...>) {
  constexpr size_t kCount = sizeof...(kLane);
  for (size_t i = 0; i < kCount; ++i) {
    if (i / kBlock % 2 == 1) continue;
    const V a = rows[i];
    const V b = rows[i + kBlock];
    rows[i] = __builtin_shufflevector(a, b, (kLane / kBlock % 2 == 1 ? kCount + kLane - kBlock : kLane)...);
    rows[i + kBlock] = __builtin_shufflevector(a, b, (kLane / kBlock % 2 == 1 ? kCount + kLane : kLane + kBlock)...);
  }
}

/// A square as wide as a vector, in registers.
template <int64_t kBytes, class T, class V>
[[gnu::always_inline]] inline void transpose_block(V* rows, T* to, int64_t pitch) {
  constexpr int64_t kCount = Vectors<T, kBytes>::kCount;
  constexpr auto kLanes = std::make_index_sequence<kCount>();
  if constexpr (kCount > 8) exchange<8>(rows, kLanes);
  if constexpr (kCount > 4) exchange<4>(rows, kLanes);
  if constexpr (kCount > 2) exchange<2>(rows, kLanes);
  exchange<1>(rows, kLanes);
  for (int64_t i = 0; i < kCount; ++i) *reinterpret_cast<V*>(to + i * pitch) = rows[i];
}

template <int64_t kBytes, class T>
[[gnu::always_inline]] inline void twiddle_transpose_lanes(Planes<const T> from, int64_t rows, int64_t lanes,
                                                           Planes<const T> near, int64_t near_pitch,
                                                           Planes<const T> far, int64_t far_pitch, Planes<T> to,
                                                           int64_t pitch) {
  using V = typename Vectors<T, kBytes>::Type;
  using Loose = typename Vectors<T, kBytes>::Loose;
  constexpr int64_t kCount = Vectors<T, kBytes>::kCount;
  const int64_t padded = (rows + kFftLanes<T> - 1) / kFftLanes<T> * kFftLanes<T>;
  for (int64_t first = 0; first < padded; first += kCount) {
    for (int64_t q = 0; q < lanes; q += kCount) {
      V re[kCount];
      V im[kCount];
      for (int64_t i = 0; i < kCount; ++i) {
        const int64_t j = first + i;
        if (j >= rows) {
          re[i] = V{};
          im[i] = V{};
          continue;
        }
        V x = *reinterpret_cast<const Loose*>(near.re + j * near_pitch + q % near_pitch);
        V y = *reinterpret_cast<const Loose*>(near.im + j * near_pitch + q % near_pitch);
        if (far.re != nullptr) {
          const T u = far.re[j * far_pitch + q / near_pitch];
          const T v = far.im[j * far_pitch + q / near_pitch];
          const V turned = x * u - y * v;
          y = x * v + y * u;
          x = turned;
        }
        const V a = *reinterpret_cast<const V*>(from.re + j * lanes + q);
        const V b = *reinterpret_cast<const V*>(from.im + j * lanes + q);
        re[i] = a * x - b * y;
        im[i] = a * y + b * x;
      }
      transpose_block<kBytes>(re, to.re + q * pitch + first, pitch);
      transpose_block<kBytes>(im, to.im + q * pitch + first, pitch);
    }
  }
}

template <int64_t kFrom, int64_t kTo, class T>
[[gnu::always_inline]] inline void multiply_steps(ComplexView<const T> from, Planes<const T> factor, int64_t count,
                                                  ComplexView<T> to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const T re = from.re[i * kFrom];
    const T im = from.im[i * kFrom];
    to.re[i * kTo] = re * factor.re[i] - im * factor.im[i];
    to.im[i * kTo] = re * factor.im[i] + im * factor.re[i];
  }
}

template <class T>
[[gnu::always_inline]] inline void multiply_lanes(ComplexView<const T> from, Planes<const T> factor, int64_t count,
                                                  ComplexView<T> to) {
  if (from.step == 1 && to.step == 1) return multiply_steps<1, 1>(from, factor, count, to);
  if (from.step == 1) return multiply_steps<1, 2>(from, factor, count, to);
  if (to.step == 1) return multiply_steps<2, 1>(from, factor, count, to);
  multiply_steps<2, 2>(from, factor, count, to);
}

template <int64_t kBytes, class T>
[[gnu::always_inline]] inline void multiply_rows_lanes(Planes<const T> from, Planes<const T> factor, int64_t rows,
                                                       int64_t lanes, Planes<T> to) {
  using V = typename Vectors<T, kBytes>::Type;
  for (int64_t j = 0; j < rows; ++j) {
    const T x = factor.re[j];
    const T y = factor.im[j];
    for (int64_t q = j * lanes; q < (j + 1) * lanes; q += Vectors<T, kBytes>::kCount) {
      const V re = *reinterpret_cast<const V*>(from.re + q);
      const V im = *reinterpret_cast<const V*>(from.im + q);
      *reinterpret_cast<V*>(to.re + q) = re * x - im * y;
      *reinterpret_cast<V*>(to.im + q) = re * y + im * x;
    }
  }
}

/// Places of groups that hold half of a line of at most kFftMaxRadix.
template <class T>
constexpr int64_t kHalfPitch = (kFftMaxRadix / 2 + kFftLanes<T> - 1) / kFftLanes<T>* kFftLanes<T>;

template <int64_t kBytes, class T>
[[gnu::always_inline]] inline void direct_line(ComplexView<const T> from, const T* table, int64_t length, T scale,
                                               ComplexView<T> to) {
  using V = typename Vectors<T, kBytes>::Type;
  using Loose = typename Vectors<T, kBytes>::Loose;
  constexpr int64_t kCount = Vectors<T, kBytes>::kCount;
  constexpr int kVectors = kFftGroupBytes / kBytes;
  const int64_t half = length / 2;
  const int64_t pitch = (half + kFftLanes<T> - 1) / kFftLanes<T> * kFftLanes<T>;
  const Complex<T> first = {from.re[0], from.im[0]};
  Complex<T> total = first;
  // Sums and differences of the elements that mirror each other.
  Complex<T> even[kFftMaxRadix / 2];
  Complex<T> odd[kFftMaxRadix / 2];
  for (int64_t j = 0; j < half; ++j) {
    const ComplexView<const T> x = from.at(j + 1);
    const ComplexView<const T> y = from.at(length - 1 - j);
    add_sub<T>({*x.re, *x.im}, {*y.re, *y.im}, even[j], odd[j]);
    total = {total.re + even[j].re, total.im + even[j].im};
  }
  alignas(kFftGroupBytes) T made[4][kHalfPitch<T>];
  for (int64_t k = 0; k < pitch; k += kFftLanes<T>) {
    V sums[kVectors][4]{};
    for (int64_t begin = 0; begin < half; begin += kChainTerms) {
      V chains[kVectors][4] = {};
      for (int64_t j = begin; j < std::min(half, begin + kChainTerms); ++j) {
        for (int v = 0; v < kVectors; ++v) {
          const T* const cosines = table + 2 * j * pitch + k + v * kCount;
          const V cosine = *reinterpret_cast<const Loose*>(cosines);
          const V sine = *reinterpret_cast<const Loose*>(cosines + pitch);
          chains[v][0] += even[j].re * cosine;
          chains[v][1] += even[j].im * cosine;
          chains[v][2] += odd[j].re * sine;
          chains[v][3] += odd[j].im * sine;
        }
      }
      for (int v = 0; v < kVectors; ++v) {
        for (int part = 0; part < 4; ++part) {
          sums[v][part] = begin == 0 ? chains[v][part] : sums[v][part] + chains[v][part];
        }
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<V*>(made[0] + k + v * kCount) = sums[v][0] + first.re;
      *reinterpret_cast<V*>(made[1] + k + v * kCount) = sums[v][1] + first.im;
      *reinterpret_cast<V*>(made[2] + k + v * kCount) = sums[v][2];
      *reinterpret_cast<V*>(made[3] + k + v * kCount) = sums[v][3];
    }
  }
  *to.re = total.re * scale;
  *to.im = total.im * scale;
  for (int64_t k = 0; k < half; ++k) {
    const ComplexView<T> x = to.at(k + 1);
    const ComplexView<T> y = to.at(length - 1 - k);
    *x.re = (made[0][k] + made[3][k]) * scale;
    *x.im = (made[1][k] - made[2][k]) * scale;
    *y.re = (made[0][k] - made[3][k]) * scale;
    *y.im = (made[1][k] + made[2][k]) * scale;
  }
}

/// One set of loops for each instruction level.
template <class T>
struct Base {
  static bool transform(const FftPasses<T>& passes, int64_t lanes, Planes<T> x, Planes<T> y) {
    return transform_lanes<16>(passes, lanes, x, y);
  }
  static void load(ComplexView<const T> from, int64_t rows, int64_t pitch, int64_t columns, int64_t lanes,
                   Planes<T> to) {
    load_lanes<16>(from, rows, pitch, columns, lanes, to);
  }
  static void store(Planes<const T> from, int64_t rows, int64_t pitch, int64_t columns, int64_t lanes, T scale,
                    ComplexView<T> to) {
    store_lanes<16>(from, rows, pitch, columns, lanes, scale, to);
  }
  static void twiddle_transpose(Planes<const T> from, int64_t rows, int64_t lanes, Planes<const T> near,
                                int64_t near_pitch, Planes<const T> far, int64_t far_pitch, Planes<T> to,
                                int64_t pitch) {
    twiddle_transpose_lanes<16>(from, rows, lanes, near, near_pitch, far, far_pitch, to, pitch);
  }
  static void multiply(ComplexView<const T> from, Planes<const T> factor, int64_t count, ComplexView<T> to) {
    multiply_lanes(from, factor, count, to);
  }
  static void multiply_rows(Planes<const T> from, Planes<const T> factor, int64_t rows, int64_t lanes, Planes<T> to) {
    multiply_rows_lanes<16>(from, factor, rows, lanes, to);
  }
  static void direct(ComplexView<const T> from, const T* table, int64_t length, T scale, ComplexView<T> to) {
    direct_line<16>(from, table, length, scale, to);
  }
};

#if defined(__x86_64__)
template <class T>
struct V3 {
  [[gnu::target("arch=x86-64-v3")]] static bool transform(const FftPasses<T>& passes, int64_t lanes, Planes<T> x,
                                                          Planes<T> y) {
    return transform_lanes<32>(passes, lanes, x, y);
  }
  [[gnu::target("arch=x86-64-v3")]] static void load(ComplexView<const T> from, int64_t rows, int64_t pitch,
                                                     int64_t columns, int64_t lanes, Planes<T> to) {
    load_lanes<32>(from, rows, pitch, columns, lanes, to);
  }
  [[gnu::target("arch=x86-64-v3")]] static void store(Planes<const T> from, int64_t rows, int64_t pitch,
                                                      int64_t columns, int64_t lanes, T scale, ComplexView<T> to) {
    store_lanes<32>(from, rows, pitch, columns, lanes, scale, to);
  }
  [[gnu::target("arch=x86-64-v3")]] static void twiddle_transpose(Planes<const T> from, int64_t rows, int64_t lanes,
                                                                  Planes<const T> near, int64_t near_pitch,
                                                                  Planes<const T> far, int64_t far_pitch, Planes<T> to,
                                                                  int64_t pitch) {
    twiddle_transpose_lanes<32>(from, rows, lanes, near, near_pitch, far, far_pitch, to, pitch);
  }
  [[gnu::target("arch=x86-64-v3")]] static void multiply(ComplexView<const T> from, Planes<const T> factor,
                                                         int64_t count, ComplexView<T> to) {
    multiply_lanes(from, factor, count, to);
  }
  [[gnu::target("arch=x86-64-v3")]] static void multiply_rows(Planes<const T> from, Planes<const T> factor,
                                                              int64_t rows, int64_t lanes, Planes<T> to) {
    multiply_rows_lanes<32>(from, factor, rows, lanes, to);
  }
  [[gnu::target("arch=x86-64-v3")]] static void direct(ComplexView<const T> from, const T* table, int64_t length,
                                                       T scale, ComplexView<T> to) {
    direct_line<32>(from, table, length, scale, to);
  }
};

template <class T>
struct V4 {
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static bool transform(const FftPasses<T>& passes,
                                                                                  int64_t lanes, Planes<T> x,
                                                                                  Planes<T> y) {
    return transform_lanes<64>(passes, lanes, x, y);
  }
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void load(ComplexView<const T> from, int64_t rows,
                                                                             int64_t pitch, int64_t columns,
                                                                             int64_t lanes, Planes<T> to) {
    load_lanes<64>(from, rows, pitch, columns, lanes, to);
  }
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void store(Planes<const T> from, int64_t rows,
                                                                              int64_t pitch, int64_t columns,
                                                                              int64_t lanes, T scale,
                                                                              ComplexView<T> to) {
    store_lanes<64>(from, rows, pitch, columns, lanes, scale, to);
  }
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void twiddle_transpose(
      Planes<const T> from, int64_t rows, int64_t lanes, Planes<const T> near, int64_t near_pitch, Planes<const T> far,
      int64_t far_pitch, Planes<T> to, int64_t pitch) {
    twiddle_transpose_lanes<64>(from, rows, lanes, near, near_pitch, far, far_pitch, to, pitch);
  }
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void multiply(ComplexView<const T> from,
                                                                                 Planes<const T> factor, int64_t count,
                                                                                 ComplexView<T> to) {
    multiply_lanes(from, factor, count, to);
  }
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void multiply_rows(Planes<const T> from,
                                                                                      Planes<const T> factor,
                                                                                      int64_t rows, int64_t lanes,
                                                                                      Planes<T> to) {
    multiply_rows_lanes<64>(from, factor, rows, lanes, to);
  }
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void direct(ComplexView<const T> from,
                                                                               const T* table, int64_t length, T scale,
                                                                               ComplexView<T> to) {
    direct_line<64>(from, table, length, scale, to);
  }
};
#endif

template <class T, template <class> class Level>
constexpr FftLoops<T> loops_of() {
  return {Level<T>::transform, Level<T>::load,          Level<T>::store, Level<T>::twiddle_transpose,
          Level<T>::multiply,  Level<T>::multiply_rows, Level<T>::direct};
}

template <class T>
FftLoops<T> choose_loops() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return loops_of<T, V4>();
  if (cpu_level() == CpuLevel::kV3) return loops_of<T, V3>();
#endif
  return loops_of<T, Base>();
}

/// Radices in the order of the passes: eights as long as no lone two is left, then fours, odd primes from large to
/// small.
std::vector<int64_t> radices_of(int64_t length) {
  std::vector<int64_t> out;
  for (int64_t prime = kFftMaxRadix; prime >= 3; prime -= 2) {
    bool is_prime = true;
    for (int64_t d = 3; d < prime; d += 2) is_prime = is_prime && prime % d != 0;
    for (; is_prime && length % prime == 0; length /= prime) out.push_back(prime);
  }
  int twos = 0;
  for (; length % 2 == 0; length /= 2) ++twos;
  for (; twos >= 3 && twos != 4; twos -= 3) out.push_back(8);
  for (; twos >= 2; twos -= 2) out.push_back(4);
  if (twos == 1) out.push_back(2);
  return out;
}

}  // namespace

UnitRoot unit_root(int64_t k, int64_t n) {
  k %= n;
  // Into the first eighth of the circle, where cosine and sine are at their best.
  const bool mirrored = 2 * k > n;
  if (mirrored) k = n - k;
  const bool beyond_quarter = 4 * k > n;
  int64_t numerator = 4 * k;  // in 4n-ths of a full circle
  if (beyond_quarter) numerator = 2 * n - numerator;
  const bool beyond_eighth = 2 * numerator > n;
  const auto angle = [n](int64_t parts) {
    return std::numbers::pi / 2 * (static_cast<double>(parts) / static_cast<double>(n));
  };
  double cosine = beyond_eighth ? std::sin(angle(n - numerator)) : std::cos(angle(numerator));
  const double sine = beyond_eighth ? std::cos(angle(n - numerator)) : std::sin(angle(numerator));
  if (beyond_quarter) cosine = -cosine;
  return {cosine, mirrored ? sine : -sine};
}

int64_t largest_prime_factor(int64_t length) {
  int64_t largest = 1;
  for (int64_t factor = 2; factor * factor <= length; ++factor) {
    for (; length % factor == 0; length /= factor) largest = factor;
  }
  return std::max(largest, length);
}

template <class T>
FftPasses<T> make_passes(int64_t length) {
  FftPasses<T> out;
  out.length = length;
  int64_t left = length;
  for (const int64_t radix : radices_of(length)) {
    typename FftPasses<T>::Pass pass;
    pass.radix = radix;
    pass.rest = left / radix;
    pass.twiddles = static_cast<int64_t>(out.table.size());
    const auto add = [&out](double re, double im) {
      out.table.push_back(static_cast<T>(re));
      out.table.push_back(static_cast<T>(im));
    };
    for (int64_t p = 0; p < pass.rest; ++p) {
      for (int64_t k = 1; k < radix; ++k) {
        const UnitRoot root = unit_root(p * k, left);
        add(root.re, root.im);
      }
    }
    pass.roots = static_cast<int64_t>(out.table.size());
    for (int64_t k = 0; k < radix; ++k) {
      const UnitRoot root = unit_root(k, radix);
      add(root.re, -root.im);
    }
    out.passes.push_back(pass);
    left = pass.rest;
  }
  return out;
}

template <class T>
std::vector<T> direct_table(int64_t length) {
  const int64_t half = length / 2;
  const int64_t pitch = (half + kFftLanes<T> - 1) / kFftLanes<T> * kFftLanes<T>;
  std::vector<T> out(static_cast<size_t>(2 * half * pitch));
  for (int64_t j = 0; j < half; ++j) {
    for (int64_t k = 0; k < half; ++k) {
      const UnitRoot root = unit_root((j + 1) * (k + 1), length);
      out[static_cast<size_t>(2 * j * pitch + k)] = static_cast<T>(root.re);
      out[static_cast<size_t>((2 * j + 1) * pitch + k)] = static_cast<T>(-root.im);
    }
  }
  return out;
}

template <class T>
const FftLoops<T>& fft_loops() {
  static const FftLoops<T> kLoops = choose_loops<T>();
  return kLoops;
}

template FftPasses<float> make_passes<float>(int64_t);
template FftPasses<double> make_passes<double>(int64_t);
template std::vector<float> direct_table<float>(int64_t);
template std::vector<double> direct_table<double>(int64_t);
template const FftLoops<float>& fft_loops<float>();
template const FftLoops<double>& fft_loops<double>();

}  // namespace meshd::kernels
