// The accumulators of a fused reduction: a row of lanes, to each of which values are added in steps. The order of
// additions depends on shapes only, so a result has the same bits on every thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "service/kernels/fold/argmax_fold.h"
#include "service/kernels/fold/fold_kernels.h"

namespace meshd::kernels {

class LazyTileCode;
class TileLayout;
struct TileProgram;

/// Memory of one array for each of the values that a reducer combines.
using ValueRows = std::vector<const std::byte*>;

/// One thread.
class Accumulator {
 public:
  virtual ~Accumulator() = default;
  Accumulator() = default;
  Accumulator(const Accumulator&) = delete;
  Accumulator& operator=(const Accumulator&) = delete;

  /// Empties `lanes` lanes, at most as many as it was made for.
  virtual void reset(int64_t lanes) = 0;
  /// Adds values to lanes [lane, lane + count); in one step no lane gets more than one. Operand order is the order of
  /// steps.
  virtual void add_values(const ValueRows& values, int64_t lane, int64_t count) = 0;
  /// The same with values (groups, items, lanes) that are first folded over their items, into groups * lanes lanes.
  virtual void add_segments(const ValueRows& values, int64_t groups, int64_t items, int64_t lanes, int64_t lane) = 0;
  /// The same with sums that generated code has made (FoldKernels::sums_floats): of segments of one lane.
  virtual void add_totals(const double* /*totals*/, int64_t /*groups*/, int64_t /*lane*/) {}
  /// One step of 1 to kFoldRows rows of the one value, `row_bytes` apart, from lane 0 on. Only where adds_rows().
  virtual void add_rows(const std::byte* /*values*/, int64_t /*row_bytes*/, int64_t /*rows*/, int64_t /*count*/) {}
  [[nodiscard]] virtual bool adds_rows() const { return false; }
  /// The same with the lanes of another accumulator of this kind, which is empty afterwards.
  virtual void add_all_of(Accumulator& other, int64_t lane) = 0;
  virtual void end_step() = 0;
  /// Writes what has come in: the lanes' accumulators, value by value. At least one step has ended. Empty afterwards.
  virtual void store(std::byte* to) = 0;
  /// One step of all lanes, with what another accumulator of this kind and of as many lanes has stored. Parts come in
  /// their order.
  virtual void add_stored(const std::byte* from) = 0;
  /// Combines the initial values with what has come in, if anything has, and writes all lanes from element `start` of
  /// the results.
  virtual void finish(const ValueRows& init, std::byte* const* results, int64_t start) = 0;
};

/// For the reducers that have direct loops. Values are elements of the reduced type.
std::unique_ptr<Accumulator> make_fold_accumulator(const FoldKernels& fold, tensor::DType element, int64_t lanes);

/// For argmax and argmin. Where it is given values, the second row is one index: that of all of them, or of the first
/// item of each segment, from which items count up.
std::unique_ptr<Accumulator> make_argmax_accumulator(const ArgmaxFold& fold, tensor::DType element, int64_t lanes);

/// For any other reducer: works through its tile program, items in their order (it need not be commutative). `code`: of
/// the program; null: it is interpreted.
std::unique_ptr<Accumulator> make_reducer_accumulator(const TileProgram& reducer, const TileLayout& layout,
                                                      const LazyTileCode* code, int64_t lanes);

}  // namespace meshd::kernels
