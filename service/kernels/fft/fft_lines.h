// Complex transforms of one length: of several lines side by side, or of one long line by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/fft/fft_line64.h"
#include "service/kernels/fft/fft_stages.h"

namespace meshd::kernels {

/// The view of an inverse transform: real and imaginary parts change places before it and after it.
template <class View>
View swapped(View view) {
  std::swap(view.re, view.im);
  return view;
}

/// Lines side by side: element j of line q is at(j * pitch + q * lane_pitch) of `view`.
template <class View>
struct Lanes {
  View view;
  int64_t pitch = 1;
  int64_t lane_pitch = 1;
};

/// A length whose factors are small, of lines side by side. One whose passes would leave the first level cache is split
/// into rows x columns, both of which stay there: every so many elements are transformed, twiddled, and transformed
/// with their neighbours (four-step algorithm without the transposition, as a vector has one element of many lines).
template <class T>
class LanesFft {
 public:
  LanesFft() = default;
  explicit LanesFft(int64_t length);

  [[nodiscard]] int64_t length() const { return rows_ * columns_; }
  /// Elements of T of scratch that run() needs, aligned to 64 bytes.
  [[nodiscard]] int64_t scratch_elements() const;
  /// `count` <= kFftLanes<T> lines, times `scale`, in place or not. Lane pitches are 1.
  void run(const Lanes<ComplexView<const T>>& from, int64_t count, const Lanes<ComplexView<T>>& to, T scale,
           T* scratch) const;

 private:
  int64_t rows_ = 1;     ///< length of the first transforms; 1: not split
  int64_t columns_ = 1;  ///< of the second ones
  FftPasses<T> first_;
  FftPasses<T> second_;
  std::vector<T> factors_[2];  ///< e^(-2 pi i jk/length) for j < columns, k < rows
};

/// A length whose factors are small, split into rows x columns: the columns are transformed together, twiddled and
/// transposed, then the rows (four-step algorithm), together or each by its definition.
template <class T>
class LongFft {
 public:
  explicit LongFft(int64_t length);

  /// Elements of T of scratch that run() needs, aligned to 64 bytes.
  [[nodiscard]] int64_t scratch_elements() const;
  /// Transforms `length` elements, times `scale`. `from` and `to` may be the same memory.
  void run(ComplexView<const T> from, ComplexView<T> to, T scale, T* scratch, core::Checkpoint* checkpoint) const;
  [[nodiscard]] int64_t length() const { return rows_ * columns_; }

 private:
  int64_t rows_ = 1;     ///< length of the first transforms
  int64_t columns_ = 1;  ///< of the second ones
  int64_t column_pitch_ = 0;
  int64_t row_pitch_ = 0;
  int64_t column_lanes_ = 0;  ///< columns, and then rows, that are transformed at a time
  int64_t row_lanes_ = 0;
  FftPasses<T> first_;
  FftPasses<T> second_;
  int64_t near_pitch_ = 0;
  int64_t far_pitch_ = 0;
  std::vector<T> near_[2];
  std::vector<T> far_[2];
  std::vector<T> direct_;          ///< of rows with a large prime factor, too few of them to fill a vector
  FftLine64<T> square_ = nullptr;  ///< of the length that fits into registers
};

/// The chirp of Bluestein: a transform of any length by a convolution whose length has small factors.
template <class T>
struct Chirp {
  int64_t length = 0;
  int64_t padded = 0;
  std::vector<T> factor[2];  ///< e^(-pi i j^2/length), real and imaginary
  std::vector<T> kernel[2];  ///< transform of the conjugate chirp, over `padded`
};
template <class T>
Chirp<T> make_chirp(int64_t length, int64_t padded);

/// A transform of one length. Immutable; any thread.
template <class T>
class LineFft {
 public:
  /// `is_strided`: the elements of a line are not contiguous, those of neighbouring lines are.
  LineFft(int64_t length, bool is_strided);

  [[nodiscard]] int64_t length() const { return length_; }
  /// True when one line alone fills the vectors: use run_line(). Else run_lanes(), kFftLanes<T> lines at a time.
  [[nodiscard]] bool is_long() const { return long_.has_value(); }
  /// Elements of T of scratch, aligned to 64 bytes.
  [[nodiscard]] int64_t scratch_elements() const;

  /// One line. `from` and `to` may be the same memory.
  void run_line(ComplexView<const T> from, ComplexView<T> to, T scale, T* scratch,
                core::Checkpoint* checkpoint = nullptr) const;
  /// `count` <= kFftLanes<T> lines, in place or not.
  void run_lanes(const Lanes<ComplexView<const T>>& from, int64_t count, const Lanes<ComplexView<T>>& to, T scale,
                 T* scratch) const;

 private:
  int64_t length_ = 1;
  std::optional<Chirp<T>> chirp_;  ///< where the factors are not small
  LanesFft<T> lanes_;              ///< of the length, or of the convolution's; not when is_long()
  std::optional<LongFft<T>> long_;
};

}  // namespace meshd::kernels
