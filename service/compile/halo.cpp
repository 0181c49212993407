// A halo exchange as block copies: each shard gets the rows that its part of the result reads from the shards that have
// them, its own among them, and a scalar where nobody has one.
#include <algorithm>
#include <map>

#include "service/compile/meetings.h"
#include "service/kernels/movement.h"

namespace meshd::compile {
namespace {

using partition::HaloDim;
using partition::HaloRows;
using sharding::MeshView;

// Rows of one dimension: of one part of the source, or (part -1) rows that nobody gives.
struct Run {
  int64_t part = -1;
  HaloRows rows;  // `from` counts rows of that part
};

// One block of a shard's result; everything in elements.
struct Piece {
  size_t shape = 0;  // of HaloCopies::shapes
  int64_t to_offset = 0;
  int64_t from_offset = 0;
  int64_t first_unit = 0;
  int64_t packed_offset = 0;  // where index zero stands in a message that holds the block alone
  tensor::Dims extent, to_strides, packed_strides;
};

struct HaloCopies {
  std::vector<kernels::StridedCopy> shapes;
  std::vector<std::vector<Piece>> pieces;  // by shard
  int64_t element = 1;

  void run(const MeetingCall& call) const {
    const auto& list = pieces[static_cast<size_t>(call.shard)];
    for (size_t i = 0; i < list.size(); ++i) {
      const Piece& piece = list[i];
      const kernels::StridedCopy& shape = shapes[piece.shape];
      const int64_t begin = std::max(call.begin - piece.first_unit, int64_t{0});
      const int64_t end = std::min(call.end - piece.first_unit, shape.unit_count());
      if (begin >= end) continue;
      std::byte* to = call.results[0] + piece.to_offset * element;
      if (call.packed != nullptr && call.packed[i] != 0) {
        const kernels::StridedCopy from_message(piece.extent, piece.to_strides, piece.packed_strides, element);
        if (begin == 0) from_message.run(to, call.sources[i] + piece.packed_offset * element);
        continue;
      }
      shape.run(to, call.sources[i] + piece.from_offset * element, begin, end);
    }
  }
};

class HaloMaker {
 public:
  HaloMaker(const Plan& plan, const LocalOp& op) : plan_(plan), op_(op), copies_(std::make_shared<HaloCopies>()) {}

  Meeting make() {
    const PlanValue& result = value(op_.results[0]);
    const MeshView& view = plan_.views[static_cast<size_t>(result.view)];
    copies_->element = tensor::size_bytes(result.type.dtype);
    meeting_.element_bytes = copies_->element;
    for (const LocalId id : op_.operands) meeting_.source_dims.push_back(value(id).type.dims);
    to_strides_ = tensor::row_major_strides(result.type.dims);
    const sharding::AtomMask varies = result.varies & view.all();
    for (int64_t shard = 0; shard < view.distinct_count(varies); ++shard) {
      sources_.clear();
      pieces_.clear();
      units_ = 0;
      if (tensor::element_count(result.type) > 0) add_shard(view, view.coordinates(varies, shard));
      meeting_.sources.push_back(std::move(sources_));
      meeting_.units.push_back(units_);
      copies_->pieces.push_back(std::move(pieces_));
    }
    meeting_.run = [copies = copies_](const MeetingCall& call) { copies->run(call); };
    return std::move(meeting_);
  }

 private:
  [[nodiscard]] const PlanValue& value(LocalId id) const { return plan_.values[static_cast<size_t>(id)]; }

  void add_shard(const MeshView& view, const tensor::Dims& coords) {
    const PlanValue& result = value(op_.results[0]);
    for (size_t i = 0; i < op_.halos.size(); ++i) {
      std::vector<std::vector<Run>> given(result.type.dims.size());
      std::vector<std::vector<Run>> lacking(result.type.dims.size());
      for (size_t d = 0; d < given.size(); ++d) {
        const int64_t part = sharding::part_index(view, result.dim_atoms[d], coords);
        const int64_t rows = result.type.dims[d];
        const HaloRows read = partition::rows_read(op_.halos[i][d], part, rows);
        given[d] = runs_of(read, value(op_.operands[i]).type.dims[d]);
        lacking[d] = runs_beyond(read, rows);
      }
      add_blocks(i, view, coords, given);
      if (op_.operands.size() == op_.halos.size()) continue;
      // What no row stands in: beyond along one dimension, given along those before it, anywhere along those behind.
      for (size_t d = 0; d < given.size(); ++d) {
        std::vector<std::vector<Run>> block = given;
        block[d] = lacking[d];
        for (size_t e = d + 1; e < block.size(); ++e) block[e] = {{-1, {0, 1, 0, 1, result.type.dims[e]}}};
        for (size_t e = 0; e < d; ++e) block[e] = merged(given[e]);
        add_beyond(view, coords, block);
      }
    }
  }

  // Cuts rows where the parts of the source end.
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

  // Rows of several parts as one run, which they are on the result's side.
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
    const PlanValue& source = value(op_.operands[operand]);
    const tensor::Dims strides = tensor::row_major_strides(source.type.dims);
    for_each_block(runs, [&](const std::vector<size_t>& at) {
      Piece piece;
      tensor::Dims from_strides, start, held;
      tensor::Dims from_coords = coords;
      for (size_t d = 0; d < at.size(); ++d) {
        const auto& [part, rows] = runs[d][at[d]];
        place(piece, d, rows);
        from_strides.push_back(strides[d] * rows.from_step);
        piece.from_offset += strides[d] * rows.from;
        start.push_back(rows.first());
        held.push_back(rows.last() - rows.first() + 1);
        set_part(view, source.dim_atoms[d], part, from_coords);
      }
      const tensor::Dims packed = tensor::row_major_strides(held);
      for (size_t d = 0; d < at.size(); ++d) {
        const HaloRows& rows = runs[d][at[d]].rows;
        piece.packed_strides.push_back(packed[d] * rows.from_step);
        piece.packed_offset += packed[d] * (rows.from - start[d]);
      }
      const sharding::AtomMask varies = source.varies & view.all();
      MeetingSource made = source_of(plan_, static_cast<int32_t>(operand), op_.operands[operand],
                                     view.distinct_index(varies, from_coords));
      made.bytes = tensor::element_count(held) * copies_->element;
      made.start = std::move(start);
      made.extent = std::move(held);
      add(std::move(piece), from_strides, std::move(made));
    });
  }

  void add_beyond(const MeshView& view, const tensor::Dims& coords, const std::vector<std::vector<Run>>& runs) {
    const size_t operand = op_.halos.size();
    const PlanValue& scalar = value(op_.operands[operand]);
    for_each_block(runs, [&](const std::vector<size_t>& at) {
      Piece piece;
      for (size_t d = 0; d < at.size(); ++d) place(piece, d, runs[d][at[d]].rows);
      const tensor::Dims nowhere(at.size(), 0);
      piece.packed_strides = nowhere;
      add(std::move(piece), nowhere,
          source_of(
              plan_, static_cast<int32_t>(operand), op_.operands[operand],
              scalar.view == value(op_.results[0]).view ? view.distinct_index(scalar.varies & view.all(), coords) : 0));
    });
  }

  // Dimension `d` of the side that is written.
  void place(Piece& piece, size_t d, const HaloRows& rows) const {
    piece.extent.push_back(rows.count);
    piece.to_strides.push_back(to_strides_[d] * rows.to_step);
    piece.to_offset += to_strides_[d] * rows.to;
  }

  void add(Piece piece, const tensor::Dims& from_strides, MeetingSource source) {
    std::vector<tensor::Dims> key{piece.extent, piece.to_strides, from_strides};
    const auto [found, is_new] = shapes_.try_emplace(std::move(key), copies_->shapes.size());
    if (is_new) copies_->shapes.emplace_back(piece.extent, piece.to_strides, from_strides, copies_->element);
    piece.shape = found->second;
    piece.first_unit = units_;
    units_ += copies_->shapes[piece.shape].unit_count();
    sources_.push_back(std::move(source));
    pieces_.push_back(std::move(piece));
  }

  static void set_part(const MeshView& view, const std::vector<int>& atoms, int64_t part, tensor::Dims& coords) {
    for (size_t i = atoms.size(); i-- > 0;) {
      const int64_t size = view.atom_sizes[static_cast<size_t>(atoms[i])];
      coords[static_cast<size_t>(atoms[i])] = part % size;
      part /= size;
    }
  }

  const Plan& plan_;
  const LocalOp& op_;
  std::shared_ptr<HaloCopies> copies_;
  Meeting meeting_;
  tensor::Dims to_strides_;
  std::map<std::vector<tensor::Dims>, size_t> shapes_;
  // Of the shard that is being made.
  std::vector<MeetingSource> sources_;
  std::vector<Piece> pieces_;
  int64_t units_ = 0;
};

}  // namespace

MeetingMaker halo_maker(const LocalOp& op) {
  LocalOp kept;
  kept.operands = op.operands;
  kept.results = op.results;
  kept.halos = op.halos;
  return [kept](const Plan& plan) { return HaloMaker(plan, kept).make(); };
}

}  // namespace meshd::compile
