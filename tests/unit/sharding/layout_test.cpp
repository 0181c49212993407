#include <gtest/gtest.h>

#include <numeric>

#include "service/sharding/layout.h"
#include "service/sharding/layout_cache.h"
#include "service/sharding/mesh_view.h"

namespace meshd::sharding {
namespace {

mesh::MeshRef mesh_of(std::vector<mesh::Axis> axes, std::vector<int64_t> ids = {}) {
  return std::make_shared<const mesh::Mesh>(mesh::Mesh{std::move(axes), std::move(ids), {}});
}

/// Dimensions of whole axes by number, as a partition spec says them.
Layout layout_of(tensor::Dims dims, const mesh::MeshRef& mesh, std::vector<std::vector<int>> spec) {
  TensorSharding sharding = fully_replicated("mesh", mesh, static_cast<int64_t>(dims.size()));
  for (size_t i = 0; i < spec.size(); ++i) {
    for (const int axis : spec[i]) sharding.dims[i].axes.push_back({axis, 1, 0});
  }
  return make_layout(dims, sharding);
}

std::vector<int64_t> replicas(const Layout& layout) {
  std::vector<int64_t> out;
  for (const DeviceShard& p : layout.device_shards) out.push_back(p.replica_id);
  return out;
}

using Index = std::vector<IndexRange>;
const mesh::MeshRef kGrid = mesh_of({{"x", 4}, {"y", 2}});  // the fixture F: shape (8, 2) over x=4, y=2
const tensor::Dims kShape = {8, 2};

TEST(Layout, shard_shapes_of_every_spec) {  // G1, G3
  EXPECT_EQ(layout_of(kShape, kGrid, {{0}, {1}}).shard_dims, (tensor::Dims{2, 1}));
  EXPECT_EQ(layout_of(kShape, kGrid, {{0}}).shard_dims, (tensor::Dims{2, 2}));
  EXPECT_EQ(layout_of(kShape, kGrid, {{1}}).shard_dims, (tensor::Dims{4, 2}));
  EXPECT_EQ(layout_of(kShape, kGrid, {{}, {1}}).shard_dims, (tensor::Dims{8, 1}));
  EXPECT_EQ(layout_of(kShape, kGrid, {{0, 1}}).shard_dims, (tensor::Dims{1, 2}));
  EXPECT_EQ(layout_of(kShape, kGrid, {}).shard_dims, (tensor::Dims{8, 2}));
}

TEST(Layout, index_of_devices) {  // G4
  const Layout layout = layout_of(kShape, kGrid, {{0}, {1}});
  EXPECT_EQ(layout.device_shards[0].index, (Index{{0, 2}, {0, 1}}));
  EXPECT_EQ(layout.device_shards[1].index, (Index{{0, 2}, {1, 2}}));
  EXPECT_EQ(layout.device_shards[7].index, (Index{{6, 8}, {1, 2}}));
  EXPECT_EQ(layout.device_shards[7].shard, 7);
  EXPECT_EQ(layout.shard_index(7), layout.device_shards[7].index);
}

TEST(Layout, first_axis_of_a_product_is_the_major_one) {  // G5
  const auto rows = [](const Layout& layout) {
    std::vector<int64_t> out;
    for (const DeviceShard& p : layout.device_shards) out.push_back(p.index[0].start);
    return out;
  };
  EXPECT_EQ(rows(layout_of(kShape, kGrid, {{1, 0}})), (std::vector<int64_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(rows(layout_of(kShape, kGrid, {{0, 1}})), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Layout, order_of_dimensions_is_independent_of_the_mesh) {  // G6
  EXPECT_EQ(layout_of({8, 4}, kGrid, {{1}, {0}}).device_shards[0].index, (Index{{0, 4}, {0, 1}}));
}

TEST(Layout, replica_ids_count_equal_shards_in_mesh_order) {  // G7
  EXPECT_EQ(replicas(layout_of(kShape, kGrid, {{0}})), (std::vector<int64_t>{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(replicas(layout_of(kShape, kGrid, {{1}})), (std::vector<int64_t>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(replicas(layout_of(kShape, kGrid, {})), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(replicas(layout_of(kShape, kGrid, {{0}, {1}})), (std::vector<int64_t>(8, 0)));
}

TEST(Layout, uneven_dimension_ends_with_short_and_empty_shards) {
  const Layout seven = layout_of({7, 2}, kGrid, {{0}});
  EXPECT_EQ(seven.shard_dims, (tensor::Dims{2, 2}));
  EXPECT_EQ(seven.shard_actual_dims(3), (tensor::Dims{1, 2}));
  const Layout five = layout_of({5}, kGrid, {{0}});
  EXPECT_EQ(five.shard_index(2), (Index{{4, 5}}));
  EXPECT_EQ(five.shard_index(3), (Index{{5, 5}}));
}

TEST(Layout, three_dimensions) {  // G13
  const mesh::MeshRef cube = mesh_of({{"x", 2}, {"y", 2}, {"z", 2}});
  EXPECT_EQ(layout_of({8, 4, 2}, cube, {{0}, {1}, {2}}).shard_dims, (tensor::Dims{4, 2, 1}));
  const Layout product = layout_of({8, 4, 2}, cube, {{0, 1}, {2}});
  EXPECT_EQ(product.shard_dims, (tensor::Dims{2, 2, 2}));
  EXPECT_EQ(product.device_shards[1].index, (Index{{0, 2}, {2, 4}, {0, 2}}));
  const Layout last = layout_of({8, 4, 2}, cube, {{2}});
  EXPECT_EQ(last.shard_dims, (tensor::Dims{4, 4, 2}));
  EXPECT_EQ(replicas(last), (std::vector<int64_t>{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(Layout, one_dimension) {  // G14
  const mesh::MeshRef line = mesh_of({{"x", 8}});
  EXPECT_EQ(layout_of({16}, line, {{0}}).shard_dims, (tensor::Dims{2}));
  EXPECT_EQ(replicas(layout_of({16}, line, {})), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Layout, zero_size_array_is_whole_everywhere) {  // G15
  const Layout layout = layout_of({0}, mesh_of({{"x", 8}}), {});
  EXPECT_EQ(layout.shard_dims, (tensor::Dims{0}));
  EXPECT_EQ(replicas(layout), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  for (const DeviceShard& p : layout.device_shards) EXPECT_EQ(p.index, (Index{{0, 0}}));
}

TEST(Layout, mesh_of_some_devices) {  // G16
  const Layout layout = layout_of(kShape, mesh_of({{"x", 2}, {"y", 2}}, {5, 2, 7, 0}), {{0}, {1}});
  EXPECT_EQ(layout.shard_dims, (tensor::Dims{4, 1}));
  EXPECT_EQ(replicas(layout), (std::vector<int64_t>(4, 0)));
  EXPECT_EQ(layout.device_shards[2].device, 7);
}

TEST(Layout, axis_of_size_one_gives_the_full_range) {  // G17
  EXPECT_EQ(layout_of(kShape, mesh_of({{"x", 1}, {"y", 8}}), {{0}}).device_shards[3].index, (Index{{0, 8}, {0, 2}}));
}

TEST(Layout, part_of_an_axis_is_a_digit_of_the_axis) {
  TensorSharding sharding = fully_replicated("mesh", mesh_of({{"z", 8}}), 1);
  sharding.dims[0].axes = {{0, 2, 2}};  // 8 seen as [2, 2, 2], the middle digit
  std::vector<int64_t> shards;
  for (const DeviceShard& p : make_layout(tensor::Dims{8}, sharding).device_shards) shards.push_back(p.shard);
  EXPECT_EQ(shards, (std::vector<int64_t>{0, 0, 1, 1, 0, 0, 1, 1}));
}

TEST(Layout, maximal_mesh_holds_the_whole_on_its_device) {
  TensorSharding sharding;
  sharding.mesh = mesh_of({}, {3});
  const Layout layout = make_layout(kShape, sharding);
  ASSERT_EQ(layout.device_shards.size(), 1U);
  EXPECT_EQ(layout.device_shards[0].device, 3);
  EXPECT_EQ(layout.shard_dims, kShape);
}

/// Fills shards with the elements of 0..n-1, applies the copies, and checks that each target element is written once
/// and right.
void check_reshard(const tensor::Dims& dims, const Layout& from, const Layout& to) {
  const tensor::Dims strides = tensor::row_major_strides(dims);
  std::vector<int> hits(static_cast<size_t>(tensor::element_count(dims) * to.shard_count), 0);
  for (const BlockCopy& copy : reshard_copies(from, to)) {
    const Index source = from.shard_index(copy.from_shard);
    const Index target = to.shard_index(copy.to_shard);
    const int64_t count = tensor::element_count(copy.extent);
    for (int64_t number = 0; number < count; ++number) {
      int64_t rest = number;
      int64_t source_at = 0;
      int64_t target_at = 0;
      for (size_t dim = dims.size(); dim-- > 0;) {
        const int64_t i = rest % copy.extent[dim];
        rest /= copy.extent[dim];
        ASSERT_LT(source[dim].start + copy.from_start[dim] + i, source[dim].stop);
        ASSERT_LT(target[dim].start + copy.to_start[dim] + i, target[dim].stop);
        source_at += (source[dim].start + copy.from_start[dim] + i) * strides[dim];
        target_at += (target[dim].start + copy.to_start[dim] + i) * strides[dim];
      }
      ASSERT_EQ(source_at, target_at);
      ++hits[static_cast<size_t>(copy.to_shard * tensor::element_count(dims) + target_at)];
    }
  }
  for (int64_t shard = 0; shard < to.shard_count; ++shard) {
    const auto begin = hits.begin() + shard * tensor::element_count(dims);
    EXPECT_EQ(std::accumulate(begin, begin + tensor::element_count(dims), int64_t{0}),
              tensor::element_count(to.shard_actual_dims(shard)));
    EXPECT_TRUE(std::all_of(begin, begin + tensor::element_count(dims), [](int n) { return n <= 1; }));
  }
}

TEST(MeshView, parts_and_places_are_found_backwards) {
  const MeshView view{{2, 3}, {5, 4, 3, 0, 1, 2}};
  EXPECT_EQ(view.position_of_flat(6), (std::vector<int64_t>{3, 4, 5, 2, 1, 0}));
  const std::vector<int> sub_axes{1, 0};  // the second one is major
  for (int64_t part = 0; part < 6; ++part) {
    tensor::Dims coords(2, 0);
    set_part(view, sub_axes, part, coords);
    EXPECT_EQ(coords, (tensor::Dims{part % 2, part / 2}));
    EXPECT_EQ(part_index(view, sub_axes, coords), part);
  }
}

TEST(LayoutCache, makes_again_only_what_was_evicted) {
  const TensorSharding replicated = fully_replicated("mesh", kGrid, 2);
  LayoutCache cache(1);
  const auto first = cache.get(kShape, replicated);
  EXPECT_EQ(cache.get(kShape, replicated), first);
  EXPECT_NE(cache.get(tensor::Dims{4, 2}, replicated), first);
  EXPECT_NE(cache.get(kShape, replicated), first);
  EXPECT_EQ(cache.counters().count, 3);
  EXPECT_EQ(cache.counters().hits, 1);
}

TEST(LayoutCache, keeps_no_more_bytes_than_it_may) {
  const TensorSharding replicated = fully_replicated("mesh", kGrid, 2);
  LayoutCache small(256, 1 << 10);
  for (int64_t size = 1; size <= 100; ++size) small.get(tensor::Dims{size, 2}, replicated);
  EXPECT_EQ(small.counters().count, 100);
  small.get(tensor::Dims{1, 2}, replicated);
  EXPECT_EQ(small.counters().count, 101) << "it has left";
  LayoutCache tiny(256, 100);
  EXPECT_EQ(tiny.get(kShape, replicated)->shard_count, 1) << "larger than the cache";
  tiny.get(kShape, replicated);
  EXPECT_EQ(tiny.counters().count, 2);
}

TEST(Reshard, every_pair_of_specs_moves_each_element_once) {
  const std::vector<std::vector<std::vector<int>>> specs = {{},         {{0}},    {{}, {0}},   {{0}, {1}},
                                                            {{1}, {0}}, {{0, 1}}, {{}, {1, 0}}};
  for (const tensor::Dims& dims : {tensor::Dims{8, 2}, tensor::Dims{7, 5}, tensor::Dims{3, 1}, tensor::Dims{0, 4}}) {
    for (const auto& a : specs) {
      for (const auto& b : specs) check_reshard(dims, layout_of(dims, kGrid, a), layout_of(dims, kGrid, b));
    }
  }
}

TEST(Reshard, equal_layouts_copy_each_shard_whole) {
  const Layout layout = layout_of(kShape, kGrid, {{0}, {1}});
  const std::vector<BlockCopy> copies = reshard_copies(layout, layout);
  ASSERT_EQ(copies.size(), 8U);
  for (const BlockCopy& copy : copies) {
    EXPECT_EQ(copy.from_shard, copy.to_shard);
    EXPECT_EQ(copy.extent, layout.shard_dims);
  }
}

TEST(Reshard, scalar_is_one_copy) {
  const Layout layout = layout_of({}, kGrid, {});
  const std::vector<BlockCopy> copies = reshard_copies(layout, layout);
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_TRUE(copies[0].extent.empty());
}

}  // namespace
}  // namespace meshd::sharding
