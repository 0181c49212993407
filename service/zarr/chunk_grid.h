// The regular chunk grid of a Zarr array: which elements each chunk has. Chunks at the end of a dimension are as large
// as the others, and what is outside of the array does not count. Pure functions; immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "service/arrays/regions/region.h"
#include "service/tensor/shape.h"

namespace meshd::zarr {

/// Example: dims {7, 5}, chunks {4, 3}: a grid of 2 x 2; chunk 3 has rows 4 to 6 and columns 3 to 4 of the array, in
/// the first 3 rows and 2 columns of its own 4 x 3.
class ChunkGrid {
 public:
  /// Chunk dims are at least 1. Throws invalid_array for more than kMostChunks.
  ChunkGrid(const tensor::TensorType& type, tensor::Dims chunk_dims);
  static constexpr int64_t kMostChunks = 1'000'000;

  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] const tensor::Dims& chunk_dims() const { return chunk_dims_; }
  [[nodiscard]] int64_t chunk_bytes() const { return chunk_bytes_; }
  /// The chunk at this index, row-major; -1 where the grid has none. Example: {1, 0} is 2 above.
  [[nodiscard]] int64_t chunk_at(std::span<const int64_t> index) const;
  /// What the chunk has of the array.
  [[nodiscard]] std::vector<arrays::Slice> region(int64_t chunk) const;
  /// The elements of a chunk that are in the array, row-major, from a chunk's bytes; and back, where the others are
  /// left as they are.
  void crop(int64_t chunk, std::span<const std::byte> chunk_bytes, std::span<std::byte> region) const;
  void pad(int64_t chunk, std::span<const std::byte> region, std::span<std::byte> chunk_bytes) const;
  /// Bytes of the elements of a chunk that are in the array.
  [[nodiscard]] int64_t region_bytes(int64_t chunk) const;

 private:
  /// visit(offset in the region, offset in the chunk, bytes) for each run of elements that is in both.
  template <typename Visit>
  void each_run(int64_t chunk, const Visit& visit) const;

  tensor::Dims dims_, chunk_dims_, grid_;
  int64_t element_bytes_ = 1, chunk_bytes_ = 0, count_ = 0;
  std::shared_ptr<const sharding::Layout> chunk_layout_;  ///< a chunk as an array in one shard
};

}  // namespace meshd::zarr
