// The vector part of transforms: one transform over many interleaved lines, real and imaginary parts in planes of their
// own. Element j of line q is plane[j * lanes + q]. Lines are independent, so a line's bits do not depend on its
// neighbours.
#pragma once

#include <cstdint>
#include <vector>

namespace meshd::kernels {

/// Lines are taken by as many as fill this many bytes, the widest vector of any processor; those with narrower ones
/// take several for each group.
inline constexpr int64_t kFftGroupBytes = 64;
template <class T>
inline constexpr int64_t kFftLanes = kFftGroupBytes / static_cast<int64_t>(sizeof(T));

/// Largest prime that a pass takes; lengths with larger ones go by Bluestein. Up to here its convolution is no faster,
/// and its errors are up to twice as large.
inline constexpr int64_t kFftMaxRadix = 97;

/// e^(-2 pi i k/n), to the last bit or nearly.
struct UnitRoot {
  double re = 1;
  double im = 0;
};
UnitRoot unit_root(int64_t k, int64_t n);

/// Real and imaginary plane.
template <class T>
struct Planes {
  T* re = nullptr;
  T* im = nullptr;
};

/// Where complex numbers come from or go to: {base, base + 1, 2} for interleaved ones, planes with step 1; re and im
/// swapped make a forward transform an inverse one.
template <class T>
struct ComplexView {
  T* re = nullptr;
  T* im = nullptr;
  int64_t step = 1;  ///< 1 or 2, where nothing else is said

  [[nodiscard]] ComplexView at(int64_t element) const { return {re + element * step, im + element * step, step}; }
};

/// The passes of a length whose prime factors are all at most kFftMaxRadix.
template <class T>
struct FftPasses {
  struct Pass {
    int64_t radix = 0;
    int64_t rest = 0;      ///< length that later passes transform
    int64_t twiddles = 0;  ///< where its factors begin in `table`: for p in [0, rest), for k in [1, radix): re, im
    int64_t roots = 0;     ///< of odd radices: cosine and sine of 2 pi k/radix for k in [0, radix)
  };
  int64_t length = 1;
  std::vector<Pass> passes;
  std::vector<T> table;
};

int64_t largest_prime_factor(int64_t length);
template <class T>
FftPasses<T> make_passes(int64_t length);

/// Cosines, then sines, of 2 pi jk/length, for j in [1, length/2]: a row of k in [1, length/2], whole groups of
/// kFftGroupBytes.
template <class T>
std::vector<T> direct_table(int64_t length);

/// The loops, for this processor. Planes are aligned to 64 bytes; `lanes` is a multiple of kFftLanes<T>.
template <class T>
struct FftLoops {
  /// Transforms x in place of x or into y, both of passes.length * lanes elements; true: into y.
  bool (*transform)(const FftPasses<T>& passes, int64_t lanes, Planes<T> x, Planes<T> y) = nullptr;
  /// to[j * lanes + q] = from[j * pitch + q] for q < columns, zero for the other lanes.
  void (*load)(ComplexView<const T> from, int64_t rows, int64_t pitch, int64_t columns, int64_t lanes,
               Planes<T> to) = nullptr;
  /// The inverse, times `scale`.
  void (*store)(Planes<const T> from, int64_t rows, int64_t pitch, int64_t columns, int64_t lanes, T scale,
                ComplexView<T> to) = nullptr;
  /// A matrix of rows x lanes, element for element times a row of factors, transposed into to[q * pitch + j]; rows from
  /// `rows` to the next multiple of kFftLanes<T> become zeros. The factor of element (j, q) is near[j * near_pitch + q
  /// % near_pitch], times far[j * far_pitch + q / near_pitch] where `far` is there. near_pitch is a multiple of
  /// kFftLanes<T>.
  void (*twiddle_transpose)(Planes<const T> from, int64_t rows, int64_t lanes, Planes<const T> near, int64_t near_pitch,
                            Planes<const T> far, int64_t far_pitch, Planes<T> to, int64_t pitch) = nullptr;
  /// to[i] = from[i] * factor[i], complex.
  void (*multiply)(ComplexView<const T> from, Planes<const T> factor, int64_t count, ComplexView<T> to) = nullptr;
  /// to[i * lanes + q] = from[i * lanes + q] * factor[i].
  void (*multiply_rows)(Planes<const T> from, Planes<const T> factor, int64_t rows, int64_t lanes,
                        Planes<T> to) = nullptr;
  /// One line of an odd length of at most kFftMaxRadix, times `scale`, by its definition; `table` is direct_table() of
  /// the length. Views of any step.
  void (*direct)(ComplexView<const T> from, const T* table, int64_t length, T scale, ComplexView<T> to) = nullptr;
};
template <class T>
const FftLoops<T>& fft_loops();

}  // namespace meshd::kernels
