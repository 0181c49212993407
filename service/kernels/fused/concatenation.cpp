#include "service/kernels/fused/concatenation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/element_width.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/movement/groups.h"

namespace meshd::kernels {
namespace {

/// Rows of the result that are longer than this have lines of one part alone for long enough: parts that are copied go
/// around the caches then, those that are computed are in them.
constexpr int64_t kShortCopiedRowBytes = 1 << 10;
constexpr int64_t kShortRowBytes = 16 << 10;
constexpr int64_t kItemBytes = 64 << 10;

/// The dims in front of `dim` as one, where an operand walks through them with one stride.
std::optional<tensor::Dims> with_rows(const tensor::Dims& dims, const tensor::Dims& strides, size_t dim) {
  int64_t size = 1;
  int64_t stride = 0;
  for (size_t d = dim; d-- > 0;) {
    if (dims[d] == 1) continue;
    if (size == 1)
      stride = strides[d];
    else if (strides[d] != stride * size)
      return std::nullopt;
    size *= dims[d];
  }
  tensor::Dims out = {stride};
  out.insert(out.end(), strides.begin() + static_cast<std::ptrdiff_t>(dim), strides.end());
  return out;
}

}  // namespace

Concatenation::Concatenation(const tensor::Dims& dims, size_t dim, int64_t elem_size,
                             const std::vector<CopiedPart>& copied, const std::vector<ComputedParts>& computed) {
  const int64_t inner = tensor::element_count(dims, dim + 1, dims.size());
  const int64_t row = dims[dim] * inner;
  rows_ = tensor::element_count(dims, 0, dim);
  const tensor::Dims dst_strides = tensor::row_major_strides(dims);
  const bool walks_rows = std::all_of(copied.begin(), copied.end(), [&](const CopiedPart& part) {
    return with_rows(dims, part.strides, dim).has_value();
  });
  const int64_t short_row = computed.empty() ? kShortCopiedRowBytes : kShortRowBytes;
  const bool by_rows = rows_ > 1 && row > 0 && row * elem_size <= short_row && walks_rows;
  if (by_rows) {
    item_rows_ = core::ceil_div(kItemBytes, row * elem_size);
    // Whole blocks of lanes of each part, where that is no larger.
    if (item_rows_ >= kBlockLanes) item_rows_ = core::round_up(item_rows_, kBlockLanes);
  }
  elem_size_ = elem_size;
  if (by_rows && computed.empty()) columns_ = columns_of(dims, dim, elem_size, copied);
  if (!columns_.empty()) {
    copied_bytes_ = 2.0 * static_cast<double>(rows_ * row * elem_size);
    work_count_ = core::ceil_div(rows_, item_rows_);
    return;
  }
  const auto add = [&](Part part, int64_t work_count) {
    part.first = work_count_;
    part.work_count = work_count;
    work_count_ += work_count;
    parts_.push_back(std::move(part));
  };
  for (const CopiedPart& part : copied) {
    const int64_t to = part.start * inner * elem_size;
    tensor::Dims extent = dims;
    extent[dim] = part.size;
    if (!by_rows) {
      StridedCopy copy(extent, dst_strides, part.strides, elem_size);
      copied_bytes_ += 2.0 * static_cast<double>(copy.byte_count());
      const int64_t work_count = copy.work_count();
      add({.kernel = std::move(copy), .operand = part.operand, .from = part.offset * elem_size, .to = to}, work_count);
      continue;
    }
    const auto rest = static_cast<std::ptrdiff_t>(dim);
    tensor::Dims row_extent = {rows_};
    row_extent.insert(row_extent.end(), extent.begin() + rest, extent.end());
    tensor::Dims row_strides = {row};
    row_strides.insert(row_strides.end(), dst_strides.begin() + rest, dst_strides.end());
    RowCopies copies(row_extent, row_strides, *with_rows(dims, part.strides, dim), elem_size, item_rows_);
    copied_bytes_ += 2.0 * static_cast<double>(copies.byte_count());
    add({.kernel = std::move(copies), .operand = part.operand, .from = part.offset * elem_size, .to = to}, 0);
  }
  for (const ComputedParts& part : computed) {
    FusedLoop loop = *part.loop;
    for (const ComputedParts::Output& output : part.outputs)
      loop.places.push_back({.offset = output.start * inner, .row = output.size * inner, .row_stride = row});
    if (by_rows) loop.work_item_elements = item_rows_ * part.outputs[0].size * inner;
    auto kernel = std::make_shared<const FusedKernel>(std::move(loop));
    const int64_t work_count = kernel->work_count();
    add({.kernel = std::move(kernel), .operand = part.first_operand}, work_count);
  }
  if (by_rows) work_count_ = core::ceil_div(rows_, item_rows_);
}

std::vector<Concatenation::Column> Concatenation::columns_of(const tensor::Dims& dims, size_t dim, int64_t elem_size,
                                                             const std::vector<CopiedPart>& copied) {
  const auto row = static_cast<size_t>(tensor::element_count(dims, dim, dims.size()));
  const bool are_columns =
      std::all_of(copied.begin(), copied.end(), [](const CopiedPart& part) { return part.size == 1; });
  if (!are_columns || row != copied.size() || row < 2 || row > kMostInterleaved ||
      !visit_element(elem_size, [](auto) {}))
    return {};
  std::vector<Column> columns(row);
  for (const CopiedPart& part : copied) {
    const std::optional<tensor::Dims> strides = with_rows(dims, part.strides, dim);
    if (!strides || strides->front() != 1) return {};
    columns[static_cast<size_t>(part.start)] = {part.operand, part.offset * elem_size};
  }
  return columns;
}

void Concatenation::interleave_columns(const std::byte* const* operands, std::byte* result, int64_t row,
                                       int64_t count) const {
  std::array<const std::byte*, kMostInterleaved> from{};
  for (size_t k = 0; k < columns_.size(); ++k)
    from[k] = operands[columns_[k].operand] + columns_[k].from + row * elem_size_;
  const auto row_bytes = static_cast<int64_t>(columns_.size()) * elem_size_;
  interleave(result + row * row_bytes, {from.data(), columns_.size()}, count, elem_size_);
}

int64_t Concatenation::code_bytes() const {
  int64_t bytes = 0;
  for (const Part& part : parts_) {
    if (const auto* const loop = std::get_if<std::shared_ptr<const FusedKernel>>(&part.kernel))
      bytes += (*loop)->code_bytes();
  }
  return bytes;
}

void Concatenation::run(const std::byte* const* operands, std::byte* result, int64_t begin, int64_t end,
                        core::Checkpoint* checkpoint) const {
  const auto run_part = [&](const Part& part, int64_t first, int64_t last) {
    if (const auto* const loop = std::get_if<std::shared_ptr<const FusedKernel>>(&part.kernel)) {
      FusedCall call;
      call.operands = operands + part.operand;
      call.results = &result;
      call.begin = first;
      call.end = last;
      call.checkpoint = checkpoint;
      return (*loop)->run(call);
    }
    std::byte* const to = result + part.to;
    const std::byte* const from = operands[part.operand] + part.from;
    if (const auto* const rows = std::get_if<RowCopies>(&part.kernel))
      return rows->run(to, from, first * item_rows_, std::min(rows_, last * item_rows_));
    std::get<StridedCopy>(part.kernel).run(to, from, first, last);
  };
  if (item_rows_ > 0) {
    for (int64_t item = begin; item < end; ++item) {
      core::pass(checkpoint);
      const int64_t row = item * item_rows_;
      if (!columns_.empty()) interleave_columns(operands, result, row, std::min(item_rows_, rows_ - row));
      for (const Part& part : parts_) run_part(part, item, item + 1);
    }
    return;
  }
  for (const Part& part : parts_) {
    const int64_t first = std::max<int64_t>(0, begin - part.first);
    const int64_t last = std::min(part.work_count, end - part.first);
    const bool is_loop = std::holds_alternative<std::shared_ptr<const FusedKernel>>(part.kernel);
    if (is_loop && first < last) run_part(part, first, last);
    for (int64_t item = first; !is_loop && item < last; ++item) {
      core::pass(checkpoint);
      run_part(part, item, item + 1);
    }
  }
}

}  // namespace meshd::kernels
