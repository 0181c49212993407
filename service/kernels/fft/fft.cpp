#include "service/kernels/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "service/kernels/fft/fft_lines.h"
#include "service/kernels/fft/fft_symmetry.h"
#include "service/tensor/shape.h"

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
constexpr int64_t kCacheLine = 64;

/// What a kind means for the code below.
struct KindFacts {
  bool from_real = false;
  bool to_real = false;
  bool is_inverse = false;
  bool is_mirrored = false;  ///< half of the values is computed, the rest are their conjugates
};
constexpr KindFacts facts_of(FftKind kind) {
  switch (kind) {
    case FftKind::kForward:
      return {};
    case FftKind::kInverse:
      return {.is_inverse = true};
    case FftKind::kRealForward:
      return {.from_real = true};
    case FftKind::kRealForwardWhole:
      return {.from_real = true, .is_mirrored = true};
    case FftKind::kRealInverse:
      return {.to_real = true, .is_inverse = true};
  }
  return {};
}

template <class T>
class FftOf : public Fft::Impl {
 public:
  explicit FftOf(FftSpec spec) : spec_(std::move(spec)), facts_(facts_of(spec_.kind)) {
    const std::vector<int64_t>& lengths = spec_.lengths;
    last_ = lengths.back();
    total_ = tensor::element_count(lengths);
    is_real_ = facts_.from_real || facts_.to_real;
    computed_ = is_real_ ? last_ / 2 + 1 : last_;
    if (total_ == 0 || spec_.batch == 0) return;
    is_halved_ = is_real_ && last_ % 2 == 0;
    scale_ = facts_.is_inverse ? static_cast<T>(1 / (static_cast<double>(total_) / (is_halved_ ? 2 : 1))) : T{1};
    last_line_.emplace(is_halved_ ? last_ / 2 : last_, false);
    if (is_halved_) halves_.emplace(last_ / 2);
    group_ = last_line_->is_long() ? 1 : kFftLanes<T>;
    place();
    int64_t scratch = last_line_->scratch_elements();
    for (size_t d = 0; d + 1 < lengths.size(); ++d) {
      columns_.push_back(columns_of(d));
      const Columns& columns = columns_.back();
      scratch = std::max(scratch, rounded(columns.line.scratch_elements()) +
                                      (columns.line.is_long() ? rounded(2 * lengths[d] * columns.at_once) : 0));
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
  // The lines of a dimension that is not the last one, side by side: `width` columns for each step of the dimensions
  // before it and of those between it and the last. Without room between the lines, the latter are columns as well.
  struct Columns {
    LineFft<T> line;
    int64_t outer = 1;    // steps of the dimensions before
    int64_t between = 1;  // and of those behind, without the last one
    int64_t width = 1;    // columns of each
    int64_t at_once = 1;  // columns of a block; the last one has fewer
    int64_t blocks = 1;   // of each step
  };
  // Complex arrays in memory, by complex values.
  struct Layout {
    int64_t array = 0;  // from array to array
    int64_t line = 0;   // from line to line of the last dimension
  };
  template <class P>
  struct Place {
    P* base;
    Layout layout;
    int64_t first_array = 0;  // that lies at `base`
  };
  static Place<const T> read_only(const Place<T>& place) { return {place.base, place.layout, place.first_array}; }
  // One dimension of all arrays, in work items; behind the last one, the copy of the lines.
  struct DimPass {
    size_t dim = 0;
    int64_t units = 0;  // lines, or blocks of columns
    int64_t units_in_work_item = 1;
  };
  struct Call {
    const T* in;
    T* out;
    T* scratch;
    T* intermediate;
    core::Checkpoint* checkpoint;
    int64_t first_intermediate = 0;  // the array that it begins with
  };

  static int64_t rounded(int64_t elements) { return (elements + kFftLanes<T> - 1) / kFftLanes<T> * kFftLanes<T>; }
  static int64_t bytes_of(int64_t elements) { return elements * static_cast<int64_t>(sizeof(T)); }

  static int64_t columns_at_once(const LineFft<T>& line) {
    if (!line.is_long()) return kFftLanes<T>;
    constexpr auto kBytes = static_cast<int64_t>(2 * sizeof(T));
    return std::clamp<int64_t>(kMaxColumnsBytes / (kBytes * line.length()), 1, kColumnBytes / kBytes);
  }

  /// Where complex values are before, between and after the dimensions' passes.
  void place() {
    const int64_t lines = total_ / last_;
    const bool is_cached = spec_.batch >= kManyArrays && bytes_of(2 * lines * computed_) <= kCachedArrayBytes;
    is_split_ = spec_.lengths.size() > 1 && total_ >= kMinSplitElements && !is_cached;
    const int64_t whole = facts_.is_mirrored ? last_ : computed_;
    complex_ = {lines * whole, whole};
    has_intermediate_ = spec_.lengths.size() > 1 && (facts_.to_real || facts_.is_mirrored);
    if (!has_intermediate_) return;
    intermediate_.line = computed_;
    // An odd number of cache lines, so that columns are spread over all sets.
    if (facts_.is_mirrored && is_split_)
      intermediate_.line = ((bytes_of(2 * computed_) + kCacheLine - 1) / kCacheLine | 1) * kCacheLine / bytes_of(2);
    intermediate_.array = rounded(2 * lines * intermediate_.line) / 2;
  }

  [[nodiscard]] Columns columns_of(size_t d) const {
    const std::vector<int64_t>& lengths = spec_.lengths;
    Columns columns{LineFft<T>(lengths[d], true)};
    columns.outer = tensor::element_count(lengths, 0, d);
    columns.between = tensor::element_count(lengths, d + 1, lengths.size()) / last_;
    columns.width = computed_;
    if ((has_intermediate_ ? intermediate_ : complex_).line == computed_)
      columns.width *= std::exchange(columns.between, 1);
    columns.at_once = columns_at_once(columns.line);
    columns.blocks = (columns.width + columns.at_once - 1) / columns.at_once;
    return columns;
  }

  void plan_work_items() {
    scratch_bytes = bytes_of(line_scratch_ + group_scratch_);
    if (!is_split_) {
      arrays_in_work_item_ = columns_.empty() ? group_ : 1;
      work_count = (spec_.batch + arrays_in_work_item_ - 1) / arrays_in_work_item_;
      scratch_bytes += bytes_of(2 * intermediate_.array);
      return;
    }
    const int64_t lines = spec_.batch * (total_ / last_);
    const int64_t groups = std::max<int64_t>(1, kFftItemElements / (last_ * group_));
    const DimPass rows = {columns_.size(), lines, groups * group_};
    if (!facts_.to_real) passes_.push_back(rows);
    for (size_t d = 0; d < columns_.size(); ++d) {
      const Columns& columns = columns_[d];
      passes_.push_back({d, spec_.batch * columns.outer * columns.between * columns.blocks,
                         std::max<int64_t>(1, kFftItemElements / (columns.line.length() * columns.at_once))});
    }
    if (facts_.to_real) passes_.push_back(rows);
    if (is_copied()) passes_.push_back({columns_.size() + 1, lines, std::max<int64_t>(1, kFftItemElements / last_)});
    for (const DimPass& pass : passes_) {
      if (work_count > 0) barriers.push_back(work_count);
      work_count += (pass.units + pass.units_in_work_item - 1) / pass.units_in_work_item;
    }
    workspace_bytes = bytes_of(2 * intermediate_.array * spec_.batch);
  }

  /// Arrays [begin, end): several short ones of one dimension, or one.
  void run_arrays(int64_t begin, int64_t end, Call call) const {
    // The intermediate is this call's alone.
    call.intermediate = call.scratch + line_scratch_ + group_scratch_;
    call.first_intermediate = begin;
    const int64_t lines = total_ / last_;
    if (!facts_.to_real) run_pass(columns_.size(), begin * lines, end * lines, call);
    for (size_t d = 0; d < columns_.size(); ++d) {
      const int64_t units = columns_[d].outer * columns_[d].between * columns_[d].blocks;
      run_pass(d, begin * units, end * units, call);
    }
    if (facts_.to_real) run_pass(columns_.size(), begin * lines, end * lines, call);
    if (is_copied()) run_pass(columns_.size() + 1, begin * lines, end * lines, call);
  }

  /// Whether the last pass copies lines out of the intermediate, and mirrors them.
  [[nodiscard]] bool is_copied() const { return has_intermediate_ && facts_.is_mirrored; }
  /// What the columns are transformed in.
  [[nodiscard]] Place<T> columns_place(const Call& call) const {
    return has_intermediate_ ? Place<T>{call.intermediate, intermediate_, call.first_intermediate}
                             : Place<T>{call.out, complex_};
  }

  template <class P>
  [[nodiscard]] P* line_at(const Place<P>& place, int64_t line) const {
    const int64_t lines = total_ / last_;
    return place.base +
           2 * ((line / lines - place.first_array) * place.layout.array + line % lines * place.layout.line);
  }

  // The first of some columns, and complex values from row to row.
  template <class P>
  struct Rows {
    P* first;
    int64_t pitch;
  };
  /// A block of columns: of which array, from which one on, in which steps of the other dimensions.
  struct Block {
    int64_t array, outer, between, column, count;
  };
  static Block block_of(const Columns& columns, int64_t unit) {
    const int64_t step = unit / columns.blocks;
    const int64_t column = unit % columns.blocks * columns.at_once;
    return {step / columns.between / columns.outer, step / columns.between % columns.outer, step % columns.between,
            column, std::min(columns.at_once, columns.width - column)};
  }
  template <class P>
  static Rows<P> rows_of(const Columns& columns, const Block& block, const Place<P>& place) {
    const int64_t line = std::max(columns.width, place.layout.line);
    const int64_t pitch = columns.between * line;
    return {place.base + 2 * ((block.array - place.first_array) * place.layout.array +
                              block.outer * columns.line.length() * pitch + block.between * line + block.column),
            pitch};
  }

  /// Units [first, last) of one pass over all arrays, as DimPass counts them.
  void run_pass(size_t dim, int64_t first, int64_t last, const Call& call) const {
    if (dim == columns_.size()) return along_last(first, last, call);
    if (dim > columns_.size()) return copy_lines(first, last, call);
    const Columns& columns = columns_[dim];
    const Place<T> to = columns_place(call);
    const bool is_first = facts_.to_real && dim == 0;
    const Place<const T> from = is_first ? Place<const T>{call.in, complex_} : read_only(to);
    for (int64_t unit = first; unit < last; ++unit) {
      core::pass(call.checkpoint);
      const Block block = block_of(columns, unit);
      along(columns, rows_of(columns, block, from), rows_of(columns, block, to), block.count, call);
    }
  }

  /// Lines [begin, end) of the results, of the intermediate. The second half of a line mirrors the first half of that
  /// whose indices are the opposite ones.
  void copy_lines(int64_t begin, int64_t end, const Call& call) const {
    const Place<T> from = columns_place(call);
    const Place<T> to = {call.out, complex_};
    const int64_t lines = total_ / last_;
    const int64_t inner = spec_.lengths[columns_.size() - 1];
    const int64_t outer = lines / inner;
    for (int64_t line = begin; line < end; ++line) {
      if (line % kFftLanes<T> == 0) core::pass(call.checkpoint);
      T* const there = line_at(to, line);
      std::copy_n(line_at(from, line), 2 * computed_, there);
      const int64_t array = line / lines;
      const int64_t i = (outer - line % lines / inner) % outer;
      const int64_t j = (inner - line % inner) % inner;
      mirror_line(line_at(from, array * lines + i * inner + j), there, last_);
    }
  }

  /// Contiguous complex lines, `count` <= group_.
  void transform(const T* in, int64_t in_pitch, T* out, int64_t out_pitch, int64_t count, T scale,
                 const Call& call) const {
    ComplexView<const T> from = interleaved(in);
    ComplexView<T> to = interleaved(out);
    if (facts_.is_inverse) {
      from = swapped(from);
      to = swapped(to);
    }
    if (last_line_->is_long()) {
      last_line_->run_line(from, to, scale, call.scratch, call.checkpoint);
    } else {
      last_line_->run_lanes({from, 1, in_pitch}, count, {to, 1, out_pitch}, scale, call.scratch);
    }
  }
  void transform(const T* in, T* out, int64_t count, T scale, const Call& call) const {
    transform(in, last_line_->length(), out, last_line_->length(), count, scale, call);
  }

  /// Lines [begin, end) of all arrays.
  void along_last(int64_t begin, int64_t end, const Call& call) const {
    const Place<T> columns = columns_place(call);
    const int64_t lines = total_ / last_;  // of an array
    // Lines of two arrays may be another number of values apart than those of one.
    const bool is_even = columns.layout.array == lines * columns.layout.line;
    for (int64_t first = begin; first < end;) {
      core::pass(call.checkpoint);
      const int64_t together = is_even ? end : std::min(end, (first / lines + 1) * lines);
      const int64_t count = std::min(group_, together - first);
      if (facts_.to_real) {
        const Place<const T> from = has_intermediate_ ? read_only(columns) : Place<const T>{call.in, complex_};
        real_inverse([&](int64_t line) { return line_at(from, line); }, first, count, call);
      } else if (facts_.from_real) {
        real_forward(call.in + first * last_, line_at(columns, first), columns.layout.line, count, call);
      } else {
        transform(call.in + first * 2 * last_, last_, line_at(columns, first), columns.layout.line, count, scale_,
                  call);
      }
      first += count;
    }
  }

  /// `pitch`: complex values from one line of `out` to the next.
  void real_forward(const T* in, T* out, int64_t pitch, int64_t count, const Call& call) const {
    const int64_t length = last_line_->length();
    T* const group = call.scratch + line_scratch_;
    if (!is_halved_) {
      for (int64_t i = 0; i < count * length; ++i) {
        group[2 * i] = in[i];
        group[2 * i + 1] = 0;
      }
    }
    transform(is_halved_ ? in : group, group, count, 1, call);
    for (int64_t q = 0; q < count; ++q) {
      const T* const line = group + q * 2 * length;
      T* const to = out + q * 2 * pitch;
      if (is_halved_) {
        halves_->split(line, to);
      } else {
        std::copy_n(line, 2 * computed_, to);
        to[1] = 0;
      }
      if (facts_.is_mirrored && columns_.empty()) mirror_line(to, to, last_);
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
      for (int64_t k = 1; k < computed_; ++k) {
        line[2 * k] = line[2 * (length - k)] = from[2 * k];
        line[2 * k + 1] = from[2 * k + 1];
        line[2 * (length - k) + 1] = -from[2 * k + 1];
      }
    }
    transform(group, group, count, scale_, call);
    for (int64_t i = 0; i < count * length; ++i) out[i] = group[2 * i];
  }

  /// `count` columns of one block; in place or not.
  void along(const Columns& columns, const Rows<const T>& in, const Rows<T>& out, int64_t count,
             const Call& call) const {
    const LineFft<T>& line = columns.line;
    if (line.is_long()) return long_columns(columns, in, out, count, call);
    ComplexView<const T> from = interleaved(in.first);
    ComplexView<T> to = interleaved(out.first);
    if (facts_.is_inverse) {
      from = swapped(from);
      to = swapped(to);
    }
    line.run_lanes({from, in.pitch, 1}, count, {to, out.pitch, 1}, 1, call.scratch);
  }

  /// Columns become lines in scratch, as many as a cache line has, and columns again.
  void long_columns(const Columns& columns, const Rows<const T>& in, const Rows<T>& out, int64_t count,
                    const Call& call) const {
    const LineFft<T>& line = columns.line;
    const int64_t length = line.length();
    T* const work = call.scratch + rounded(line.scratch_elements());
    for (int64_t j = 0; j < length; ++j) {
      for (int64_t q = 0; q < count; ++q) {
        work[2 * (q * length + j)] = in.first[2 * (j * in.pitch + q)];
        work[2 * (q * length + j) + 1] = in.first[2 * (j * in.pitch + q) + 1];
      }
    }
    for (int64_t q = 0; q < count; ++q) {
      ComplexView<T> view = interleaved(work + 2 * q * length);
      if (facts_.is_inverse) view = swapped(view);
      line.run_line({view.re, view.im, 2}, view, 1, call.scratch, call.checkpoint);
    }
    for (int64_t j = 0; j < length; ++j) {
      for (int64_t q = 0; q < count; ++q) {
        out.first[2 * (j * out.pitch + q)] = work[2 * (q * length + j)];
        out.first[2 * (j * out.pitch + q) + 1] = work[2 * (q * length + j) + 1];
      }
    }
  }

  FftSpec spec_;
  KindFacts facts_;
  int64_t last_ = 0;      ///< last length of the real side
  int64_t computed_ = 0;  ///< complex values of a line that are computed, or read
  int64_t total_ = 0;     ///< elements of an array, real side
  Layout complex_;        ///< of the complex operand or result
  Layout intermediate_;
  bool has_intermediate_ = false;
  bool is_split_ = false;  ///< dimension by dimension
  bool is_real_ = false;
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
