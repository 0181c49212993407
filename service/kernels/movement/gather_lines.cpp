#include "service/kernels/movement/gather_lines.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/kernels/element_width.h"
#include "service/kernels/movement/tuple_offsets.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kWorkItemBytes = 64 << 10;
// Runs of a window that are as long as this are cheaper to copy than to find: window by window.
constexpr int64_t kMostElementBytes = 1024;
// With fewer tuples to a line, what a line costs is most of it.
constexpr int64_t kLeastTuples = 4;

// The dim of the tuples of a row: the last one, unless that is short.
size_t row_dim(const tensor::Dims& batch) {
  if (batch.empty() || batch.back() >= kLeastTuples) return batch.empty() ? 0 : batch.size() - 1;
  return static_cast<size_t>(std::max_element(batch.begin(), batch.end()) - batch.begin());
}

struct Line {
  const std::byte* operand;
  std::byte* result;
  int64_t result_stride;
  const uint32_t* offsets;
  int64_t elem_size;
  int64_t count;
};

// Four at once: that no store changes an offset is not known to the compiler, so that loads wait for stores.
template <typename Word, bool kIsDense>
void copy_words(const Line& line) {
  constexpr int64_t kWordBytes = sizeof(Word);
  const int64_t stride = kIsDense ? kWordBytes : line.result_stride;
  const int64_t size = kIsDense ? kWordBytes : line.elem_size;
  const auto load = [&](uint32_t offset) {
    Word word;
    std::memcpy(&word, line.operand + static_cast<int64_t>(offset) * size, sizeof(Word));
    return word;
  };
  const auto store = [&](int64_t i, const Word& word) { std::memcpy(line.result + i * stride, &word, sizeof(Word)); };
  int64_t i = 0;
  for (; i + 4 <= line.count; i += 4) {
    const Word a = load(line.offsets[i]);
    const Word b = load(line.offsets[i + 1]);
    const Word c = load(line.offsets[i + 2]);
    const Word d = load(line.offsets[i + 3]);
    store(i, a);
    store(i + 1, b);
    store(i + 2, c);
    store(i + 3, d);
  }
  for (; i < line.count; ++i) store(i, load(line.offsets[i]));
}

void copy_line(const Line& line, int64_t element_bytes) {
  const bool is_dense = line.result_stride == element_bytes && line.elem_size == element_bytes;
  const auto copy = [&](auto word) {
    if (is_dense) return copy_words<decltype(word), true>(line);
    copy_words<decltype(word), false>(line);
  };
  if (visit_element(element_bytes, copy)) return;
  for (int64_t i = 0; i < line.count; ++i) {
    std::memcpy(line.result + i * line.result_stride,
                line.operand + static_cast<int64_t>(line.offsets[i]) * line.elem_size,
                static_cast<size_t>(element_bytes));
  }
}

}  // namespace

void GatherLines::add_loop(int64_t extent, int64_t result_stride, int64_t operand_stride, int64_t index_stride) {
  if (extent == 1) return;
  loops_.push_back({extent, result_stride, operand_stride, index_stride});
  line_count_ *= extent;
}

std::optional<GatherLines> GatherLines::make(const IndexTable& table, const tensor::Dims& window,
                                             const tensor::Dims& result_strides, const tensor::Dims& operand_strides,
                                             int64_t elem_size) {
  if (table.count() == 0 || tensor::element_count(window) == 0 || !has_narrow_offsets(table)) return std::nullopt;
  size_t outer = window.size();
  int64_t run = 1;
  while (outer > 0 &&
         (window[outer - 1] == 1 || (result_strides[outer - 1] == run && operand_strides[outer - 1] == run))) {
    run *= window[--outer];
  }
  const int64_t window_lines = tensor::element_count(window) / run;
  const size_t rank = table.batch.size();
  const size_t row = row_dim(table.batch);
  GatherLines lines;
  lines.table_ = table;
  lines.elem_size_ = elem_size;
  lines.element_bytes_ = run * elem_size;
  lines.row_tuples_ = rank == 0 ? 1 : table.batch[row];
  const int64_t slice_stride = rank == 0 ? run : table.slice_strides[row];
  if (lines.element_bytes_ > kMostElementBytes) return std::nullopt;
  if ((rank > 1 || window_lines > 1) && lines.row_tuples_ < kLeastTuples) return std::nullopt;
  if (window_lines > 1 && slice_stride != run) return std::nullopt;
  if (rank + outer > kMostLoops) return std::nullopt;

  lines.result_stride_ = slice_stride * elem_size;
  if (rank > 0) {
    lines.operand_stride_ = table.operand_strides[row];
    lines.index_stride_ = table.batch_strides[row];
  }
  const int64_t index_bytes = tensor::size_bytes(table.dtype);
  for (size_t d = 0; d < rank; ++d) {
    if (d == row) continue;
    lines.add_loop(table.batch[d], table.slice_strides[d] * elem_size, table.operand_strides[d] * elem_size,
                   table.batch_strides[d] * index_bytes);
  }
  lines.part_loop_ = lines.loops_.size();
  const int64_t part = std::min({lines.row_tuples_, kTuplesAtOnce, kWorkItemBytes / lines.element_bytes_});
  lines.part_tuples_ = part;
  lines.add_loop(core::ceil_div(lines.row_tuples_, part), part * lines.result_stride_,
                 part * lines.operand_stride_ * elem_size, part * lines.index_stride_ * index_bytes);
  lines.tuple_loops_ = lines.loops_.size();
  for (size_t d = 0; d < outer; ++d)
    lines.add_loop(window[d], result_strides[d] * elem_size, operand_strides[d] * elem_size, 0);
  lines.lines_per_work_item_ = std::max<int64_t>(1, kWorkItemBytes / (part * lines.element_bytes_));
  lines.work_count_ = core::ceil_div(lines.line_count_, lines.lines_per_work_item_);
  return lines;
}

void GatherLines::run(const std::byte* operand, const std::byte* indices, std::byte* result, int64_t begin,
                      int64_t end) const {
  const int64_t first = begin * lines_per_work_item_;
  const int64_t last = std::min(line_count_, end * lines_per_work_item_);
  std::array<int64_t, kMostLoops + 1> at;
  int64_t rest = first;
  for (size_t l = loops_.size(); l-- > 0;) {
    const Loop& loop = loops_[l];
    at[l] = rest % loop.extent;
    rest /= loop.extent;
    operand += at[l] * loop.operand_stride;
    indices += at[l] * loop.index_stride;
    result += at[l] * loop.result_stride;
  }
  std::array<uint32_t, kTuplesAtOnce> offsets;
  const bool has_parts = row_tuples_ > part_tuples_;
  int64_t count = row_tuples_;
  bool has_offsets = false;
  for (int64_t line = first; line < last; ++line) {
    if (!has_offsets) {
      if (has_parts) count = std::min(part_tuples_, row_tuples_ - at[part_loop_] * part_tuples_);
      clamped_offsets(table_, {indices, index_stride_, operand_stride_, count}, offsets.data());
      has_offsets = true;
    }
    copy_line({operand, result, result_stride_, offsets.data(), elem_size_, count}, element_bytes_);
    for (size_t l = loops_.size(); l-- > 0;) {
      const Loop& loop = loops_[l];
      has_offsets = has_offsets && l >= tuple_loops_;
      operand += loop.operand_stride;
      indices += loop.index_stride;
      result += loop.result_stride;
      if (++at[l] < loop.extent) break;
      operand -= loop.operand_stride * loop.extent;
      indices -= loop.index_stride * loop.extent;
      result -= loop.result_stride * loop.extent;
      at[l] = 0;
    }
  }
}

}  // namespace meshd::kernels
