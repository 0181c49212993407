// Layouts of random shapes, meshes and shardings: what must hold whatever they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "service/sharding/layout.h"

namespace meshd::sharding {
namespace {

constexpr int kRounds = 3'000;

class Random {
 public:
  explicit Random(uint32_t seed) : generator_(seed) {}
  int64_t upto(int64_t last) { return static_cast<int64_t>(generator_() % static_cast<uint64_t>(last + 1)); }

 private:
  std::mt19937_64 generator_;
};

mesh::MeshRef random_mesh(Random& random) {
  static const int64_t kSizes[] = {1, 2, 3, 4, 6};
  mesh::Mesh mesh;
  const int64_t count = 1 + random.upto(2);
  for (int64_t i = 0; i < count; ++i)
    mesh.axes.push_back({std::string(1, static_cast<char>('a' + i)), kSizes[random.upto(4)]});
  return std::make_shared<const mesh::Mesh>(std::move(mesh));
}

/// Axes of the mesh, some of them split in two, each in a random dimension or in none.
TensorSharding random_sharding(Random& random, const mesh::MeshRef& mesh, size_t rank) {
  TensorSharding out = fully_replicated("mesh", mesh, static_cast<int64_t>(rank));
  for (size_t i = 0; i < mesh->axes.size(); ++i) {
    const int axis = static_cast<int>(i);
    const int64_t size = mesh->axes[i].size;
    std::vector<AxisRef> pieces = {{axis, 1, 0}};
    if (size % 2 == 0 && size > 2 && random.upto(2) == 0) pieces = {{axis, 1, 2}, {axis, 2, size / 2}};
    if (random.upto(1) == 0) std::reverse(pieces.begin(), pieces.end());
    for (const AxisRef& piece : pieces) {
      const auto dim = static_cast<size_t>(random.upto(static_cast<int64_t>(rank)));
      if (dim < rank) out.dims[dim].axes.push_back(piece);
    }
  }
  for (DimSharding& dim : out.dims) dim.axes = canonical_axes(dim.axes, *mesh);
  return out;
}

tensor::Dims random_dims(Random& random) {
  tensor::Dims dims;
  const int64_t rank = random.upto(3);
  for (int64_t i = 0; i < rank; ++i) dims.push_back(random.upto(9));
  return dims;
}

/// How often each element of the whole stands in the given blocks.
std::vector<int> coverage(const tensor::Dims& dims, const std::vector<std::vector<IndexRange>>& blocks) {
  const tensor::Dims strides = tensor::row_major_strides(dims);
  std::vector<int> hits(static_cast<size_t>(tensor::element_count(dims)), 0);
  for (const std::vector<IndexRange>& block : blocks) {
    for (size_t at = 0; at < hits.size(); ++at) {
      bool inside = true;
      for (size_t dim = 0; dim < dims.size(); ++dim) {
        const int64_t index = static_cast<int64_t>(at) / strides[dim] % dims[dim];
        inside = inside && index >= block[dim].start && index < block[dim].stop;
      }
      if (inside) ++hits[at];
    }
  }
  return hits;
}

TEST(LayoutProperties, distinct_shards_tile_the_whole_and_replicas_are_numbered) {
  Random random(7);
  for (int round = 0; round < kRounds; ++round) {
    const mesh::MeshRef mesh = random_mesh(random);
    const tensor::Dims dims = random_dims(random);
    const TensorSharding sharding = random_sharding(random, mesh, dims.size());
    ASSERT_NO_THROW(verify(sharding, static_cast<int64_t>(dims.size()))) << to_sdy(sharding);
    const Layout layout = make_layout(dims, sharding);
    int64_t parts = 1;
    for (const int64_t count : layout.part_counts) parts *= count;
    ASSERT_EQ(parts, layout.shard_count);  // G8
    std::vector<std::vector<IndexRange>> blocks;
    for (int64_t shard = 0; shard < layout.shard_count; ++shard) blocks.push_back(layout.shard_index(shard));
    const std::vector<int> hits = coverage(dims, blocks);
    ASSERT_TRUE(std::all_of(hits.begin(), hits.end(), [](int n) { return n == 1; })) << to_sdy(sharding);
    std::set<std::pair<int64_t, int64_t>> seen;
    for (const DeviceShard& device_shard : layout.device_shards) {
      ASSERT_EQ(device_shard.index, layout.shard_index(device_shard.shard));
      ASSERT_TRUE(seen.emplace(device_shard.shard, device_shard.replica_id).second);
      ASSERT_LT(device_shard.replica_id, mesh->position_count() / layout.shard_count);
    }
    ASSERT_EQ(static_cast<int64_t>(seen.size()), mesh->position_count());
  }
}

TEST(LayoutProperties, a_reshard_fills_every_target_shard_once_with_the_right_elements) {
  Random random(11);
  for (int round = 0; round < kRounds; ++round) {
    const tensor::Dims dims = random_dims(random);
    const Layout from = make_layout(dims, random_sharding(random, random_mesh(random), dims.size()));
    const Layout to = make_layout(dims, random_sharding(random, random_mesh(random), dims.size()));
    std::vector<std::vector<std::vector<IndexRange>>> written(static_cast<size_t>(to.shard_count));
    for (const BlockCopy& copy : reshard_copies(from, to)) {
      const std::vector<IndexRange> source = from.shard_index(copy.from_shard);
      const std::vector<IndexRange> target = to.shard_index(copy.to_shard);
      std::vector<IndexRange> block;
      for (size_t dim = 0; dim < dims.size(); ++dim) {
        const int64_t start = target[dim].start + copy.to_start[dim];
        ASSERT_EQ(start, source[dim].start + copy.from_start[dim]);
        ASSERT_LE(start + copy.extent[dim], std::min(source[dim].stop, target[dim].stop));
        block.push_back({start, start + copy.extent[dim]});
      }
      written[static_cast<size_t>(copy.to_shard)].push_back(std::move(block));
    }
    for (int64_t shard = 0; shard < to.shard_count; ++shard) {
      ASSERT_EQ(coverage(dims, written[static_cast<size_t>(shard)]), coverage(dims, {to.shard_index(shard)}));
    }
  }
}

TEST(LayoutProperties, four_thousand_devices_are_one_placement_each) {
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 64}, {"y", 64}}, {}, {}});
  TensorSharding sharding = fully_replicated("mesh", mesh, 2);
  sharding.dims[0].axes = {{0, 1, 0}};
  const Layout layout = make_layout(tensor::Dims{8192, 8192}, sharding);
  EXPECT_EQ(layout.device_shards.size(), 4096U);
  EXPECT_EQ(layout.shard_count, 64);
  EXPECT_EQ(layout.device_shards.back().replica_id, 63);
  EXPECT_EQ(reshard_copies(layout, layout).size(), 64U);
}

}  // namespace
}  // namespace meshd::sharding
