#include "service/sharding/layout.h"

#include <algorithm>

#include "service/mesh/positions.h"

namespace meshd::sharding {
namespace {

/// How the part of a dimension at a position of the mesh is computed.
struct Digit {
  int64_t divisor = 1;  ///< position / divisor % size is the digit
  int64_t size = 1;
};

/// Row-major strides of the axes of a mesh.
std::vector<int64_t> axis_strides(const mesh::Mesh& mesh) {
  std::vector<int64_t> strides(mesh.axes.size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * mesh.axes[i].size;
  return strides;
}

Digit digit_of(const AxisRef& axis, const mesh::Mesh& mesh, const std::vector<int64_t>& strides) {
  const size_t index = static_cast<size_t>(axis.axis);
  if (axis.is_whole()) return {strides[index], mesh.axes[index].size};
  return {strides[index] * (mesh.axes[index].size / (axis.pre * axis.size)), axis.size};
}

// Parts behind the end of an uneven dimension are empty; beyond 2^62 their start would not fit.
IndexRange range_of(int64_t part, int64_t shard_size, int64_t global_size) {
  const auto bound = [&](int64_t number) {
    int64_t at = 0;
    return __builtin_mul_overflow(number, shard_size, &at) ? global_size : std::min(at, global_size);
  };
  return {bound(part), bound(part + 1)};
}

/// Common pieces of two partitions of one dimension.
struct Piece {
  int64_t from_part, to_part;
  int64_t from_start, to_start, extent;
};

/// All pieces of a dimension, by target part. Empty parts have none.
std::vector<Piece> common_pieces(int64_t size, int64_t from_shard, int64_t to_shard) {
  std::vector<Piece> pieces;
  for (int64_t at = 0; at < size;) {
    const int64_t from_part = at / from_shard;
    const int64_t to_part = at / to_shard;
    const int64_t end = std::min({(from_part + 1) * from_shard, (to_part + 1) * to_shard, size});
    pieces.push_back({from_part, to_part, at - from_part * from_shard, at - to_part * to_shard, end - at});
    at = end;
  }
  return pieces;
}

}  // namespace

std::vector<IndexRange> Layout::shard_index(int64_t shard) const {
  std::vector<IndexRange> index(global_dims.size());
  for (size_t dim = index.size(); dim-- > 0;) {
    index[dim] = range_of(shard % part_counts[dim], shard_dims[dim], global_dims[dim]);
    shard /= part_counts[dim];
  }
  return index;
}

tensor::Dims Layout::shard_actual_dims(int64_t shard) const {
  tensor::Dims dims;
  for (const IndexRange& range : shard_index(shard)) dims.push_back(range.stop - range.start);
  return dims;
}

Layout make_layout(std::span<const int64_t> global_dims, const TensorSharding& sharding, PositionRange range) {
  const mesh::Mesh& mesh = *sharding.mesh;
  mesh::require_positions(mesh);
  const int64_t position_count = mesh.position_count();
  const size_t rank = global_dims.size();
  Layout layout;
  layout.global_dims.assign(global_dims.begin(), global_dims.end());
  const std::vector<int64_t> strides = axis_strides(mesh);
  std::vector<std::vector<Digit>> digits(rank);
  for (size_t dim = 0; dim < rank; ++dim) {
    if (dim < sharding.dims.size()) {
      for (const AxisRef& axis : sharding.dims[dim].axes) digits[dim].push_back(digit_of(axis, mesh, strides));
    }
    layout.part_counts.push_back(sharding.part_count(static_cast<int64_t>(dim)));
    layout.shard_dims.push_back(core::ceil_div(global_dims[dim], layout.part_counts[dim]));
    layout.shard_count *= layout.part_counts[dim];
  }
  // Positions before the range are walked as well, for the counts of replicas, and not kept.
  std::vector<int64_t> replicas(static_cast<size_t>(layout.shard_count), 0);
  const int64_t first = std::clamp<int64_t>(range.first, 0, position_count);
  const int64_t end = first + std::min(range.count, position_count - first);
  layout.device_shards.reserve(static_cast<size_t>(end - first));
  std::vector<int64_t> parts(rank, 0);
  for (int64_t position = 0; position < end; ++position) {
    int64_t shard = 0;
    for (size_t dim = 0; dim < rank; ++dim) {
      if (digits[dim].empty()) continue;  // one part
      int64_t part = 0;
      for (const Digit& digit : digits[dim]) part = part * digit.size + position / digit.divisor % digit.size;
      parts[dim] = part;
      shard = shard * layout.part_counts[dim] + part;
    }
    const int64_t replica_id = replicas[static_cast<size_t>(shard)]++;
    if (position < first) continue;
    DeviceShard& device_shard =
        layout.device_shards.emplace_back(DeviceShard{position, mesh.device_at(position), {}, replica_id, shard});
    device_shard.index.reserve(rank);
    for (size_t dim = 0; dim < rank; ++dim)
      device_shard.index.push_back(range_of(parts[dim], layout.shard_dims[dim], global_dims[dim]));
  }
  return layout;
}

std::vector<BlockCopy> reshard_copies(const Layout& from, const Layout& to) {
  const size_t rank = from.global_dims.size();
  std::vector<BlockCopy> copies;
  std::vector<std::vector<Piece>> pieces(rank);
  int64_t copy_count = 1;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (from.global_dims[dim] == 0) return copies;
    pieces[dim] = common_pieces(from.global_dims[dim], from.shard_dims[dim], to.shard_dims[dim]);
    copy_count *= static_cast<int64_t>(pieces[dim].size());
  }
  copies.reserve(static_cast<size_t>(copy_count));
  for (int64_t number = 0; number < copy_count; ++number) {
    BlockCopy copy;
    copy.from_start.resize(rank);
    copy.to_start.resize(rank);
    copy.extent.resize(rank);
    int64_t from_stride = 1;
    int64_t to_stride = 1;
    int64_t rest = number;
    for (size_t dim = rank; dim-- > 0;) {
      const auto count = static_cast<int64_t>(pieces[dim].size());
      const Piece& piece = pieces[dim][static_cast<size_t>(rest % count)];
      rest /= count;
      copy.from_shard += piece.from_part * from_stride;
      copy.to_shard += piece.to_part * to_stride;
      copy.from_start[dim] = piece.from_start;
      copy.to_start[dim] = piece.to_start;
      copy.extent[dim] = piece.extent;
      from_stride *= from.part_counts[dim];
      to_stride *= to.part_counts[dim];
    }
    copies.push_back(std::move(copy));
  }
  return copies;
}

}  // namespace meshd::sharding
