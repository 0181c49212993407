#include "service/kernels/movement/gathered_fold.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "service/core/checked_math.h"
#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/fold/accumulator.h"

namespace meshd::kernels {
namespace {

// Rows with fewer lanes are folded within tiles, in another order.
constexpr int64_t kLeastLanes = kBlockLanes;
// Pairs of cache lines are fetched together.
constexpr int64_t kLinePairBytes = 128;
constexpr int64_t kMostWorkItems = 8;
constexpr int64_t kMostWorkItemLanes = 2048;
constexpr int64_t kPrefetchRows = 16;
constexpr int64_t kMostPrefetchBytes = 256;

}  // namespace

std::optional<GatheredFold> GatheredFold::make(IndexTable table, int64_t lanes, const TileProgram& reducer,
                                               tensor::DType element) {
  const std::optional<FoldKernels> fold = find_fold(as_single_binary(reducer), element);
  if (!fold || fold->widen != nullptr || fold->rows == nullptr || lanes < kLeastLanes) return std::nullopt;
  return GatheredFold(std::move(table), lanes, *fold, element);
}

GatheredFold::GatheredFold(IndexTable table, int64_t lanes, const FoldKernels& fold, tensor::DType element)
    : table_(std::move(table)), fold_(fold), element_(element), elem_size_(tensor::size_bytes(element)), lanes_(lanes) {
  const int64_t least = kLinePairBytes / elem_size_;
  const int64_t even = core::round_up(core::ceil_div(lanes, kMostWorkItems), least);
  work_item_lanes_ = std::min({lanes, std::max(least, even), kMostWorkItemLanes});
}

int64_t GatheredFold::work_count() const { return core::ceil_div(lanes_, work_item_lanes_); }

void GatheredFold::run(const GatheredFoldCall& call) const {
  for (int64_t work_item = call.begin; work_item < call.end; ++work_item) {
    const int64_t first = work_item * work_item_lanes_;
    run_lanes(call, first, std::min(work_item_lanes_, lanes_ - first));
  }
}

void GatheredFold::run_lanes(const GatheredFoldCall& call, int64_t first, int64_t count) const {
  const std::unique_ptr<Accumulator> sums = make_fold_accumulator(fold_, element_, count);
  sums->reset(count);
  const int64_t row_bytes = count * elem_size_;
  const int64_t ahead_bytes = std::min(kMostPrefetchBytes, row_bytes);
  std::vector<std::byte> rows(static_cast<size_t>(kFoldRows * row_bytes));
  const std::byte* const operand = call.operand + first * elem_size_;
  const int64_t tuples = table_.count();
  IndexRun run;
  // Steps of kFoldRows rows from the first on, as FusedKernel takes them.
  static_assert(kTuplesAtOnce % kFoldRows == 0);
  for (int64_t tuple = 0; tuple < tuples; tuple += kTuplesAtOnce) {
    core::pass(call.checkpoint);
    const int64_t some = std::min(kTuplesAtOnce, tuples - tuple);
    run.read_clamped(table_, call.indices, tuple, some);
    const auto row_at = [&](int64_t i) { return operand + run.operand[static_cast<size_t>(i)] * elem_size_; };
    for (int64_t row = 0; row < some; row += kFoldRows) {
      const int64_t step = std::min(kFoldRows, some - row);
      for (int64_t i = 0; i < step; ++i) {
        if (row + i + kPrefetchRows < some) {
          const std::byte* const ahead = row_at(row + i + kPrefetchRows);
          for (int64_t at = 0; at < ahead_bytes; at += kLineBytes) __builtin_prefetch(ahead + at);
        }
        std::memcpy(rows.data() + i * row_bytes, row_at(row + i), static_cast<size_t>(row_bytes));
      }
      sums->add_rows(rows.data(), row_bytes, step, count);
      sums->end_step();
    }
  }
  sums->finish({call.init}, &call.result, first);
}

}  // namespace meshd::kernels
