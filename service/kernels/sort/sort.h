// Sorting lines of one or several arrays by any comparator: always stable. Comparators that are an order of integers
// (sort_keys.h) sort unsigned keys with Highway's vector sort, few long lines on several threads (split_sort.h); others
// merge, one comparison of the comparator's program at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/sort/sort_keys.h"
#include "service/kernels/sort/split_sort.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

/// Arrays of `outer` x `length` x `inner` elements, sorted along the middle. The comparator selects which operands are
/// compared. All are permuted alike.
struct SortSpec {
  int64_t outer = 1;
  int64_t length = 0;
  int64_t inner = 1;
  std::vector<tensor::DType> dtypes;
  TileProgram comparator;  ///< takes (lhs, rhs) of each operand, returns whether lhs is before rhs
};

/// Immutable; any thread.
class Sort {
 public:
  explicit Sort(SortSpec spec);

  [[nodiscard]] int64_t work_count() const { return work_count_; }
  /// Bytes of scratch, aligned to 64, for each concurrent run().
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }
  /// Work items from each of these on begin when all before it are done. Without workspace there are none.
  [[nodiscard]] std::vector<int64_t> barriers() const;
  /// Bytes of memory, aligned to 64, that all calls share.
  [[nodiscard]] int64_t workspace_bytes() const;

  struct Memory {
    std::byte* scratch = nullptr;
    std::byte* workspace = nullptr;
  };
  /// Sorts work items begin..end-1 of `operands` into `results`, which must be other memory.
  void run(const std::byte* const* operands, std::byte* const* results, const Memory& memory, int64_t begin,
           int64_t end, core::Checkpoint* checkpoint = nullptr) const;

 private:
  class Lines;

  /// Bytes of an element of what is sorted to get the order of a line.
  [[nodiscard]] int64_t sorted_bytes() const;

  SortSpec spec_;
  std::optional<std::vector<SortKey>> keys_;
  std::optional<SplitSort> split_;  // few long lines
  std::vector<int64_t> elem_sizes_;
  int64_t lines_per_work_item_ = 1;
  int64_t work_items_per_outer_ = 1;  // where inner > 1
  int64_t work_count_ = 0;
  int64_t order_bytes_ = 0;   // scratch for keys and the order of a line
  int64_t packed_bytes_ = 0;  // scratch for lines that are not contiguous
  int64_t scratch_bytes_ = 0;
};

}  // namespace meshd::kernels
