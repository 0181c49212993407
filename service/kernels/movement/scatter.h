// Scatter: combines windows of updates into an array at index tuples, in the order of the updates but for sums of parts
// (below). A window that is partly out of bounds is skipped. Sizes and strides in elements.
//
// A large scatter is split by target rows:
// 1. Where all starts of windows are multiples of a row's elements, and no window is longer than a row, each window
//    changes one row. Neighbouring rows make a bucket.
// 2. First work items: each sorts some thousand index tuples by bucket (counting sort, stable) into the workspace.
// 3. Behind a barrier, a work item for each bucket copies its rows and combines the updates that go there, in the order
//    of the tuples: the order of the updates of one row is that of the whole, so bits do not depend on the split.
//
// Example: rows 20,000 x 64, 65,536 updates of a row: 8 work items of 8,192 tuples, a barrier, 32 buckets of 625 rows.
// (Rows that stay in the cache are not sorted: one work item combines them as they come.)
//
// A scatter that adds many updates of few elements (or combines them by `or` and `xor`), as a histogram does, is a sum
// of parts:
// 1. First work items: one adds its share of the updates to the array, each of the others to zeros in the workspace.
// 2. Behind a barrier, each adds a range of the others' sums to the array, in the order of the parts.
//
// Example: 1,000,000 updates of 100 counts: 8 parts of 100 counts, a barrier, one range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/movement/element_update.h"
#include "service/kernels/movement/index_table.h"
#include "service/kernels/movement/scatter_lines.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

/// One call of a scatter.
struct ScatterCall {
  const std::byte* const* sources = nullptr;  ///< the arrays before
  std::byte* const* results = nullptr;        ///< and after; may be the sources' memory
  const std::byte* indices = nullptr;
  const std::byte* const* updates = nullptr;
  const int64_t* shifts = nullptr;  ///< as IndexRun::read_checked takes them
  std::byte* workspace = nullptr;   ///< Scatter::workspace_bytes(), the same for all calls of one execution
  int64_t begin = 0;                ///< range of work items
  int64_t end = 0;
  core::Checkpoint* checkpoint = nullptr;
};

/// A scatter made ready, of one or several arrays of one shape with one body. Immutable; any thread.
class Scatter {
 public:
  /// `body` takes the arrays' elements, then those of the updates, and gives the arrays' new ones. `window` has the
  /// sizes of one window's dims; its strides in the updates and in the arrays go with them. `array_elements`: of one
  /// array.
  Scatter(IndexTable table, const tensor::Dims& window, tensor::Dims update_strides, tensor::Dims array_strides,
          int64_t array_elements, TileProgram body);

  [[nodiscard]] int64_t work_count() const { return barrier() + bucket_count_; }
  /// Work items from here on need all before; zero: there is no such item.
  [[nodiscard]] int64_t barrier() const { return chunk_count_ + part_count_; }
  [[nodiscard]] int64_t workspace_bytes() const;
  void run(const ScatterCall& call) const;

 private:
  enum class Apply : uint8_t { kReplace, kBinary, kProgram };
  struct Rows;

  void plan_work_items(const tensor::Dims& window, const tensor::Dims& array_strides);
  void plan_parts(ScalarOp op, int64_t updates);
  /// One part's share of the updates.
  void run_part(const ScatterCall& call, int64_t part) const;
  /// The other parts' sums to the array, in a bucket of elements.
  void add_parts(const ScatterCall& call, int64_t bucket) const;
  void copy_range(const ScatterCall& call, int64_t begin, int64_t end) const;
  /// All tuples, in their order.
  void run_whole(const ScatterCall& call) const;
  /// Tuples of one chunk into its part of the workspace, by bucket.
  void sort_chunk(const ScatterCall& call, int64_t chunk) const;
  void run_bucket(const ScatterCall& call, int64_t bucket) const;
  void update_windows(std::span<const ElementRun> windows, const ScatterCall& call) const;
  [[nodiscard]] int64_t chunk_bytes() const;
  /// `windows`: pairs of offsets, as IndexRun's or an ElementRun's.
  template <typename Windows>
  void combine(const Windows& windows, Rows& rows, const ScatterCall& call) const;

  IndexTable table_;
  TileProgram body_;
  Apply apply_ = Apply::kProgram;
  ScalarKernel binary_ = nullptr;
  tensor::Dims outer_;  // loops of a window around its innermost run
  tensor::Dims outer_update_;
  tensor::Dims outer_array_;
  int64_t run_length_ = 1;  // elements that are contiguous in updates and arrays
  std::vector<int64_t> elem_sizes_;
  int64_t array_elements_ = 0;
  int64_t lanes_ = 64;
  bool is_empty_ = false;
  std::optional<ScatterLines> lines_;  // where they take the place of windows
  ElementUpdate update_ = nullptr;     // of all windows of a bucket, where each is one run
  // Zero chunks and parts: one bucket is the whole array, and the tuples are read as it is combined.
  int64_t chunk_tuples_ = 0;
  int64_t chunk_count_ = 0;
  int64_t bucket_count_ = 1;
  int64_t bucket_elements_ = 0;
  int64_t part_count_ = 0;
  int64_t part_bytes_ = 0;  // in the workspace, of each part but the first
};

}  // namespace meshd::kernels
