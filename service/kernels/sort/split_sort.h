// A few long lines, each sorted by several threads: a sample sort (sort_buckets.h) of unsigned keys. Cuts depend on the
// length alone, and the order of keys is the only one there is, so that results do not depend on threads.
//
// Phases, with a barrier between two; pieces are kPiece elements, and there are kSortBuckets buckets:
//   1. by piece: keys of the elements, with their index where other operands follow
//   2. by line: bounds of the buckets
//   3. by piece: keys are counted
//   4. by piece: keys are dealt to their buckets
//   5. by bucket: sorted; elements of the result
// Where zeros or NaNs that are equal have other bits, their elements get them back in the order of the operand:
//   6. by piece: they are counted
//   7. by piece: they are placed
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/sort/sort_keys.h"

namespace meshd::kernels {

/// Immutable; any thread.
class SplitSort {
 public:
  /// Lines are contiguous. Keys have to be of operand 0 alone where it is the only one; at most 128 bits with an index.
  SplitSort(int64_t lines, int64_t length, std::vector<int64_t> elem_sizes, std::vector<SortKey> keys);

  /// Whether lines are long enough, and too few to give each thread some.
  static bool pays(int64_t lines, int64_t length);
  /// Whether it sorts by these keys: not by such as are an order only without NaNs, or that NaNs share with numbers.
  static bool takes(const std::vector<int64_t>& elem_sizes, const std::vector<SortKey>& keys, int64_t length);

  [[nodiscard]] int64_t work_count() const { return first_items_.back(); }
  /// Work items that begin when all before them are done.
  [[nodiscard]] std::vector<int64_t> barriers() const { return {first_items_.begin() + 1, first_items_.end() - 1}; }
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] int64_t workspace_bytes() const { return lines_ * line_bytes_; }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch, std::byte* workspace,
           int64_t begin, int64_t end, core::Checkpoint* checkpoint) const;

 private:
  enum Phase : uint8_t { kKeys, kBounds, kCount, kDeal, kSort, kCountAlike, kPlaceAlike, kPhases };
  struct Line;

  template <typename T>
  void run_item(Phase phase, int64_t item, const Line& line, std::byte* scratch, core::Checkpoint* checkpoint) const;
  template <typename T>
  void make_keys(int64_t piece, const Line& line, std::byte* scratch) const;
  template <typename T>
  void sort_bucket(int64_t bucket, const Line& line, core::Checkpoint* checkpoint) const;
  void count_alike_elements(int64_t piece, const Line& line) const;
  template <typename T>
  void place_alike_elements(int64_t piece, const Line& line) const;
  [[nodiscard]] bool is_exact(const Line& line) const;
  template <typename T>
  T* keys_of(const Line& line) const;

  [[nodiscard]] int64_t piece_length(int64_t piece) const;

  int64_t lines_;
  int64_t length_;
  std::vector<int64_t> elem_sizes_;
  std::vector<SortKey> keys_;
  int64_t pieces_;
  int64_t key_bytes_;    // of what is sorted
  bool has_index_;       // other operands follow
  bool keys_in_result_;  // before they are dealt
  std::array<int64_t, kPhases + 1> first_items_{};
  // Of a line, in its part of the workspace.
  int64_t keys_at_ = 0, dealt_at_ = 0, buckets_at_ = 0, bounds_at_ = 0, counts_at_ = 0, exact_at_ = 0, alike_at_ = 0;
  int64_t line_bytes_ = 0;
  int64_t scratch_bytes_ = 0;
};

}  // namespace meshd::kernels
