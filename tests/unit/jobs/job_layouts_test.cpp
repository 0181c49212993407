#include "service/jobs/admission/job_layouts.h"

#include <gtest/gtest.h>

#include <memory>

namespace meshd::jobs {
namespace {

TEST(JobLayouts, one_device_has_what_a_mesh_without_axes_gives) {
  const auto one = std::make_shared<const mesh::Mesh>(mesh::Mesh{{}, {0}, {}});
  for (const tensor::Dims& dims : {tensor::Dims{}, tensor::Dims{5}, tensor::Dims{2, 0, 3}, tensor::Dims{7, 1, 4, 9}}) {
    const auto rank = static_cast<int64_t>(dims.size());
    const sharding::Layout expected = sharding::make_layout(dims, sharding::fully_replicated("", one, rank));
    const sharding::Layout made = one_device_layout(dims);
    EXPECT_EQ(made.global_dims, expected.global_dims);
    EXPECT_EQ(made.shard_dims, expected.shard_dims);
    EXPECT_EQ(made.part_counts, expected.part_counts);
    EXPECT_EQ(made.shard_count, expected.shard_count);
    ASSERT_EQ(made.device_shards.size(), 1U);
    ASSERT_EQ(expected.device_shards.size(), 1U);
    const sharding::DeviceShard &left = made.device_shards[0], &right = expected.device_shards[0];
    EXPECT_EQ(left.index, right.index);
    EXPECT_EQ(left.device, right.device);
    EXPECT_EQ(left.position, right.position);
    EXPECT_EQ(left.replica_id, right.replica_id);
    EXPECT_EQ(left.shard, right.shard);
  }
}

}  // namespace
}  // namespace meshd::jobs
