// Views of meshes over all and over some of a run's devices.
#include <gtest/gtest.h>

#include "service/core/error.h"
#include "service/partition/lower/builder/views.h"

namespace meshd::partition {
namespace {

mesh::MeshRef mesh_of(std::vector<mesh::Axis> axes, std::vector<int64_t> devices = {}) {
  return std::make_shared<const mesh::Mesh>(mesh::Mesh{std::move(axes), std::move(devices), {}});
}

TEST(Views, are_over_all_devices_first_whatever_the_order_of_the_meshes) {
  Views views(8);
  const mesh::MeshRef three = mesh_of({{"a", 3}});
  const mesh::MeshRef one = mesh_of({}, {6});
  const mesh::MeshRef all = mesh_of({{"x", 2}, {"y", 4}});
  const mesh::MeshRef flat = mesh_of({{"z", 8}});
  for (const mesh::MeshRef& mesh : {three, one, all, flat}) views.add(mesh);
  views.finish();
  ASSERT_EQ(views.views().size(), 3U);
  EXPECT_EQ(views.view_of(all), 0);
  EXPECT_EQ(views.view_of(flat), 0);
  EXPECT_EQ(views.views()[0].sub_axis_sizes, (tensor::Dims{2, 4}));
  EXPECT_EQ(views.views()[1].sub_axis_sizes, (tensor::Dims{3}));
  EXPECT_EQ(views.views()[1].flat_of_position, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(views.views()[2].position_count(), 1);
  EXPECT_EQ(views.views()[2].flat(0), 6);
  EXPECT_TRUE(views.covers(0, 1) && views.covers(0, 2));
  EXPECT_FALSE(views.covers(1, 2) || views.covers(2, 1) || views.covers(1, 0));
  EXPECT_TRUE(views.is_over_all(0));
  EXPECT_FALSE(views.is_over_all(1));
}

TEST(Views, have_one_over_all_devices_where_no_mesh_is) {
  Views views(4);
  const mesh::MeshRef left = mesh_of({{"x", 2}});
  const mesh::MeshRef right = mesh_of({{"x", 2}}, {3, 2});
  views.add(left);
  views.add(right);
  views.finish();
  EXPECT_EQ(views.views()[0].sub_axis_sizes, (tensor::Dims{4}));
  EXPECT_EQ(views.view_of(left), 1);
  EXPECT_EQ(views.view_of(right), 2);
  EXPECT_EQ(views.views()[2].position_of_flat(4), (std::vector<int64_t>{-1, -1, 1, 0}));
}

TEST(Views, refuse_devices_beyond_the_run) {
  Views views(4);
  EXPECT_THROW(views.add(mesh_of({{"x", 2}}, {3, 4})), core::Error);
  EXPECT_THROW(views.add(mesh_of({}, {4})), core::Error);
}

}  // namespace
}  // namespace meshd::partition
