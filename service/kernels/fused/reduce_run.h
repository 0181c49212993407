// Walks work items of a fused loop that ends in a reduction: tiles are computed, and accumulators fold them. Private to
// this folder.
#pragma once

#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "service/kernels/fold/accumulator.h"
#include "service/kernels/fused/fused_plan.h"

namespace meshd::kernels {

/// Registers, readers and accumulators of one loop, kept from work item to work item. One thread, for one call; loop,
/// plan and call must outlive it. The call's results may change between work items.
class ReduceRun {
 public:
  ReduceRun(const FusedLoop& loop, const FusedPlan& plan, const FusedCall& call, std::pmr::memory_resource* memory);

  void run_work_item(int64_t work_item);

  /// The first `groups` groups of a region that has no outer dims and begins, for each input, at `places`. Results go
  /// to the results' first elements. As many elements of each of `soon` are prefetched meanwhile.
  void run_groups(const tensor::Dims& places, int64_t groups, std::span<const SoonRead> soon = {});

  /// The memory of an input has other contents than when it was read.
  void forget(size_t input) { reader_.forget(input); }

 private:
  /// Results of one work item: [first, first + size) of one region, in groups or lanes.
  struct Results {
    tensor::Dims places;  ///< where inputs begin
    int64_t first = 0;
    int64_t size = 0;
    int64_t start = 0;  ///< of the results' elements
  };
  [[nodiscard]] Results results_of(int64_t result_item) const;
  void reset(const Results& results) {
    results_->reset(reduce_.items == 1 ? results.size : results.size * reduce_.lanes);
  }
  void reduce(Results& results);
  /// One part of what is reduced, into the workspace; and all of them into the results.
  void reduce_part(Results& results, int64_t part, std::byte* to);
  void combine_parts(const Results& results, const std::byte* from);
  [[nodiscard]] std::unique_ptr<Accumulator> make_accumulator(int64_t lanes) const;
  [[nodiscard]] bool tile_holds_one_group() const;
  [[nodiscard]] bool only_reads() const;
  [[nodiscard]] bool sums_by_code() const { return plan_.sum_lanes > 0 && code_ != nullptr && code_->sums(); }
  static void move(tensor::Dims& places, const OuterDim& dim, int64_t steps);
  /// Indices of the first outer dim that is reduced, or of the items, that are added: those of a part, or all.
  [[nodiscard]] int64_t outer_size(size_t depth) const;
  void reduce_outer(tensor::Dims& places, size_t depth, int64_t first, int64_t size);
  const ValueRows& compute(int64_t start, int64_t count, int64_t end);
  void add_tile(Accumulator& to, int64_t start, int64_t groups, int64_t items, int64_t end, int64_t lane);
  void sum_rows(int64_t start, int64_t rows, int64_t items, int64_t end);
  [[nodiscard]] std::span<const MemoryRange> soon_of_tile(int64_t start, int64_t count);
  static int64_t lanes_again(int64_t first, int64_t lane, int64_t count);
  const ValueRows& compute_lanes(int64_t first, int64_t lane, int64_t count, int64_t size);
  void add_rows(int64_t place, const OuterDim& dim, int64_t first, int64_t size);
  void add_computed_rows(tensor::Dims& places, const OuterDim& dim, int64_t first, int64_t size);
  void add_lanes(int64_t first, int64_t size);
  void add_groups(int64_t first, int64_t size);
  void add_long_groups(int64_t first, int64_t size);

  const FusedLoop& loop_;
  const FusedPlan& plan_;
  const ReducePlan& reduce_;
  const FusedCall& call_;
  int64_t tile_;
  TileScratch scratch_;
  TileReader reader_;
  const TileCode* code_ = nullptr;
  std::unique_ptr<Accumulator> results_;
  std::unique_ptr<Accumulator> group_;  ///< of one group that takes several tiles
  bool adds_rows_ = false;
  std::vector<std::byte> staged_;  ///< computed rows that are added at once; empty where rows are read, or added apart
  bool is_computed_ = false;       ///< the first value is an instruction's: it may be computed into any memory
  int64_t part_begin_ = 0;         ///< where a part begins that is being reduced
  int64_t part_indices_ = -1;      ///< indices that it has; -1: there are no parts
  ValueRows init_;
  ValueRows rows_;
  std::span<const SoonRead> soon_;
  std::vector<MemoryRange> soon_of_tile_;
  std::vector<double> totals_;  ///< of the rows of a tile, where code sums them
};

}  // namespace meshd::kernels
