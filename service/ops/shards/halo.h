// Halo exchange of an op: which operand rows each row of the result reads where an op reads beyond its own shard
// (windows, pads, slices, reversals, concatenations, kernels that are summed over). A row's function returns it;
// partition fetches the rows that each device reads and runs the op on them, instead of replicating the dimension.
//
// Places. Row r of the operand has place r * spread. Result row o reads the places from start + o * step on, `extent`
// of them. Example: a window of 3 with stride 2 and a padding of 1 before: start -1, step 2, extent 3; a reversal of 8
// rows: start 7, step -1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "service/ir/attribute.h"

namespace meshd::ops {

struct OpView;

/// The value of places without a row: outside of the operand, and between rows that are spread.
enum class Beyond : uint8_t {
  kNothing,  ///< results never read there, or (several operands make one result) another operand has it
  kZero,
  kOperand,  ///< the scalar operand `beyond_operand`
};

/// One dimension of one operand, read along one dimension of the result, or of another operand over which is summed
/// (rows are then the elements of the sum: partial sums are all-reduced). Such a sum is sharded only where all parts
/// have one size.
struct HaloRead {
  size_t operand = 0;
  size_t operand_dim = 0;
  std::optional<size_t> summed_operand = std::nullopt;  ///< nothing: along the result
  size_t along_dim = 0;
  int64_t along_size = 0;  ///< rows of that dimension
  int64_t start = 0;
  int64_t step = 1;  ///< not 0; negative only where extent is 1
  int64_t extent = 1;
  int64_t spread = 1;
  /// Reads begin only at places that are `phase` modulo `grid` and extend over `tail` further places (windows: a stride
  /// apart, one place less than a window). Parts of a multiple of `grid` places fetch just these; where tail is 0 and
  /// rows are as far apart (spread is grid), no places between. Other than 1 only where step is 1.
  int64_t grid = 1;
  int64_t phase = 0;
  int64_t tail = 0;
  Beyond beyond = Beyond::kNothing;
  size_t beyond_operand = 0;
};

/// The halo reads of an op. Dimensions that are not listed are read at the same index.
struct Halo {
  std::vector<HaloRead> reads;
  /// True: a result row is the row that is read, and nothing is left to compute (extent is 1; all dimensions that move
  /// are listed). False: the op runs on the rows that were fetched, with the attributes of `localize`.
  bool is_move = false;
  /// The op's attributes where `fetched` was fetched with everything around it: no padding, nothing spread. Null for
  /// moves.
  ir::AttributeList (*localize)(const OpView& global, std::span<const HaloRead> fetched) = nullptr;
};

/// With global types: the alternative halos of this instance, of which partition takes the cheapest. A dimension of an
/// operand is read at most once in each. None: it reads no neighbours, or cannot express it so.
using HaloFn = std::vector<Halo> (*)(const OpView&);

}  // namespace meshd::ops
