#include "service/kernels/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "service/kernels/fft/fft_lines.h"

namespace meshd::kernels {
namespace {

int64_t product(const std::vector<int64_t>& lengths, size_t begin, size_t end) {
  return std::accumulate(lengths.begin() + static_cast<int64_t>(begin), lengths.begin() + static_cast<int64_t>(end),
                         int64_t{1}, std::multiplies<>());
}

template <class T>
ComplexView<T> interleaved(T* base) {
  return {base, base + 1, 2};
}
template <class T>
ComplexView<const T> interleaved(const T* base) {
  return {base, base + 1, 2};
}

/// The two halves of a real line of even length, as real and imaginary parts of one complex line, separated again and
/// together.
template <class T>
class RealHalves {
 public:
  explicit RealHalves(int64_t half) : half_(half) {
    for (int64_t k = 0; k <= half; ++k) {
      const UnitRoot root = unit_root(k, 2 * half);
      root_.push_back(static_cast<T>(root.re));
      root_.push_back(static_cast<T>(root.im));
    }
  }

  /// half complex values z to half + 1 values x.
  void split(const T* z, T* x) const {
    const T h = T{1} / 2;
    for (int64_t k = 0; k <= half_; ++k) {
      const int64_t a = k == half_ ? 0 : k;
      const int64_t b = k == 0 ? 0 : half_ - k;
      const T even_re = (z[2 * a] + z[2 * b]) * h;
      const T even_im = (z[2 * a + 1] - z[2 * b + 1]) * h;
      const T odd_re = (z[2 * a + 1] + z[2 * b + 1]) * h;
      const T odd_im = (z[2 * b] - z[2 * a]) * h;
      const T c = root_[static_cast<size_t>(2 * k)];
      const T s = root_[static_cast<size_t>(2 * k + 1)];
      x[2 * k] = even_re + (c * odd_re - s * odd_im);
      x[2 * k + 1] = even_im + (c * odd_im + s * odd_re);
    }
    x[1] = x[2 * half_ + 1] = 0;
  }

  /// half + 1 values x, whose ends count as real, to half values z.
  void join(const T* x, T* z) const {
    const T h = T{1} / 2;
    for (int64_t k = 0; k < half_; ++k) {
      const int64_t b = half_ - k;
      const T a_im = k == 0 ? 0 : x[2 * k + 1];
      const T b_im = k == 0 ? 0 : x[2 * b + 1];
      const T even_re = (x[2 * k] + x[2 * b]) * h;
      const T even_im = (a_im - b_im) * h;
      const T re = (x[2 * k] - x[2 * b]) * h;
      const T im = (a_im + b_im) * h;
      const T c = root_[static_cast<size_t>(2 * k)];
      const T s = -root_[static_cast<size_t>(2 * k + 1)];
      const T odd_re = re * c - im * s;
      const T odd_im = re * s + im * c;
      z[2 * k] = even_re - odd_im;
      z[2 * k + 1] = even_im + odd_re;
    }
  }

 private:
  int64_t half_;
  std::vector<T> root_;
};

template <class T>
class FftOf : public Fft::Impl {
 public:
  explicit FftOf(FftSpec spec) : spec_(std::move(spec)) {
    const std::vector<int64_t>& lengths = spec_.lengths;
    last_ = lengths.back();
    total_ = product(lengths, 0, lengths.size());
    is_real_ = spec_.kind == FftKind::kRealForward || spec_.kind == FftKind::kRealInverse;
    is_inverse_ = spec_.kind == FftKind::kInverse || spec_.kind == FftKind::kRealInverse;
    complex_last_ = is_real_ ? last_ / 2 + 1 : last_;
    if (total_ == 0 || spec_.batch == 0) return;
    is_halved_ = is_real_ && last_ % 2 == 0;
    last_line_.emplace(is_halved_ ? last_ / 2 : last_, false);
    if (is_halved_) halves_.emplace(last_ / 2);
    int64_t scratch = last_line_->scratch_elements();
    for (size_t d = 0; d + 1 < lengths.size(); ++d) {
      lines_.emplace_back(lengths[d], true);
      scratch =
          std::max(scratch, lines_.back().scratch_elements() + (lines_.back().is_long() ? 2 * lengths[d] + 16 : 0));
    }
    complex_size_ = total_ / last_ * complex_last_;
    group_ = last_line_->is_long() ? 1 : kFftLanes<T>;
    // Lines, groups of lines that are converted from or to real ones, and intermediates of the first dimensions of an
    // inverse.
    line_scratch_ = rounded(scratch);
    group_scratch_ = is_real_ ? rounded(2 * group_ * last_line_->length()) : 0;
    const int64_t array_scratch =
        spec_.kind == FftKind::kRealInverse && !lines_.empty() ? rounded(2 * complex_size_) : 0;
    scratch_bytes = (line_scratch_ + group_scratch_ + array_scratch) * static_cast<int64_t>(sizeof(T));
    arrays_in_work_item_ = lines_.empty() ? group_ : 1;
    work_count = (spec_.batch + arrays_in_work_item_ - 1) / arrays_in_work_item_;
    const auto size = static_cast<double>(total_);
    flops = static_cast<double>(spec_.batch) * 5 * size * std::log2(std::max(2.0, size)) * (is_real_ ? 0.5 : 1);
  }

  void run(const std::byte* in, std::byte* out, std::byte* scratch, int64_t begin, int64_t end,
           core::Checkpoint* checkpoint) const override {
    const bool real_in = spec_.kind == FftKind::kRealForward;
    const bool real_out = spec_.kind == FftKind::kRealInverse;
    const T* const from = reinterpret_cast<const T*>(in);
    T* const to = reinterpret_cast<T*>(out);
    const int64_t in_size = real_in ? total_ : 2 * complex_size_;
    const int64_t out_size = real_out ? total_ : 2 * complex_size_;
    const Memory memory = {reinterpret_cast<T*>(scratch), checkpoint};
    for (int64_t work_item = begin; work_item < end; ++work_item) {
      const int64_t first = work_item * arrays_in_work_item_;
      const int64_t arrays = std::min(arrays_in_work_item_, spec_.batch - first);
      run_arrays(from + first * in_size, to + first * out_size, arrays * (total_ / last_), memory);
    }
  }

 private:
  // What transforms of one call take along.
  struct Memory {
    T* scratch;
    core::Checkpoint* checkpoint;
  };

  static int64_t rounded(int64_t elements) { return (elements + kFftLanes<T> - 1) / kFftLanes<T> * kFftLanes<T>; }

  /// `lines` lines along the last dimension: several short arrays of one dimension, or all of one array.
  void run_arrays(const T* in, T* out, int64_t lines, const Memory& memory) const {
    T* const group = memory.scratch + line_scratch_;
    const T scale = is_inverse_ ? static_cast<T>(1 / (static_cast<double>(total_) / (is_halved_ ? 2 : 1))) : T{1};
    if (spec_.kind != FftKind::kRealInverse) {
      along_last(in, out, lines, scale, memory, group);
      for (size_t d = 0; d < lines_.size(); ++d) along(d, out, out, memory);
      return;
    }
    T* const array = group + group_scratch_;
    for (size_t d = 0; d < lines_.size(); ++d) along(d, d == 0 ? in : array, array, memory);
    along_last(lines_.empty() ? in : array, out, lines, scale, memory, group);
  }

  /// Contiguous complex lines, `count` <= group_.
  void transform(const T* in, T* out, int64_t count, T scale, const Memory& memory) const {
    const int64_t length = last_line_->length();
    ComplexView<const T> from = interleaved(in);
    ComplexView<T> to = interleaved(out);
    if (is_inverse_) {
      from = swapped(from);
      to = swapped(to);
    }
    if (last_line_->is_long()) {
      last_line_->run_line(from, to, scale, memory.scratch, memory.checkpoint);
    } else {
      last_line_->run_lanes(from, 1, length, count, to, scale, memory.scratch);
    }
  }

  void along_last(const T* in, T* out, int64_t lines, T scale, const Memory& memory, T* group) const {
    for (int64_t first = 0; first < lines; first += group_) {
      core::pass(memory.checkpoint);
      const int64_t count = std::min(group_, lines - first);
      if (!is_real_) {
        transform(in + first * 2 * last_, out + first * 2 * last_, count, scale, memory);
      } else if (spec_.kind == FftKind::kRealForward) {
        real_forward(in + first * last_, out + first * 2 * complex_last_, count, memory, group);
      } else {
        real_inverse(in + first * 2 * complex_last_, out + first * last_, count, scale, memory, group);
      }
    }
  }

  void real_forward(const T* in, T* out, int64_t count, const Memory& memory, T* group) const {
    const int64_t length = last_line_->length();
    if (is_halved_) {
      transform(in, group, count, 1, memory);
      for (int64_t q = 0; q < count; ++q) halves_->split(group + q * 2 * length, out + q * 2 * complex_last_);
      return;
    }
    for (int64_t i = 0; i < count * length; ++i) {
      group[2 * i] = in[i];
      group[2 * i + 1] = 0;
    }
    transform(group, group, count, 1, memory);
    for (int64_t q = 0; q < count; ++q) {
      T* const line = out + q * 2 * complex_last_;
      std::copy_n(group + q * 2 * length, 2 * complex_last_, line);
      line[1] = 0;
    }
  }

  void real_inverse(const T* in, T* out, int64_t count, T scale, const Memory& memory, T* group) const {
    const int64_t length = last_line_->length();
    if (is_halved_) {
      for (int64_t q = 0; q < count; ++q) halves_->join(in + q * 2 * complex_last_, group + q * 2 * length);
      return transform(group, out, count, scale, memory);
    }
    for (int64_t q = 0; q < count; ++q) {
      const T* const from = in + q * 2 * complex_last_;
      T* const line = group + q * 2 * length;
      line[0] = from[0];
      line[1] = 0;
      for (int64_t k = 1; k < complex_last_; ++k) {
        line[2 * k] = line[2 * (length - k)] = from[2 * k];
        line[2 * k + 1] = from[2 * k + 1];
        line[2 * (length - k) + 1] = -from[2 * k + 1];
      }
    }
    transform(group, group, count, scale, memory);
    for (int64_t i = 0; i < count * length; ++i) out[i] = group[2 * i];
  }

  /// One array along dimension d, which is not the last one; in place or not.
  void along(size_t d, const T* in, T* out, const Memory& memory) const {
    const LineFft<T>& line = lines_[d];
    const int64_t inner = product(spec_.lengths, d + 1, spec_.lengths.size()) / last_ * complex_last_;
    const int64_t outer = product(spec_.lengths, 0, d);
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t base = 2 * o * line.length() * inner;
      for (int64_t q = 0; q < inner; q += line.is_long() ? 1 : kFftLanes<T>) {
        core::pass(memory.checkpoint);
        if (line.is_long()) {
          strided_line(line, in + base + 2 * q, out + base + 2 * q, inner, memory);
          continue;
        }
        ComplexView<const T> from = interleaved(in + base + 2 * q);
        ComplexView<T> to = interleaved(out + base + 2 * q);
        if (is_inverse_) {
          from = swapped(from);
          to = swapped(to);
        }
        line.run_lanes(from, inner, 1, std::min(kFftLanes<T>, inner - q), to, 1, memory.scratch);
      }
    }
  }

  void strided_line(const LineFft<T>& line, const T* in, T* out, int64_t pitch, const Memory& memory) const {
    T* const work = memory.scratch + rounded(line.scratch_elements());
    for (int64_t j = 0; j < line.length(); ++j) {
      work[2 * j] = in[2 * j * pitch];
      work[2 * j + 1] = in[2 * j * pitch + 1];
    }
    ComplexView<T> view = interleaved(work);
    if (is_inverse_) view = swapped(view);
    line.run_line({view.re, view.im, 2}, view, 1, memory.scratch, memory.checkpoint);
    for (int64_t j = 0; j < line.length(); ++j) {
      out[2 * j * pitch] = work[2 * j];
      out[2 * j * pitch + 1] = work[2 * j + 1];
    }
  }

  FftSpec spec_;
  int64_t last_ = 0;          ///< last length of the real side
  int64_t complex_last_ = 0;  ///< and of the complex side
  int64_t total_ = 0;         ///< elements of an array, real side
  int64_t complex_size_ = 0;
  bool is_real_ = false;
  bool is_inverse_ = false;
  bool is_halved_ = false;  ///< real lines of even length are transformed as complex ones of half of it
  std::optional<LineFft<T>> last_line_;
  std::optional<RealHalves<T>> halves_;
  std::vector<LineFft<T>> lines_;  ///< of the dimensions before the last
  int64_t group_ = 1;              ///< lines along the last dimension at a time
  int64_t arrays_in_work_item_ = 1;
  int64_t line_scratch_ = 0;
  int64_t group_scratch_ = 0;
};

}  // namespace

Fft::Fft(FftSpec spec) {
  if (spec.is_double) {
    impl_ = std::make_shared<FftOf<double>>(std::move(spec));
  } else {
    impl_ = std::make_shared<FftOf<float>>(std::move(spec));
  }
}

int64_t Fft::work_count() const { return impl_->work_count; }
int64_t Fft::scratch_bytes() const { return impl_->scratch_bytes; }
double Fft::flops() const { return impl_->flops; }

void Fft::run(const std::byte* in, std::byte* out, std::byte* scratch, int64_t begin, int64_t end,
              core::Checkpoint* checkpoint) const {
  impl_->run(in, out, scratch, begin, end, checkpoint);
}

}  // namespace meshd::kernels
