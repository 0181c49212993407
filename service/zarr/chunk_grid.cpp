#include "service/zarr/chunk_grid.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/core/error.h"

namespace meshd::zarr {
namespace {

// The region moved to the beginning of its chunk.
std::vector<arrays::Slice> within_chunk(std::vector<arrays::Slice> region) {
  for (arrays::Slice& slice : region) slice = {0, slice.stop - slice.start, 1};
  return region;
}

}  // namespace

ChunkGrid::ChunkGrid(const tensor::TensorType& type, tensor::Dims chunk_dims)
    : dims_(type.dims),
      chunk_dims_(std::move(chunk_dims)),
      element_bytes_(tensor::size_bytes(type.dtype)),
      chunk_bytes_(tensor::byte_count({type.dtype, chunk_dims_})),
      chunk_layout_(arrays::unsharded_layout(chunk_dims_)) {
  for (size_t d = 0; d < dims_.size(); ++d) grid_.push_back(core::ceil_div(dims_[d], chunk_dims_[d]));
  count_ = core::checked_product(grid_);
  if (count_ > kMostChunks) {
    throw core::Error("invalid_array", fmt::format("the array has {} chunks, at most {} are taken; make them larger",
                                                   count_, kMostChunks));
  }
}

int64_t ChunkGrid::chunk_at(std::span<const int64_t> index) const {
  if (index.size() != grid_.size()) return -1;
  int64_t chunk = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] < 0 || index[d] >= grid_[d]) return -1;
    chunk = chunk * grid_[d] + index[d];
  }
  return chunk;
}

std::vector<arrays::Slice> ChunkGrid::region(int64_t chunk) const {
  const tensor::Dims index = arrays::unravel(chunk, grid_);
  std::vector<arrays::Slice> out;
  for (size_t d = 0; d < index.size(); ++d) {
    const int64_t start = index[d] * chunk_dims_[d];
    out.push_back({start, std::min(start + chunk_dims_[d], dims_[d]), 1});
  }
  return out;
}

int64_t ChunkGrid::region_bytes(int64_t chunk) const {
  return core::checked_product(arrays::slice_dims(region(chunk))) * element_bytes_;
}

template <typename Visit>
void ChunkGrid::each_run(int64_t chunk, const Visit& visit) const {
  arrays::for_each_run(
      *chunk_layout_, within_chunk(region(chunk)), [&](int64_t element, int64_t, int64_t place, int64_t run) {
        visit(element * element_bytes_, place * element_bytes_, static_cast<size_t>(run * element_bytes_));
      });
}

void ChunkGrid::crop(int64_t chunk, std::span<const std::byte> chunk_bytes, std::span<std::byte> region_bytes) const {
  each_run(chunk, [&](int64_t in_region, int64_t in_chunk, size_t bytes) {
    std::memcpy(region_bytes.data() + in_region, chunk_bytes.data() + in_chunk, bytes);
  });
}

void ChunkGrid::pad(int64_t chunk, std::span<const std::byte> region_bytes, std::span<std::byte> chunk_bytes) const {
  each_run(chunk, [&](int64_t in_region, int64_t in_chunk, size_t bytes) {
    std::memcpy(chunk_bytes.data() + in_chunk, region_bytes.data() + in_region, bytes);
  });
}

}  // namespace meshd::zarr
