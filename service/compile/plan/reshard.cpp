// Reshards as block copies: shard by shard of the target layout, the blocks of the source layout that it is made of.
//
// Invariant: every element of a target shard inside the logical dims is written by exactly one copy; padding is not
// written.
//
// For each shard of the target:
// 1. Its block of the global array, [start, stop) along each dimension, ends at the logical size.
// 2. Along each dimension, the source parts that overlap it are first = start / part size to last = (stop - 1) / part
//    size. One copy for each combination of parts.
// 3. The parts give the source shard's coordinates. Sub-axes that the source varies over outside of its dims keep the
//    target's coordinate where the target varies over them, else they are 0.
//
// A reshard that gives each target shard the bytes of one source shard copies nothing. It becomes a rename, a map from
// target shards to source shards (reshard_is_rename). Where devices share no memory, it is one only if each device gets
// the shard that it holds; else each target shard is one copy.
//
// Example: mesh x=2, y=2, 4x4xi32, rows over (x, y) -> columns over y.
// In:  shards 1x4  {0 1 2 3} {4 5 6 7} {8 9 10 11} {12 13 14 15}
// Target shard 1 (y=1) is rows 0 to 3, columns 2 to 3: parts 0 to 3 along rows, part 0 along columns, so four copies of
// 1x2: from [0, 2] of source shard p to [p, 0].
// Out: shards 4x2  {0 1 4 5 8 9 12 13} {2 3 6 7 10 11 14 15}
#include <algorithm>

#include "service/compile/plan/block_copies.h"

namespace meshd::compile {
namespace {

using partition::ShardedType;
using sharding::MeshView;
using sharding::SubAxisSet;

constexpr int64_t kMostEnumerated = 512;  // shards up to which layouts over two meshes are compared one by one

// A value's type and its view.
struct Side {
  const ShardedType& type;
  const MeshView& view;
};

struct Copy {
  int64_t from_shard = 0;
  CollectiveBlock from;
  tensor::Dims to_start;
};

// Steps 1 to 3 for one shard of the target: visit(copy) for each copy, which is the visitor's until it returns.
template <class Visit>
void for_each_copy_into(const Side& from, const Side& to, int64_t to_shard, const Visit& visit) {
  const tensor::Dims& from_dims = from.type.local.dims;
  const tensor::Dims& to_dims = to.type.local.dims;
  const size_t rank = to_dims.size();
  const tensor::Dims to_coords = to.view.coordinates(to.type.varies, to_shard);
  tensor::Dims coords(from.view.sub_axis_sizes.size(), 0);
  if (from.type.layout.view == to.type.layout.view) {
    const SubAxisSet kept = from.type.outer() & to.type.varies;
    for (size_t i = 0; i < coords.size(); ++i) {
      if (kept >> i & 1) coords[i] = to_coords[i];
    }
  }
  // Ranges of parts of `from` that overlap, for each dimension.
  tensor::Dims start(rank);
  tensor::Dims stop(rank);
  tensor::Dims first(rank);
  tensor::Dims last(rank);
  for (size_t d = 0; d < rank; ++d) {
    const sharding::IndexRange rows = to.type.rows(to.view, d, to_coords);
    start[d] = rows.start;
    stop[d] = rows.stop;
    if (stop[d] <= start[d]) return;
    first[d] = start[d] / from_dims[d];
    last[d] = (stop[d] - 1) / from_dims[d];
  }
  Copy copy{.from_shard = 0, .from = {tensor::Dims(rank), tensor::Dims(rank)}, .to_start = tensor::Dims(rank)};
  tensor::Dims part = first;
  while (true) {
    for (size_t d = 0; d < rank; ++d) {
      sharding::set_part(from.view, from.type.sub_axes(d), part[d], coords);
      const int64_t begin = part[d] * from_dims[d];
      const int64_t low = std::max(begin, start[d]);
      copy.from.start[d] = low - begin;
      copy.to_start[d] = low - start[d];
      copy.from.extent[d] = std::min(begin + from_dims[d], stop[d]) - low;
    }
    copy.from_shard = from.view.distinct_index(from.type.varies, coords);
    visit(copy);
    size_t d = rank;
    while (d > 0 && part[d - 1] == last[d - 1]) {
      part[d - 1] = first[d - 1];
      --d;
    }
    if (d == 0) return;
    ++part[d - 1];
  }
}

int64_t linear(const tensor::Dims& dims, const tensor::Dims& index) {
  int64_t out = 0;
  for (size_t d = 0; d < dims.size(); ++d) out = out * dims[d] + index[d];
  return out;
}

// Sub-axes that shard a dimension, without those of size one.
std::vector<int> sharding_axes(const MeshView& view, const std::vector<int>& sub_axes) {
  std::vector<int> out;
  for (const int sub_axis : sub_axes) {
    if (view.sub_axis_sizes[static_cast<size_t>(sub_axis)] != 1) out.push_back(sub_axis);
  }
  return out;
}

Collective make_reshard(const Plan& plan, LocalId operand, LocalId result) {
  const ShardedType& source_type = plan.values[static_cast<size_t>(operand)].type;
  const ShardedType& target_type = plan.values[static_cast<size_t>(result)].type;
  const Side from{source_type, plan.views[static_cast<size_t>(source_type.layout.view)]};
  const Side to{target_type, plan.views[static_cast<size_t>(target_type.layout.view)]};
  const int64_t element = tensor::size_bytes(target_type.local.dtype);
  BlockCopies copies({source_type.local.dims}, element);
  BlockPiece piece;
  piece.to_strides = tensor::row_major_strides(target_type.local.dims);
  piece.from_strides = tensor::row_major_strides(source_type.local.dims);
  const bool is_empty = tensor::element_count(target_type.local) == 0;
  const auto add = [&](const Copy& copy) {
    piece.extent = copy.from.extent;
    piece.to_offset = linear(target_type.local.dims, copy.to_start);
    piece.from_offset = linear(source_type.local.dims, copy.from.start);
    piece.packed_strides = tensor::row_major_strides(copy.from.extent);
    CollectiveSource source = source_of(plan, 0, operand, copy.from_shard);
    source.bytes = tensor::element_count(copy.from.extent) * element;
    copies.add(piece, source, &copy.from);
  };
  for (int64_t shard = 0; shard < target_type.distinct_count(to.view); ++shard) {
    if (!is_empty) for_each_copy_into(from, to, shard, add);
    copies.end_shard();
  }
  return copies.finish();
}

}  // namespace

bool reshard_is_rename(const PlanBuilder& builder, const LocalOp& op, std::vector<int32_t>& map) {
  const ShardedType& source = builder.value(op.operands[0]).type;
  const ShardedType& target = builder.value(op.results[0]).type;
  const Side from{source, builder.tables.view(source.layout.view)};
  const Side to{target, builder.tables.view(target.layout.view)};
  if (source.local != target.local) return false;
  const bool same_view = source.layout.view == target.layout.view;
  const int64_t shard_count = target.distinct_count(to.view);
  bool same = same_view;
  bool unsharded = true;
  for (size_t d = 0; d < target.rank(); ++d) {
    same = same && sharding_axes(from.view, source.sub_axes(d)) == sharding_axes(to.view, target.sub_axes(d));
    unsharded = unsharded && source.parts(from.view, d) == 1 && target.parts(to.view, d) == 1;
  }
  if (same) {
    for (int64_t shard = 0; shard < shard_count; ++shard) {
      map.push_back(static_cast<int32_t>(from.view.project(target.varies, shard, source.varies)));
    }
    return true;
  }
  if (unsharded && !same_view) {
    map.assign(static_cast<size_t>(shard_count), 0);
    return true;
  }
  if (same_view || shard_count > kMostEnumerated || tensor::element_count(target.local) == 0) return false;
  for (int64_t shard = 0; shard < shard_count; ++shard) {
    int64_t copies = 0;
    bool stays = true;
    int64_t from_shard = 0;
    for_each_copy_into(from, to, shard, [&](const Copy& copy) {
      ++copies;
      stays = stays && copy.from.start == copy.to_start;
      from_shard = copy.from_shard;
    });
    if (copies > 1 || !stays) return false;
    map.push_back(static_cast<int32_t>(from_shard));
  }
  return true;
}

CollectiveMaker reshard_maker(LocalId operand, LocalId result) {
  return [operand, result](const Plan& plan) { return make_reshard(plan, operand, result); };
}

}  // namespace meshd::compile
