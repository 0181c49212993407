#include "service/kernels/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "service/kernels/fft/fft_lines.h"

namespace meshd::kernels {
namespace {

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

// Elements of a work item of lines.
constexpr int64_t kFftItemElements = 1 << 13;
// A smaller array is a work item, as it stays in the second level cache from one dimension to the next.
constexpr int64_t kMinSplitElements = 1 << 14;
// And so is one of up to so many bytes where there are many.
constexpr int64_t kCachedArrayBytes = 256 << 10;
constexpr int64_t kManyArrays = 16;
// Columns of a cache line, where they are transformed one by one; less where so many would take more than this.
constexpr int64_t kColumnBytes = 64;
constexpr int64_t kMaxColumnsBytes = 16 << 20;

template <class T>
class FftOf : public Fft::Impl {
 public:
  explicit FftOf(FftSpec spec) : spec_(std::move(spec)) {
    const std::vector<int64_t>& lengths = spec_.lengths;
    last_ = lengths.back();
    total_ = tensor::element_count(lengths);
    is_real_ = spec_.kind == FftKind::kRealForward || spec_.kind == FftKind::kRealInverse;
    is_inverse_ = spec_.kind == FftKind::kInverse || spec_.kind == FftKind::kRealInverse;
    complex_last_ = is_real_ ? last_ / 2 + 1 : last_;
    if (total_ == 0 || spec_.batch == 0) return;
    is_halved_ = is_real_ && last_ % 2 == 0;
    scale_ = is_inverse_ ? static_cast<T>(1 / (static_cast<double>(total_) / (is_halved_ ? 2 : 1))) : T{1};
    last_line_.emplace(is_halved_ ? last_ / 2 : last_, false);
    if (is_halved_) halves_.emplace(last_ / 2);
    complex_size_ = total_ / last_ * complex_last_;
    group_ = last_line_->is_long() ? 1 : kFftLanes<T>;
    int64_t scratch = last_line_->scratch_elements();
    for (size_t d = 0; d + 1 < lengths.size(); ++d) {
      Columns columns{LineFft<T>(lengths[d], true)};
      columns.inner = tensor::element_count(lengths, d + 1, lengths.size()) / last_ * complex_last_;
      columns.outer = tensor::element_count(lengths, 0, d);
      columns.at_once = columns_at_once(columns.line);
      columns.blocks = (columns.inner + columns.at_once - 1) / columns.at_once;
      scratch = std::max(scratch, rounded(columns.line.scratch_elements()) +
                                      (columns.line.is_long() ? rounded(2 * lengths[d] * columns.at_once) : 0));
      columns_.push_back(std::move(columns));
    }
    // Lines, and groups of lines that are converted from or to real ones.
    line_scratch_ = rounded(scratch);
    group_scratch_ = is_real_ ? rounded(2 * group_ * last_line_->length()) : 0;
    plan_work_items();
    const auto size = static_cast<double>(total_);
    flops = static_cast<double>(spec_.batch) * 5 * size * std::log2(std::max(2.0, size)) * (is_real_ ? 0.5 : 1);
  }

  void run(const Fft::Memory& memory, int64_t begin, int64_t end, core::Checkpoint* checkpoint) const override {
    Call call = {reinterpret_cast<const T*>(memory.in), reinterpret_cast<T*>(memory.out),
                 reinterpret_cast<T*>(memory.scratch), reinterpret_cast<T*>(memory.workspace), checkpoint};
    if (passes_.empty()) {
      for (int64_t work_item = begin; work_item < end; ++work_item) {
        const int64_t first = work_item * arrays_in_work_item_;
        run_arrays(first, std::min(spec_.batch, first + arrays_in_work_item_), call);
      }
      return;
    }
    int64_t pass_begin = 0;
    for (size_t i = 0; i < passes_.size(); ++i) {
      const DimPass& pass = passes_[i];
      const int64_t pass_end = i < barriers.size() ? barriers[i] : work_count;
      const int64_t first = (std::max(begin, pass_begin) - pass_begin) * pass.units_in_work_item;
      const int64_t last = std::min(pass.units, (std::min(end, pass_end) - pass_begin) * pass.units_in_work_item);
      if (first < last) run_pass(pass.dim, first, last, call);
      pass_begin = pass_end;
    }
  }

 private:
  // The lines of a dimension that is not the last one, side by side. An array has outer * blocks blocks of them.
  struct Columns {
    LineFft<T> line;
    int64_t outer = 1;    // steps of the dimensions before
    int64_t inner = 1;    // columns of each
    int64_t at_once = 1;  // columns of a block; the last one has fewer
    int64_t blocks = 1;   // of each step
  };
  // One dimension of all arrays, in work items.
  struct DimPass {
    size_t dim = 0;
    int64_t units = 0;  // lines of the last dimension, else blocks of columns
    int64_t units_in_work_item = 1;
  };
  struct Call {
    const T* in;
    T* out;
    T* scratch;
    T* intermediate;  // of a real inverse
    core::Checkpoint* checkpoint;
    int64_t first_intermediate = 0;  // the array that it begins with
    // Complex values of an array of the intermediate.
    [[nodiscard]] T* intermediate_at(int64_t array, int64_t pitch) const {
      return intermediate + (array - first_intermediate) * pitch;
    }
  };

  static int64_t rounded(int64_t elements) { return (elements + kFftLanes<T> - 1) / kFftLanes<T> * kFftLanes<T>; }

  static int64_t columns_at_once(const LineFft<T>& line) {
    if (!line.is_long()) return kFftLanes<T>;
    constexpr auto kBytes = static_cast<int64_t>(2 * sizeof(T));
    return std::clamp<int64_t>(kMaxColumnsBytes / (kBytes * line.length()), 1, kColumnBytes / kBytes);
  }

  [[nodiscard]] bool needs_intermediate() const { return spec_.kind == FftKind::kRealInverse && !columns_.empty(); }

  void plan_work_items() {
    const auto bytes_of = [](int64_t elements) { return elements * static_cast<int64_t>(sizeof(T)); };
    pitch_ = needs_intermediate() ? rounded(2 * complex_size_) : 0;
    const bool is_cached = spec_.batch >= kManyArrays && bytes_of(2 * complex_size_) <= kCachedArrayBytes;
    scratch_bytes = bytes_of(line_scratch_ + group_scratch_);
    if (columns_.empty() || total_ < kMinSplitElements || is_cached) {
      arrays_in_work_item_ = columns_.empty() ? group_ : 1;
      work_count = (spec_.batch + arrays_in_work_item_ - 1) / arrays_in_work_item_;
      scratch_bytes += bytes_of(pitch_);
      return;
    }
    const int64_t lines = spec_.batch * (total_ / last_);
    const int64_t groups = std::max<int64_t>(1, kFftItemElements / (last_ * group_));
    const DimPass rows = {columns_.size(), lines, groups * group_};
    if (!needs_intermediate()) passes_.push_back(rows);
    for (size_t d = 0; d < columns_.size(); ++d) {
      const Columns& columns = columns_[d];
      passes_.push_back({d, spec_.batch * columns.outer * columns.blocks,
                         std::max<int64_t>(1, kFftItemElements / (columns.line.length() * columns.at_once))});
    }
    if (needs_intermediate()) passes_.push_back(rows);
    for (const DimPass& pass : passes_) {
      if (work_count > 0) barriers.push_back(work_count);
      work_count += (pass.units + pass.units_in_work_item - 1) / pass.units_in_work_item;
    }
    workspace_bytes = bytes_of(pitch_ * spec_.batch);
  }

  /// Arrays [begin, end): several short ones of one dimension, or one.
  void run_arrays(int64_t begin, int64_t end, Call call) const {
    // The intermediate is this call's alone.
    call.intermediate = call.scratch + line_scratch_ + group_scratch_;
    call.first_intermediate = begin;
    const int64_t lines = total_ / last_;
    if (!needs_intermediate()) run_pass(columns_.size(), begin * lines, end * lines, call);
    for (size_t d = 0; d < columns_.size(); ++d) {
      const int64_t blocks = columns_[d].outer * columns_[d].blocks;
      run_pass(d, begin * blocks, end * blocks, call);
    }
    if (needs_intermediate()) run_pass(columns_.size(), begin * lines, end * lines, call);
  }

  /// Units [first, last) of one dimension of all arrays, as DimPass counts them.
  void run_pass(size_t dim, int64_t first, int64_t last, const Call& call) const {
    if (dim == columns_.size()) return along_last(first, last, call);
    const Columns& columns = columns_[dim];
    for (int64_t unit = first; unit < last; ++unit) {
      core::pass(call.checkpoint);
      const int64_t step = unit / columns.blocks;
      const int64_t column = unit % columns.blocks * columns.at_once;
      const int64_t at = 2 * (step % columns.outer * columns.line.length() * columns.inner + column);
      const int64_t array = step / columns.outer;
      const int64_t dense = at + array * 2 * complex_size_;
      const int64_t count = std::min(columns.at_once, columns.inner - column);
      if (!needs_intermediate()) {
        along(columns, call.out + dense, call.out + dense, count, call);
      } else {
        T* const to = call.intermediate_at(array, pitch_) + at;
        along(columns, dim == 0 ? call.in + dense : to, to, count, call);
      }
    }
  }

  /// Contiguous complex lines, `count` <= group_.
  void transform(const T* in, T* out, int64_t count, T scale, const Call& call) const {
    const int64_t length = last_line_->length();
    ComplexView<const T> from = interleaved(in);
    ComplexView<T> to = interleaved(out);
    if (is_inverse_) {
      from = swapped(from);
      to = swapped(to);
    }
    if (last_line_->is_long()) {
      last_line_->run_line(from, to, scale, call.scratch, call.checkpoint);
    } else {
      last_line_->run_lanes(from, 1, length, count, to, scale, call.scratch);
    }
  }

  /// Lines [begin, end) of all arrays.
  void along_last(int64_t begin, int64_t end, const Call& call) const {
    const int64_t lines = total_ / last_;  // of an array
    for (int64_t first = begin; first < end; first += group_) {
      core::pass(call.checkpoint);
      const int64_t count = std::min(group_, end - first);
      if (!is_real_) {
        transform(call.in + first * 2 * last_, call.out + first * 2 * last_, count, scale_, call);
      } else if (spec_.kind == FftKind::kRealForward) {
        real_forward(call.in + first * last_, call.out + first * 2 * complex_last_, count, call);
      } else {
        const auto from = [&](int64_t line) {
          return needs_intermediate() ? call.intermediate_at(line / lines, pitch_) + line % lines * 2 * complex_last_
                                      : call.in + line * 2 * complex_last_;
        };
        real_inverse(from, first, count, call);
      }
    }
  }

  void real_forward(const T* in, T* out, int64_t count, const Call& call) const {
    const int64_t length = last_line_->length();
    T* const group = call.scratch + line_scratch_;
    if (is_halved_) {
      transform(in, group, count, 1, call);
      for (int64_t q = 0; q < count; ++q) halves_->split(group + q * 2 * length, out + q * 2 * complex_last_);
      return;
    }
    for (int64_t i = 0; i < count * length; ++i) {
      group[2 * i] = in[i];
      group[2 * i + 1] = 0;
    }
    transform(group, group, count, 1, call);
    for (int64_t q = 0; q < count; ++q) {
      T* const line = out + q * 2 * complex_last_;
      std::copy_n(group + q * 2 * length, 2 * complex_last_, line);
      line[1] = 0;
    }
  }

  /// Lines first..first+count-1; line_at(line) is where the complex values of one begin.
  template <class LineAt>
  void real_inverse(LineAt&& line_at, int64_t first, int64_t count, const Call& call) const {
    const int64_t length = last_line_->length();
    T* const group = call.scratch + line_scratch_;
    T* const out = call.out + first * last_;
    if (is_halved_) {
      for (int64_t q = 0; q < count; ++q) halves_->join(line_at(first + q), group + q * 2 * length);
      return transform(group, out, count, scale_, call);
    }
    for (int64_t q = 0; q < count; ++q) {
      const T* const from = line_at(first + q);
      T* const line = group + q * 2 * length;
      line[0] = from[0];
      line[1] = 0;
      for (int64_t k = 1; k < complex_last_; ++k) {
        line[2 * k] = line[2 * (length - k)] = from[2 * k];
        line[2 * k + 1] = from[2 * k + 1];
        line[2 * (length - k) + 1] = -from[2 * k + 1];
      }
    }
    transform(group, group, count, scale_, call);
    for (int64_t i = 0; i < count * length; ++i) out[i] = group[2 * i];
  }

  /// `count` columns of one block; in place or not.
  void along(const Columns& columns, const T* in, T* out, int64_t count, const Call& call) const {
    const LineFft<T>& line = columns.line;
    if (line.is_long()) return long_columns(columns, in, out, count, call);
    ComplexView<const T> from = interleaved(in);
    ComplexView<T> to = interleaved(out);
    if (is_inverse_) {
      from = swapped(from);
      to = swapped(to);
    }
    line.run_lanes(from, columns.inner, 1, count, to, 1, call.scratch);
  }

  /// Columns become lines in scratch, as many as a cache line has, and columns again.
  void long_columns(const Columns& columns, const T* in, T* out, int64_t count, const Call& call) const {
    const LineFft<T>& line = columns.line;
    const int64_t length = line.length();
    T* const work = call.scratch + rounded(line.scratch_elements());
    for (int64_t j = 0; j < length; ++j) {
      for (int64_t q = 0; q < count; ++q) {
        work[2 * (q * length + j)] = in[2 * (j * columns.inner + q)];
        work[2 * (q * length + j) + 1] = in[2 * (j * columns.inner + q) + 1];
      }
    }
    for (int64_t q = 0; q < count; ++q) {
      ComplexView<T> view = interleaved(work + 2 * q * length);
      if (is_inverse_) view = swapped(view);
      line.run_line({view.re, view.im, 2}, view, 1, call.scratch, call.checkpoint);
    }
    for (int64_t j = 0; j < length; ++j) {
      for (int64_t q = 0; q < count; ++q) {
        out[2 * (j * columns.inner + q)] = work[2 * (q * length + j)];
        out[2 * (j * columns.inner + q) + 1] = work[2 * (q * length + j) + 1];
      }
    }
  }

  FftSpec spec_;
  int64_t last_ = 0;          ///< last length of the real side
  int64_t complex_last_ = 0;  ///< and of the complex side
  int64_t total_ = 0;         ///< elements of an array, real side
  int64_t complex_size_ = 0;
  int64_t pitch_ = 0;  ///< elements of T of an array of the intermediate
  bool is_real_ = false;
  bool is_inverse_ = false;
  bool is_halved_ = false;  ///< real lines of even length are transformed as complex ones of half of it
  std::optional<LineFft<T>> last_line_;
  std::optional<RealHalves<T>> halves_;
  std::vector<Columns> columns_;  ///< of the dimensions before the last
  std::vector<DimPass> passes_;   ///< with a barrier between two; none: work items are whole arrays
  T scale_ = 1;                   ///< of the last dimension's lines
  int64_t group_ = 1;             ///< lines along the last dimension at a time
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
const std::vector<int64_t>& Fft::barriers() const { return impl_->barriers; }
int64_t Fft::scratch_bytes() const { return impl_->scratch_bytes; }
int64_t Fft::workspace_bytes() const { return impl_->workspace_bytes; }
double Fft::flops() const { return impl_->flops; }

void Fft::run(const Memory& memory, int64_t begin, int64_t end, core::Checkpoint* checkpoint) const {
  impl_->run(memory, begin, end, checkpoint);
}

}  // namespace meshd::kernels
