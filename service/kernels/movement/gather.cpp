#include "service/kernels/movement/gather.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "service/kernels/element_width.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kGatherItemBytes = 64 << 10;

// A window of known size: the copy is a load and a store.
template <size_t kBytes>
void copy_fixed(const IndexRun& run, const std::byte* operand, std::byte* result, int64_t elem) {
  for (size_t i = 0; i < run.operand.size(); ++i) {
    std::memcpy(result + run.slice[i] * elem, operand + run.operand[i] * elem, kBytes);
  }
}

// Bytes of a window that is contiguous in both arrays, 0 where it is not.
int64_t contiguous_bytes(const tensor::Dims& window, const tensor::Dims& result_strides,
                         const tensor::Dims& operand_strides, int64_t elem) {
  int64_t expected = 1;
  for (size_t d = window.size(); d-- > 0;) {
    if (window[d] == 1) continue;
    if (result_strides[d] != expected || operand_strides[d] != expected) return 0;
    expected *= window[d];
  }
  return expected * elem;
}

}  // namespace

Gather::Gather(IndexTable table, const tensor::Dims& window, const tensor::Dims& result_strides,
               const tensor::Dims& operand_strides, int64_t elem_size)
    : table_(std::move(table)),
      window_(window, result_strides, operand_strides, elem_size),
      elem_size_(elem_size),
      run_bytes_(contiguous_bytes(window, result_strides, operand_strides, elem_size)),
      tuple_count_(table_.count()) {
  if (window_.work_count() == 0 || tuple_count_ == 0) return;
  lines_ = GatherLines::make(table_, window, result_strides, operand_strides, elem_size);
  if (lines_) {
    work_count_ = lines_->work_count();
    return;
  }
  if (window_.work_count() > 1) {
    work_items_per_window_ = window_.work_count();
    work_count_ = tuple_count_ * work_items_per_window_;
    return;
  }
  tuples_per_work_item_ = std::max<int64_t>(1, kGatherItemBytes / window_.byte_count());
  work_count_ = core::ceil_div(tuple_count_, tuples_per_work_item_);
}

void Gather::copy_windows(const IndexRun& run, const std::byte* operand, std::byte* result) const {
  if (visit_element(run_bytes_, [&](auto window) { copy_fixed<sizeof(window)>(run, operand, result, elem_size_); }))
    return;
  for (size_t i = 0; i < run.operand.size(); ++i) {
    std::byte* const to = result + run.slice[i] * elem_size_;
    const std::byte* const from = operand + run.operand[i] * elem_size_;
    if (run_bytes_ == 0) {
      window_.run(to, from);
    } else {
      std::memcpy(to, from, static_cast<size_t>(run_bytes_));
    }
  }
}

void Gather::run(const std::byte* operand, const std::byte* indices, std::byte* result, int64_t begin,
                 int64_t end) const {
  if (lines_) return lines_->run(operand, indices, result, begin, end);
  IndexRun run;
  if (work_items_per_window_ > 1) {
    for (int64_t work_item = begin; work_item < end;) {
      const int64_t tuple = work_item / work_items_per_window_;
      const int64_t first = work_item - tuple * work_items_per_window_;
      const int64_t last = std::min(work_items_per_window_, first + end - work_item);
      run.read_clamped(table_, indices, tuple, 1);
      window_.run(result + run.slice[0] * elem_size_, operand + run.operand[0] * elem_size_, first, last);
      work_item += last - first;
    }
    return;
  }
  const int64_t stop = std::min(tuple_count_, end * tuples_per_work_item_);
  for (int64_t tuple = begin * tuples_per_work_item_; tuple < stop; tuple += kTuplesAtOnce) {
    run.read_clamped(table_, indices, tuple, std::min(kTuplesAtOnce, stop - tuple));
    copy_windows(run, operand, result);
  }
}

}  // namespace meshd::kernels
