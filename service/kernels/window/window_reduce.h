// reduce_window: windows over any dimensions of a few arrays, combined by one monoid. Work is split into work items by
// shapes alone: blocks of the dimensions before and behind those with windows, and slices of the first of these.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/fold/monoid.h"
#include "service/kernels/window/short_windows.h"
#include "service/kernels/window/window.h"

namespace meshd::kernels {

struct WindowReduceCall {
  const std::byte* const* inputs = nullptr;  ///< one for each value, dense row-major
  const std::byte* const* init = nullptr;    ///< one element of each value
  std::byte* const* results = nullptr;
  int64_t begin = 0;  ///< range of work items
  int64_t end = 0;
  std::byte* scratch = nullptr;  ///< scratch_bytes() of this call alone, aligned to 64
  core::Checkpoint* checkpoint = nullptr;
};

/// Immutable; run() may be called by several threads on disjoint ranges. Elements are combined in row-major order
/// within a window, the initial value before them, once; padding and holes are not combined.
class WindowReduce {
 public:
  /// One entry of `dims` for each dimension of the arrays.
  WindowReduce(std::shared_ptr<const Monoid> monoid, const std::vector<WindowDim>& dims);

  [[nodiscard]] int64_t work_count() const { return work_count_; }
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }
  /// Combinations that all work items make, about.
  [[nodiscard]] double combine_count() const { return combine_count_; }
  void run(const WindowReduceCall& call) const;

 private:
  struct Block {
    int64_t lead = 0;  ///< index before the windows' dimensions
    int64_t lead_count = 1;
    int64_t window = 0;  ///< of the first dimension with windows
    int64_t window_count = 1;
    int64_t inner = 0;  ///< index behind
    int64_t inner_count = 1;
  };
  void run_block(const WindowReduceCall& call, Monoid::Worker& worker, const Block& block) const;
  void run_scan(const WindowReduceCall& call, Monoid::Worker& worker, const Block& block) const;
  void store(const WindowReduceCall& call, Monoid::Worker& worker, const Block& block, const Rows& sums, bool is_dense,
             const std::vector<std::vector<int64_t>>& empty, const Rows& spare) const;
  void choose_blocks();

  std::shared_ptr<const Monoid> monoid_;
  int64_t lead_ = 1;
  int64_t inner_ = 1;
  std::vector<WindowDim> dims_;  ///< from the first to the last with windows
  std::vector<int64_t> rows_;    ///< sizes of these in the arrays
  std::vector<int64_t> windows_;
  int64_t result_lanes_ = 0;
  std::optional<ShortWindows> short_;  ///< takes the place of all that follows
  bool is_scan_ = false;               ///< every window begins with the array, or ends with it: sums from one end
  bool is_backwards_ = false;
  WindowLanes block_;  ///< of a work item
  int64_t window_block_ = 1;
  int64_t work_count_ = 0;
  int64_t array_lanes_ = 0;  ///< lanes of each of the arrays in scratch
  int64_t scratch_bytes_ = 0;
  double combine_count_ = 0;
};

}  // namespace meshd::kernels
