#include "service/kernels/movement/gather_lines.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/element_width.h"

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

GatherLines::GatherLines(TupleLines lines, int64_t element_bytes, int64_t part_tuples)
    : lines_(std::move(lines)),
      element_bytes_(element_bytes),
      lines_per_work_item_(std::max<int64_t>(1, kWorkItemBytes / (part_tuples * element_bytes))),
      work_count_(core::ceil_div(lines_.line_count(), lines_per_work_item_)) {}

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
  const int64_t element_bytes = run * elem_size;
  const bool has_lines = tensor::element_count(window) > run;  // more than one
  const size_t rank = table.batch.size();
  const size_t row = row_dim(table.batch);
  const int64_t tuples = rank == 0 ? 1 : table.batch[row];
  if (element_bytes > kMostElementBytes || rank + outer >= TupleLines::kMostLoops) return std::nullopt;
  if ((rank > 1 || has_lines) && tuples < kLeastTuples) return std::nullopt;
  if (has_lines && table.slice_strides[row] != run) return std::nullopt;

  const auto head = [outer](const tensor::Dims& dims) {
    return tensor::Dims(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(outer));
  };
  const int64_t part = std::min({tuples, kTuplesAtOnce, kWorkItemBytes / element_bytes});
  return GatherLines(
      TupleLines(table, row, {head(window), head(result_strides), head(operand_strides)}, elem_size, part),
      element_bytes, part);
}

void GatherLines::run(const std::byte* operand, const std::byte* indices, std::byte* result, int64_t begin,
                      int64_t end) const {
  const int64_t first = begin * lines_per_work_item_;
  const int64_t last = std::min(lines_.line_count(), end * lines_per_work_item_);
  lines_.visit_clamped(indices, first, last, [&](const TupleLine& line) {
    copy_line({operand + line.array_at, result + line.slice_at, lines_.slice_stride_bytes(), line.offsets,
               lines_.elem_size(), line.count},
              element_bytes_);
  });
}

}  // namespace meshd::kernels
