// One line of 64 complex values: a square of 8 x 8 whose columns and then rows are transformed in registers, so that a
// single short line wastes no lanes of vectors made for many lines. Pure; any thread.
#pragma once

#include "service/kernels/fft/fft_stages.h"

namespace meshd::kernels {

inline constexpr int64_t kFftLine64 = 64;

/// Transforms the line times `scale`. Both views are interleaved (step 2; swapped ones make the inverse) and may be the
/// same memory; `twiddles` has e^(-2 pi i jk/64) at [k * pitch + j], k and j below 8.
template <class T>
using FftLine64 = void (*)(ComplexView<const T> from, Planes<const T> twiddles, int64_t pitch, T scale,
                           ComplexView<T> to);

/// The loop for this processor; null where its vectors are shorter than a row, which more registers would have to hold
/// than there are.
template <class T>
FftLine64<T> fft_line64();

}  // namespace meshd::kernels
