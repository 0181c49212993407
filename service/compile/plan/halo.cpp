// Halo exchange as block copies: each part of the result gets the rows that it reads, its own and its neighbours'; a
// scalar fills rows that no operand has.
//
// For each shard of the result, operand and dimension:
// 1. rows_read() gives the operand rows of the part, in global numbers (partition/halo_dim.h).
// 2. runs_of() splits them where the parts of the operand end. runs_beyond() lists the rows that are left over.
// 3. One copy for each combination of runs, one run of each dimension.
// 4. Rows that are left over are filled with the scalar, if the op has one: along dimension d those that are left over
//    there, given along the dimensions before it, any along those behind it. So these blocks are disjoint.
//
// Example: mesh x=4, 8x3 with its rows over x (two each). Windows of four rows: start -1, part_step 2, end 8, so the
// result is 16x3. Part 0 reads rows -1 to 2: its row 0 is the scalar, rows 0 and 1 are of shard 0, row 2 is row 0 of
// shard 1. Part 1 reads rows 1 to 4, in three runs: row 1 of shard 0, rows 0 and 1 of shard 1, row 0 of shard 2.
#include <algorithm>

#include "service/compile/plan/block_copies.h"

namespace meshd::compile {
namespace {

using partition::HaloDim;
using partition::HaloRows;
using partition::ShardedType;
using sharding::MeshView;

// Rows of one dimension: of one part of the source, or (part -1) rows that no part has.
struct Run {
  int64_t part = -1;
  HaloRows rows;  // `from` counts rows of that part
};

class HaloMaker {
 public:
  HaloMaker(const Plan& plan, const LocalOp& op)
      : plan_(plan),
        op_(op),
        copies_(source_dims(plan, op), tensor::size_bytes(type(op.results[0]).local.dtype)),
        to_strides_(tensor::row_major_strides(type(op.results[0]).local.dims)) {}

  Collective make() {
    const ShardedType& result = type(op_.results[0]);
    const MeshView& view = plan_.views[static_cast<size_t>(result.layout.view)];
    for (int64_t shard = 0; shard < result.distinct_count(view); ++shard) {
      if (tensor::element_count(result.local) > 0) add_shard(view, view.coordinates(result.varies, shard));
      copies_.end_shard();
    }
    return copies_.finish();
  }

 private:
  static std::vector<tensor::Dims> source_dims(const Plan& plan, const LocalOp& op) {
    std::vector<tensor::Dims> out;
    for (const LocalId id : op.operands) out.push_back(plan.values[static_cast<size_t>(id)].type.local.dims);
    return out;
  }

  [[nodiscard]] const ShardedType& type(LocalId id) const { return plan_.values[static_cast<size_t>(id)].type; }

  void add_shard(const MeshView& view, const tensor::Dims& coords) {
    const ShardedType& result = type(op_.results[0]);
    for (size_t i = 0; i < op_.halos.size(); ++i) {
      std::vector<std::vector<Run>> given(result.local.dims.size());
      std::vector<std::vector<Run>> lacking(result.local.dims.size());
      for (size_t d = 0; d < given.size(); ++d) {
        const int64_t part = sharding::part_index(view, result.sub_axes(d), coords);
        const int64_t rows = result.local.dims[d];
        const HaloRows read = partition::rows_read(op_.halos[i][d], part, rows);
        given[d] = runs_of(read, type(op_.operands[i]).local.dims[d]);
        lacking[d] = runs_beyond(read, rows);
      }
      add_blocks(i, view, coords, given);
      if (op_.operands.size() == op_.halos.size()) continue;
      // Step 4: left over along dimension d, given along those before it, anywhere along those behind it.
      for (size_t d = 0; d < given.size(); ++d) {
        std::vector<std::vector<Run>> block = given;
        block[d] = lacking[d];
        for (size_t e = d + 1; e < block.size(); ++e) block[e] = {{-1, {0, 1, 0, 1, result.local.dims[e]}}};
        for (size_t e = 0; e < d; ++e) block[e] = merged(given[e]);
        add_beyond(view, coords, block);
      }
    }
  }

  // Splits rows where the parts of the source end.
  static std::vector<Run> runs_of(HaloRows rows, int64_t part_rows) {
    std::vector<Run> out;
    if (rows.count == 0 || part_rows == 0) return out;
    for (int64_t part = rows.first() / part_rows; part <= rows.last() / part_rows; ++part) {
      HaloRows own = rows.within(part * part_rows, (part + 1) * part_rows);
      if (own.count == 0) continue;
      own.from -= part * part_rows;
      out.push_back({part, own});
    }
    return out;
  }

  // The rows of the result that are not in `rows`.
  static std::vector<Run> runs_beyond(const HaloRows& rows, int64_t count) {
    std::vector<Run> out;
    const auto add = [&](int64_t begin, int64_t end, int64_t step) {
      if (begin < end) out.push_back({-1, {begin, step, 0, 1, (end - begin - 1) / step + 1}});
    };
    if (rows.count == 0) {
      add(0, count, 1);
      return out;
    }
    const int64_t end = rows.to + (rows.count - 1) * rows.to_step + 1;
    add(0, rows.to, 1);
    for (int64_t hole = 1; hole < rows.to_step; ++hole) add(rows.to + hole, end, rows.to_step);
    add(end, count, 1);
    return out;
  }

  // Rows of several parts as one run: on the result's side they are adjacent.
  static std::vector<Run> merged(const std::vector<Run>& runs) {
    if (runs.empty()) return runs;
    HaloRows all{runs.front().rows.to, runs.front().rows.to_step, 0, 1, 0};
    for (const Run& run : runs) {
      all.to = std::min(all.to, run.rows.to);
      all.count += run.rows.count;
    }
    return {{-1, all}};
  }

  // Every combination of runs, one of each dimension.
  template <typename Visit>
  static void for_each_block(const std::vector<std::vector<Run>>& runs, const Visit& visit) {
    if (std::any_of(runs.begin(), runs.end(), [](const auto& list) { return list.empty(); })) return;
    std::vector<size_t> at(runs.size(), 0);
    while (true) {
      visit(at);
      size_t d = runs.size();
      while (d > 0 && ++at[d - 1] == runs[d - 1].size()) at[--d] = 0;
      if (d == 0) return;
    }
  }

  void add_blocks(size_t operand, const MeshView& view, const tensor::Dims& coords,
                  const std::vector<std::vector<Run>>& runs) {
    const ShardedType& source = type(op_.operands[operand]);
    const tensor::Dims strides = tensor::row_major_strides(source.local.dims);
    for_each_block(runs, [&](const std::vector<size_t>& at) {
      BlockPiece piece;
      CollectiveBlock held;
      tensor::Dims from_coords = coords;
      for (size_t d = 0; d < at.size(); ++d) {
        const auto& [part, rows] = runs[d][at[d]];
        place(piece, d, rows);
        piece.from_strides.push_back(strides[d] * rows.from_step);
        piece.from_offset += strides[d] * rows.from;
        held.start.push_back(rows.first());
        held.extent.push_back(rows.last() - rows.first() + 1);
        sharding::set_part(view, source.sub_axes(d), part, from_coords);
      }
      const tensor::Dims packed = tensor::row_major_strides(held.extent);
      for (size_t d = 0; d < at.size(); ++d) {
        const HaloRows& rows = runs[d][at[d]].rows;
        piece.packed_strides.push_back(packed[d] * rows.from_step);
        piece.packed_offset += packed[d] * (rows.from - held.start[d]);
      }
      CollectiveSource made = source_of(plan_, static_cast<int32_t>(operand), op_.operands[operand],
                                        view.distinct_index(source.varies, from_coords));
      made.bytes = tensor::element_count(held.extent) * tensor::size_bytes(source.local.dtype);
      copies_.add(piece, made, &held);
    });
  }

  void add_beyond(const MeshView& view, const tensor::Dims& coords, const std::vector<std::vector<Run>>& runs) {
    const size_t operand = op_.halos.size();
    const ShardedType& scalar = type(op_.operands[operand]);
    for_each_block(runs, [&](const std::vector<size_t>& at) {
      BlockPiece piece;
      for (size_t d = 0; d < at.size(); ++d) place(piece, d, runs[d][at[d]].rows);
      piece.from_strides = piece.packed_strides = tensor::Dims(at.size(), 0);
      const bool has_shards = scalar.layout.view == type(op_.results[0]).layout.view;
      copies_.add(piece, source_of(plan_, static_cast<int32_t>(operand), op_.operands[operand],
                                   has_shards ? view.distinct_index(scalar.varies, coords) : 0));
    });
  }

  // Dimension `d` of the side that is written.
  void place(BlockPiece& piece, size_t d, const HaloRows& rows) const {
    piece.extent.push_back(rows.count);
    piece.to_strides.push_back(to_strides_[d] * rows.to_step);
    piece.to_offset += to_strides_[d] * rows.to;
  }

  const Plan& plan_;
  const LocalOp& op_;
  BlockCopies copies_;
  tensor::Dims to_strides_;
};

}  // namespace

CollectiveMaker halo_maker(const LocalOp& op) {
  LocalOp kept;
  kept.operands = op.operands;
  kept.results = op.results;
  kept.halos = op.halos;
  return [kept](const Plan& plan) { return HaloMaker(plan, kept).make(); };
}

}  // namespace meshd::compile
