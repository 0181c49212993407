// The loop schedule of FusedKernel, computed once: outer dims, the region that tiles traverse, and the split into work
// items. Private to this folder.
#pragma once

#include <memory>
#include <optional>

#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/fold/argmax_fold.h"
#include "service/kernels/fold/fold_kernels.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/fused/tile_reader.h"
#include "service/kernels/tile/tile_code.h"

namespace meshd::kernels {

/// A dim outside of the region that tiles walk through.
struct OuterDim {
  int64_t size = 1;
  tensor::Dims strides;  ///< one for each input, in elements
};

/// How a reduction works through its iteration space. The innermost part of it is read as (groups, items, lanes):
/// results are groups x lanes, items are folded within tiles as far as a tile holds them; what is reduced outside comes
/// step by step.
struct ReducePlan {
  std::vector<OuterDim> kept;     ///< outer dims of the result
  std::vector<OuterDim> reduced;  ///< outer dims that are reduced
  int64_t groups = 1;
  int64_t items = 1;
  int64_t lanes = 1;
  int64_t reduced_size = 1;  ///< elements behind one result
  int64_t chunk = 1;         ///< results of a work item: so many groups, or lanes when items is 1
  int64_t chunks = 1;        ///< work items in one region
  /// What is reduced is cut into so many parts, each a work item of its own; behind a barrier they are combined in
  /// order.
  int64_t parts = 1;
  int64_t part_size = 0;                     ///< indices of a part but the last one
  bool cuts_outer = false;                   ///< these are of the first outer dim that is reduced; false: of the items
  int64_t part_bytes = 0;                    ///< of a part's accumulator in the workspace
  std::optional<FoldKernels> fold;           ///< the direct loop, where there is one
  std::optional<ArgmaxFold> argmax;          ///< likewise, for pairs of a value and a counted index
  std::optional<TileLayout> reducer_layout;  ///< for any other reducer
  std::shared_ptr<const LazyTileCode> reducer_code;  ///< of the same; null: it is interpreted
};

/// Immutable; any thread.
struct FusedPlan {
  Region region;
  TileLayout layout;
  int64_t tile = 64;  ///< lanes of a tile
  int64_t work_count = 0;
  int64_t barrier = 0;             ///< work items from this one on combine parts; 0: there are none
  int64_t workspace_bytes = 0;     ///< what parts leave for them
  int64_t work_item_elements = 1;  ///< pointwise: elements of a work item
  bool streams = false;            ///< outputs leave past the caches
  bool places_stream = false;      ///< outputs that have places do, where their rows are long
  std::vector<char> stays;         ///< by output, where it streams: not this one, it is read soon; empty: all do
  bool by_rows = false;            ///< pointwise: no tile has lanes of two rows of the region
  std::vector<uint16_t>
      elements;  ///< inputs with one value on all lanes of a row of the region, which code may read as it is
  /// Tiles are rows of so many lanes, a vector or more, each with elements of its own, or lanes anywhere in memory. 0:
  /// no tile with elements has two rows.
  int64_t row_lanes = 0;
  std::vector<uint16_t> row_inputs;   ///< RegionInput::has_rows(), where row_lanes says that tiles are rows
  std::vector<uint16_t> row_outputs;  ///< likewise, all outputs: their rows go where FusedLoop::places says
  /// Of a reduction: code may sum the lanes of its one output, along rows of a block or more, or of so many. 0: none.
  int64_t sum_lanes = 0;
  bool prefetches = false;                   ///< inputs are not in the cache: prefetch those of the next tile
  std::shared_ptr<const LazyTileCode> code;  ///< null: the program is interpreted
  std::optional<ReducePlan> reduce;
};

/// Number of groups of `group_size` elements in a tile: full blocks of lanes where possible.
int64_t groups_of_tile(int64_t tile, int64_t group_size);

FusedPlan make_fused_plan(const FusedLoop& loop);

/// Code of the loop's program for a run over `lanes` lanes; null: it is interpreted.
const TileCode* code_of(const FusedLoop& loop, const FusedPlan& plan, int64_t lanes);
/// The plan's elements where that code reads them as such; none where it is null or reads all lanes.
std::span<const uint16_t> elements_of(const TileCode* code, const FusedPlan& plan);
/// Whether that code goes row by row.
bool goes_by_row(const TileCode* code, const FusedPlan& plan);
/// Elements that code takes at once, and between two checkpoints, where no lane passes through a register; some
/// microseconds.
inline constexpr int64_t kLongTile = 16 * 1024;
/// Whether it reads all inputs where they are, at any place of a region of one dim or of rows (FusedPlan::row_lanes).
bool reads_in_place(const TileCode* code, const FusedPlan& plan);
/// Memory that it takes at most.
int64_t fused_code_bytes(const FusedLoop& loop, const FusedPlan& plan);

/// Memory that is read soon, element for element of a range that is computed meanwhile.
struct SoonRead {
  const std::byte* begin = nullptr;
  int64_t element_bytes = 0;
};

/// Sets every input of the reader to the region that starts `places` elements (one for each input) from its beginning.
void set_bases(TileReader& reader, const FusedLoop& loop, const FusedCall& call, const tensor::Dims& places);

}  // namespace meshd::kernels
