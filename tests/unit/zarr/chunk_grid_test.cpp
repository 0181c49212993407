#include "service/zarr/chunk_grid.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "service/core/error.h"

namespace meshd::testing {
namespace {

using tensor::DType;
using zarr::ChunkGrid;

TEST(ChunkGrid, chunks_at_the_end_have_what_is_left) {
  const ChunkGrid grid({DType::kInt8, {7, 5}}, {4, 3});
  EXPECT_EQ(grid.count(), 4);
  EXPECT_EQ(grid.chunk_at(std::vector<int64_t>{1, 1}), 3);
  EXPECT_EQ(grid.region_bytes(3), 6);
  const auto region = grid.region(3);
  EXPECT_EQ(std::pair(region[0].start, region[0].stop), std::pair(int64_t{4}, int64_t{7}));
  EXPECT_EQ(std::pair(region[1].start, region[1].stop), std::pair(int64_t{3}, int64_t{5}));
}

TEST(ChunkGrid, indices_outside_of_it_are_none) {
  const ChunkGrid grid({DType::kInt8, {7, 5}}, {4, 3});
  for (const std::vector<int64_t>& index : {std::vector<int64_t>{2, 0}, {0, 2}, {-1, 0}, {0}, {0, 0, 0}, {}})
    EXPECT_EQ(grid.chunk_at(index), -1);
}

TEST(ChunkGrid, crop_and_pad_are_each_others_inverse) {
  const ChunkGrid grid({DType::kInt16, {7, 5}}, {4, 3});
  std::vector<int16_t> chunk(12), cropped(6), back(12, -1);
  std::iota(chunk.begin(), chunk.end(), int16_t{0});
  grid.crop(3, std::as_bytes(std::span(chunk)), std::as_writable_bytes(std::span(cropped)));
  EXPECT_EQ(cropped, (std::vector<int16_t>{0, 1, 3, 4, 6, 7}));
  grid.pad(3, std::as_bytes(std::span(cropped)), std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, (std::vector<int16_t>{0, 1, -1, 3, 4, -1, 6, 7, -1, -1, -1, -1}));
}

TEST(ChunkGrid, arrays_without_dimensions_have_one_chunk_and_without_elements_none) {
  const ChunkGrid scalar({DType::kFloat64, {}}, {});
  EXPECT_EQ(scalar.count(), 1);
  EXPECT_EQ(scalar.chunk_at({}), 0);
  EXPECT_EQ(scalar.region_bytes(0), 8);
  EXPECT_EQ(ChunkGrid({DType::kFloat64, {3, 0}}, {2, 1}).count(), 0);
}

TEST(ChunkGrid, too_many_chunks_are_refused) {
  EXPECT_THROW(ChunkGrid({DType::kInt8, {1 << 20, 1 << 20}}, {1, 1}), core::Error);
}

}  // namespace
}  // namespace meshd::testing
