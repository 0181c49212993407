// Positions of sizes and layouts of pages against a model in 128 bits, for sizes, specs and shapes of chance: extreme
// ones are as likely as those that machines have.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "service/core/error.h"
#include "service/mesh/positions.h"
#include "service/sharding/layout.h"
#include "service/sharding/parts.h"
#include "service/tensor/sizes.h"
#include "tests/support/effort.h"

namespace meshd::sharding {
namespace {

const int kRounds = testing::by_effort(100'000, 1'000'000, 100'000'000);

// Products of two numbers of 64 bits fit.
__extension__ typedef __int128 Wide;

class Random {
 public:
  explicit Random(uint32_t seed) : generator_(seed) {}
  int64_t upto(int64_t last) { return static_cast<int64_t>(generator_() % static_cast<uint64_t>(last + 1)); }

  int64_t size() {
    static constexpr int64_t kExtreme[] = {0,
                                           -1,
                                           INT64_MIN,
                                           INT64_MAX,
                                           int64_t{1} << 31,
                                           int64_t{1} << 32,
                                           int64_t{1} << 62,
                                           mesh::kMaxPositions,
                                           mesh::kMaxPositions + 1};
    return upto(9) == 0 ? kExtreme[upto(8)] : 1 + upto(upto(3) == 0 ? 63 : 3);
  }
  std::vector<int64_t> sizes(int64_t most) {
    std::vector<int64_t> out(static_cast<size_t>(upto(most)));
    for (int64_t& each : out) each = size();
    return out;
  }

 private:
  std::mt19937_64 generator_;
};

// The first size with which the ones other than 0 multiply to more than the limit, and the product of all.
struct Model {
  std::optional<size_t> fault;
  int64_t count = 0;
};

Model model_of(const std::vector<int64_t>& sizes) {
  Wide all = 1, others = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) return {i, 0};
    all *= sizes[i];
    others *= sizes[i] == 0 ? 1 : sizes[i];
    if (others > mesh::kMaxPositions) return {i, 0};
  }
  return {std::nullopt, static_cast<int64_t>(all)};
}

mesh::Mesh mesh_of(const std::vector<int64_t>& sizes) {
  mesh::Mesh mesh;
  for (size_t i = 0; i < sizes.size(); ++i) mesh.axes.push_back({"a" + std::to_string(i), sizes[i]});
  return mesh;
}

TEST(Sizes, positions_are_the_product_or_name_the_axis) {
  Random random(1);
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<int64_t> sizes = random.sizes(6);
    const Model model = model_of(sizes);
    const mesh::Positions positions = mesh::count_positions(sizes);
    ASSERT_EQ(positions.fault, model.fault) << "round " << round;
    ASSERT_EQ(positions.problem.empty(), !model.fault.has_value());
    const mesh::Mesh mesh = mesh_of(sizes);
    if (model.fault) {
      EXPECT_THROW(static_cast<void>(mesh.position_count()), core::Error);
      EXPECT_THROW(part_total(sizes), core::Error);
      continue;
    }
    ASSERT_EQ(positions.count, model.count);
    ASSERT_EQ(mesh.position_count(), model.count);
    ASSERT_EQ(part_total(sizes), model.count);
    if (model.count == 0) {
      EXPECT_THROW(mesh::require_positions(mesh), core::Error);
    } else {
      mesh::require_positions(mesh);
    }
  }
}

TEST(Sizes, bytes_fit_when_they_do_in_128_bits) {
  Random random(2);
  for (int round = 0; round < kRounds; ++round) {
    const tensor::TensorType type{tensor::DType::kFloat64, random.sizes(8)};
    Wide bytes = 8;
    bool fits = true;
    for (const int64_t size : type.dims) {
      const bool dynamic = size == tensor::kDynamicDim;
      fits = fits && (dynamic || size >= 0);
      if (!fits) break;
      bytes *= dynamic ? 1 : std::max<int64_t>(size, 1);
      fits = bytes <= INT64_MAX;
    }
    ASSERT_EQ(tensor::sizes_fit(type), fits) << tensor::to_string(type);
  }
}

TEST(Sizes, pages_of_a_layout_are_those_of_the_whole) {
  Random random(3);
  int told = 0;
  for (int round = 0; round < kRounds; ++round) {
    // Sizes, a spec and a shape.
    const std::vector<int64_t> sizes = random.sizes(4);
    const Model model = model_of(sizes);
    const auto mesh = std::make_shared<const mesh::Mesh>(mesh_of(sizes));
    const int64_t rank = random.upto(3);
    TensorSharding sharding = fully_replicated("mesh", mesh, rank);
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      const int64_t dim = random.upto(rank);
      if (dim < rank) sharding.dims[static_cast<size_t>(dim)].axes.push_back({static_cast<int>(axis), 1, 0});
    }
    tensor::Dims dims(static_cast<size_t>(rank));
    for (int64_t& dim : dims) dim = random.upto(7) == 0 ? INT64_MAX - random.upto(3) : random.upto(100);
    if (model.fault || model.count == 0) {
      EXPECT_THROW(make_layout(dims, sharding), core::Error);
      continue;
    }
    if (model.count > 256) continue;  // their whole is not listed here
    ++told;
    const Layout whole = make_layout(dims, sharding);
    ASSERT_EQ(static_cast<int64_t>(whole.device_shards.size()), model.count);
    Wide shards = 1;
    for (const int64_t parts : whole.part_counts) shards *= parts;
    ASSERT_EQ(whole.shard_count, static_cast<int64_t>(shards));
    for (const DeviceShard& device_shard : whole.device_shards) {
      for (size_t d = 0; d < dims.size(); ++d) {
        const IndexRange& range = device_shard.index[d];
        ASSERT_TRUE(0 <= range.start && range.start <= range.stop && range.stop <= dims[d]);
      }
    }
    const PositionRange range{random.upto(model.count), random.upto(model.count)};
    const Layout page = make_layout(dims, sharding, range);
    const auto first = static_cast<size_t>(range.first);
    const auto end = static_cast<size_t>(std::min(range.first + range.count, model.count));
    ASSERT_EQ(page.device_shards.size(), end - first);
    ASSERT_EQ(page.shard_count, whole.shard_count);
    for (size_t i = first; i < end; ++i) {
      const DeviceShard& one = page.device_shards[i - first];
      const DeviceShard& other = whole.device_shards[i];
      ASSERT_EQ(one.position, other.position);
      ASSERT_EQ(one.device, other.device);
      ASSERT_EQ(one.index, other.index);
      ASSERT_EQ(one.replica_id, other.replica_id);
      ASSERT_EQ(one.shard, other.shard);
    }
  }
  EXPECT_GT(told, kRounds / 4);
}

}  // namespace
}  // namespace meshd::sharding
