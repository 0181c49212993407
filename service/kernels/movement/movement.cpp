#include "service/kernels/movement/movement.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "service/core/error.h"
#include "service/kernels/cache_size.h"
#include "service/kernels/cpu.h"
#include "service/kernels/element_width.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/movement/movement_loops.h"
#include "service/kernels/stream_store.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kCopyItemBytes = 256 << 10;
constexpr int64_t kMaxRank = 64;
constexpr int64_t kTransposeRowBytes = 1024;  // what one step of a transpose reads of each row of src
constexpr int64_t kTransposeMinExtent = 5;    // below this groups are as good
constexpr int64_t kManyGroups = 16;           // fewer groups are not worth their loop
constexpr int64_t kShortFill = 64;            // elements below which fills are written several at once

// A loop nest in byte strides, without memory of its own on the heap.
struct Nest {
  int rank = 0;
  std::array<int64_t, kMaxRank> extent{};
  std::array<int64_t, kMaxRank> dst{};
  std::array<int64_t, kMaxRank> src{};
  int64_t elem = 1;
  bool empty = false;

  void erase(int at) {
    for (int i = at; i + 1 < rank; ++i) {
      extent[i] = extent[i + 1];
      dst[i] = dst[i + 1];
      src[i] = src[i + 1];
    }
    --rank;
  }
};

Nest make_nest(std::span<const int64_t> extent, std::span<const int64_t> dst, std::span<const int64_t> src,
               int64_t elem) {
  if (extent.size() > static_cast<size_t>(kMaxRank)) {
    throw core::Error("unsupported_op",
                      fmt::format("a tensor may have at most {} dimensions, got {}", kMaxRank, extent.size()));
  }
  Nest nest;
  nest.elem = elem;
  for (size_t d = 0; d < extent.size(); ++d) {
    if (extent[d] <= 0) nest.empty = true;
    if (extent[d] == 1) continue;
    nest.extent[nest.rank] = extent[d];
    nest.dst[nest.rank] = dst[d] * elem;
    nest.src[nest.rank] = src[d] * elem;
    ++nest.rank;
  }
  return nest;
}

// Order of dst's memory, so that writes are sequential.
void sort_by_dst(Nest& nest) {
  for (int i = 1; i < nest.rank; ++i) {
    for (int j = i; j > 0 && nest.dst[j] > nest.dst[j - 1]; --j) {
      std::swap(nest.dst[j], nest.dst[j - 1]);
      std::swap(nest.src[j], nest.src[j - 1]);
      std::swap(nest.extent[j], nest.extent[j - 1]);
    }
  }
}

// Two loops that walk both arrays as one loop would become one.
void merge_neighbours(Nest& nest) {
  for (int i = nest.rank - 1; i > 0; --i) {
    if (nest.dst[i - 1] == nest.dst[i] * nest.extent[i] && nest.src[i - 1] == nest.src[i] * nest.extent[i]) {
      nest.extent[i - 1] *= nest.extent[i];
      nest.dst[i - 1] = nest.dst[i];
      nest.src[i - 1] = nest.src[i];
      nest.erase(i);
    }
  }
}

// A short contiguous run is one wide element: the inner loops are then over elements, not over tiny memcpys.
void widen_element(Nest& nest) {
  if (nest.rank < 2) return;
  const int last = nest.rank - 1;
  if (nest.dst[last] != nest.elem || nest.src[last] != nest.elem) return;
  const int64_t wide = nest.extent[last] * nest.elem;
  if (wide != 2 && wide != 4 && wide != 8 && wide != 16) return;
  for (int i = 0; i < last; ++i) {
    if (nest.dst[i] % wide != 0 || nest.src[i] % wide != 0) return;
  }
  nest.elem = wide;
  --nest.rank;
}

Nest simplify(Nest nest) {
  sort_by_dst(nest);
  merge_neighbours(nest);
  widen_element(nest);
  return nest;
}

// A short loop whose elements follow each other in dst, and the loop that repeats it; or a loop that takes dense groups
// of src apart, and the short loop over what a group has.
struct GroupLoops {
  int group;  // the index of the short loop
  int count;  // and of the long one
};
std::optional<GroupLoops> group_loops(const Nest& nest) {
  const int last = nest.rank - 1;
  if (last < 1 || !visit_element(nest.elem, [](auto) {})) return std::nullopt;
  if (nest.extent[last] <= kMaxGroup && nest.dst[last] == nest.elem && nest.src[last] != 0) {
    // The loop whose groups follow each other in dst, if it is long; else the longest.
    int longest = last - 1;
    for (int i = last - 2; i >= 0 && nest.extent[last - 1] < kManyGroups; --i) {
      if (nest.extent[i] > nest.extent[longest]) longest = i;
    }
    const bool is_transpose = nest.src[longest] == nest.elem && nest.extent[last] >= kTransposeMinExtent;
    if (nest.extent[longest] < kManyGroups || is_transpose) return std::nullopt;
    return GroupLoops{last, longest};
  }
  if (nest.dst[last] != nest.elem || nest.extent[last] < kManyGroups) return std::nullopt;
  for (int i = 0; i < last; ++i) {
    if (nest.src[i] == nest.elem && nest.extent[i] < kTransposeMinExtent &&
        nest.src[last] == nest.extent[i] * nest.elem)
      return GroupLoops{i, last};
  }
  return std::nullopt;
}

}  // namespace

StridedCopy::StridedCopy(std::span<const int64_t> extent, std::span<const int64_t> dst_strides,
                         std::span<const int64_t> src_strides, int64_t elem_size) {
  Nest nest = make_nest(extent, dst_strides, src_strides, elem_size);
  elem_size_ = elem_size;
  if (nest.empty) return;
  nest = simplify(nest);
  elem_size_ = nest.elem;
  byte_count_ = nest.elem;
  for (int i = 0; i < nest.rank; ++i) byte_count_ *= nest.extent[i];
  streaming_ = byte_count_ >= streaming_bytes();

  int64_t outer_count = 1;
  if (const std::optional<GroupLoops> loops = group_loops(nest)) {
    inner_ = Inner::kGroups;
    groups_ = {.size = nest.extent[loops->group],
               .element_bytes = elem_size_,
               .dst = {nest.dst[loops->count], nest.dst[loops->group]},
               .src = {nest.src[loops->count], nest.src[loops->group]}};
    inner_extent_ = nest.extent[loops->count];
    inner_dst_ = groups_.dst.step;
    inner_src_ = groups_.src.step;
    nest.erase(std::max(loops->count, loops->group));
    nest.erase(std::min(loops->count, loops->group));
  } else if (nest.rank > 0) {
    const int last = nest.rank - 1;
    inner_extent_ = nest.extent[last];
    inner_dst_ = nest.dst[last];
    inner_src_ = nest.src[last];
    nest.erase(last);
    inner_ = Inner::kStrided;
    if (inner_dst_ == elem_size_ && inner_src_ == elem_size_) inner_ = Inner::kRun;
    if (inner_dst_ == elem_size_ && inner_src_ == 0) inner_ = Inner::kFill;
    if (inner_ == Inner::kFill && inner_extent_ < kShortFill && visit_element(elem_size_, [](auto) {})) {
      // The loop in which short fills follow each other in dst.
      for (int i = 0; i < nest.rank; ++i) {
        if (nest.dst[i] != inner_extent_ * elem_size_) continue;
        inner_ = Inner::kRepeat;
        repeat_ = inner_extent_;
        inner_extent_ = nest.extent[i];
        inner_dst_ = nest.dst[i];
        inner_src_ = nest.src[i];
        nest.erase(i);
        break;
      }
    }
    if (inner_ == Inner::kStrided && inner_dst_ == elem_size_ && inner_extent_ >= kTransposeMinExtent) {
      for (int i = 0; i < nest.rank; ++i) {
        if (nest.src[i] != elem_size_ || nest.extent[i] < kTransposeMinExtent) continue;
        inner_ = Inner::kTranspose;
        cross_extent_ = nest.extent[i];
        cross_dst_ = nest.dst[i];
        nest.erase(i);
        break;
      }
    }
  }
  for (int i = 0; i < nest.rank; ++i) {
    outer_extent_.push_back(nest.extent[i]);
    outer_dst_.push_back(nest.dst[i]);
    outer_src_.push_back(nest.src[i]);
    outer_count *= nest.extent[i];
  }
  int64_t step_bytes = elem_size_ * repeat_ * groups_.size;  // of an element of the loop that is cut into chunks
  cuts_cross_ = inner_ == Inner::kTranspose && cross_extent_ * elem_size_ > kTransposeRowBytes;
  if (cuts_cross_) {
    chunk_ = kTransposeRowBytes / elem_size_;
    chunk_count_ = core::ceil_div(cross_extent_, chunk_);
    step_bytes *= inner_extent_;
  } else {
    step_bytes *= cross_extent_;
    chunk_ = std::min(inner_extent_, std::max<int64_t>(1, kCopyItemBytes / step_bytes / kLineBytes) * kLineBytes);
    chunk_count_ = core::ceil_div(inner_extent_, chunk_);
  }
  step_bytes *= chunk_;
  step_count_ = outer_count * chunk_count_;
  steps_per_work_item_ = std::max<int64_t>(1, kCopyItemBytes / std::max<int64_t>(1, step_bytes));
  work_count_ = core::ceil_div(step_count_, steps_per_work_item_);
}

void StridedCopy::run_inner(std::byte* dst, const std::byte* src, int64_t chunk) const {
  const int64_t start = chunk * chunk_;
  if (cuts_cross_) {
    const int64_t rows = std::min(chunk_, cross_extent_ - start);
    transpose_block({dst + start * cross_dst_, cross_dst_}, {src + start * elem_size_, inner_src_}, rows, inner_extent_,
                    elem_size_, streaming_);
    return;
  }
  const int64_t count = std::min(chunk_, inner_extent_ - start);
  dst += start * inner_dst_;
  src += start * inner_src_;
  switch (inner_) {
    case Inner::kRun:
      copy_run(dst, src, count * elem_size_, streaming_);
      return;
    case Inner::kFill:
      fill_elements(dst, src, count, elem_size_);
      return;
    case Inner::kRepeat:
      repeat_elements({.elements = src, .stride_bytes = inner_src_, .runs = count, .count = repeat_}, elem_size_, dst);
      return;
    case Inner::kGroups: {
      Groups some = groups_;
      some.count = count;
      copy_groups(dst, src, some);
      return;
    }
    case Inner::kTranspose:
      transpose_block({dst, cross_dst_}, {src, inner_src_}, cross_extent_, count, elem_size_, streaming_);
      return;
    case Inner::kStrided:
      copy_strided(dst, inner_dst_, src, inner_src_, count, elem_size_);
      return;
  }
}

void StridedCopy::run(std::byte* dst, const std::byte* src, int64_t begin, int64_t end) const {
  const int64_t first = begin * steps_per_work_item_;
  const int64_t last = std::min(end * steps_per_work_item_, step_count_);
  if (first >= last) return;
  const int rank = static_cast<int>(outer_extent_.size());
  std::array<int64_t, kMaxRank> index{};
  int64_t chunk = first % chunk_count_;
  int64_t rest = first / chunk_count_;
  for (int i = rank - 1; i >= 0; --i) {
    index[i] = rest % outer_extent_[i];
    rest /= outer_extent_[i];
    dst += index[i] * outer_dst_[i];
    src += index[i] * outer_src_[i];
  }
  for (int64_t step = first; step < last; ++step) {
    run_inner(dst, src, chunk);
    if (++chunk < chunk_count_) continue;
    chunk = 0;
    for (int i = rank - 1; i >= 0; --i) {
      dst += outer_dst_[i];
      src += outer_src_[i];
      if (++index[i] < outer_extent_[i]) break;
      dst -= outer_dst_[i] * outer_extent_[i];
      src -= outer_src_[i] * outer_extent_[i];
      index[i] = 0;
    }
  }
  if (streaming_) stream_fence();
}

RowCopies::RowCopies(tensor::Dims extent, tensor::Dims dst_strides, tensor::Dims src_strides, int64_t elem_size,
                     int64_t block_rows)
    : extent_(std::move(extent)),
      dst_strides_(std::move(dst_strides)),
      src_strides_(std::move(src_strides)),
      elem_size_(elem_size),
      row_bytes_(tensor::element_count(extent_, 1, extent_.size()) * elem_size),
      block_rows_(std::min(block_rows, extent_[0])),
      block_(of_rows(block_rows_)) {}

StridedCopy RowCopies::of_rows(int64_t rows) const {
  tensor::Dims extent = extent_;
  extent[0] = rows;
  return {extent, dst_strides_, src_strides_, elem_size_};
}

void RowCopies::run(std::byte* dst, const std::byte* src, int64_t begin, int64_t end) const {
  dst += begin * dst_strides_[0] * elem_size_;
  src += begin * src_strides_[0] * elem_size_;
  if (end - begin == block_rows_)
    block_.run(dst, src);
  else if (begin < end)
    of_rows(end - begin).run(dst, src);
}

void copy_block(std::byte* dst, std::span<const int64_t> dst_dims, std::span<const int64_t> dst_start,
                const std::byte* src, std::span<const int64_t> src_dims, std::span<const int64_t> src_start,
                std::span<const int64_t> extent, int64_t elem_size) {
  std::array<int64_t, kMaxRank> dst_strides{};
  std::array<int64_t, kMaxRank> src_strides{};
  const size_t rank = extent.size();
  if (rank > static_cast<size_t>(kMaxRank)) {
    throw core::Error("unsupported_op", fmt::format("a tensor may have at most {} dimensions, got {}", kMaxRank, rank));
  }
  int64_t dst_stride = 1;
  int64_t src_stride = 1;
  for (size_t d = rank; d-- > 0;) {
    dst_strides[d] = dst_stride;
    src_strides[d] = src_stride;
    dst += dst_start[d] * dst_stride * elem_size;
    src += src_start[d] * src_stride * elem_size;
    dst_stride *= dst_dims[d];
    src_stride *= src_dims[d];
  }
  Nest nest = make_nest(extent, {dst_strides.data(), rank}, {src_strides.data(), rank}, elem_size);
  if (nest.empty) return;
  merge_neighbours(nest);
  widen_element(nest);
  int64_t bytes = nest.elem;
  for (int i = 0; i < nest.rank; ++i) bytes *= nest.extent[i];
  const bool streaming = bytes >= streaming_bytes();

  // The innermost loop is a run when it is contiguous in both, which it is unless the last dims were sliced to one
  // element.
  int64_t inner = 1;
  int64_t inner_dst = nest.elem;
  int64_t inner_src = nest.elem;
  if (nest.rank > 0) {
    const int last = --nest.rank;
    inner = nest.extent[last];
    inner_dst = nest.dst[last];
    inner_src = nest.src[last];
  }
  std::array<int64_t, kMaxRank> index{};
  for (;;) {
    if (inner_dst == nest.elem && inner_src == nest.elem) {
      copy_run(dst, src, inner * nest.elem, streaming);
    } else {
      copy_strided(dst, inner_dst, src, inner_src, inner, nest.elem);
    }
    int i = nest.rank - 1;
    for (; i >= 0; --i) {
      dst += nest.dst[i];
      src += nest.src[i];
      if (++index[i] < nest.extent[i]) break;
      dst -= nest.dst[i] * nest.extent[i];
      src -= nest.src[i] * nest.extent[i];
      index[i] = 0;
    }
    if (i < 0) break;
  }
  if (streaming) stream_fence();
}

}  // namespace meshd::kernels
