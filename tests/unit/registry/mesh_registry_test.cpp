// Meshes by content: one row for equal ones, each principal's own list, and arrays that keep theirs.
#include <gtest/gtest.h>

#include "service/mesh/mesh_document.h"
#include "service/registry/registry.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using mesh::Mesh;
using registry::MeshRegistry;

Mesh line_of(int64_t devices) {
  Mesh out{{{"x", devices}}, {}, {}};
  for (int64_t i = 0; i < devices; ++i) out.device_ids.push_back(i);
  return out;
}

class Meshes : public ::testing::Test {
 protected:
  TempFolder folder_{TempFolder::Where::kMemory};
  OpenStore store_{folder_.path()};
  core::SystemClock clock_;
  MeshRegistry meshes_{store_->catalog(), clock_, 3};
};

TEST_F(Meshes, equal_mesh_posted_again_is_the_same_row) {
  const auto [first, fresh] = meshes_.put(line_of(4), "ann");
  EXPECT_TRUE(fresh);
  const auto [again, fresh_again] = meshes_.put(line_of(4), "ann");
  EXPECT_FALSE(fresh_again);
  EXPECT_EQ(again.id, first.id);
  EXPECT_EQ(again.created, first.created);
  EXPECT_EQ(meshes_.list("ann", {}).items.size(), 1U);
  EXPECT_EQ(meshes_.get(first.id, "ann").mesh, line_of(4));
}

TEST_F(Meshes, order_of_devices_names_of_axes_and_axis_types_make_another_mesh) {
  Mesh reversed = line_of(2), renamed = line_of(2), typed = line_of(2);
  reversed.device_ids = {1, 0};
  renamed.axes[0].name = "y";
  typed.axis_types = {mesh::AxisType::kExplicit};
  std::set<std::string> ids;
  MeshRegistry unlimited(store_->catalog(), clock_);
  for (const Mesh& mesh : {line_of(2), reversed, renamed, typed, Mesh{{{"x", 2}}, {}, {}}})
    ids.insert(unlimited.put(mesh, "ann").first.id);
  EXPECT_EQ(ids.size(), 5U);
}

TEST_F(Meshes, mesh_is_seen_by_those_who_posted_it) {
  const std::string id = meshes_.put(line_of(4), "ann").first.id;
  EXPECT_EQ(error_word([&] { meshes_.get(id, "bob"); }), "not_found");
  EXPECT_EQ(error_word([&] { meshes_.remove(id, "bob"); }), "not_found");
  EXPECT_TRUE(meshes_.list("bob", {}).items.empty());
  const auto [stored, fresh] = meshes_.put(line_of(4), "bob");
  EXPECT_TRUE(fresh) << "that somebody else has it must not show";
  EXPECT_EQ(stored.id, id);
  meshes_.remove(id, "ann");
  EXPECT_EQ(error_word([&] { meshes_.get(id, "ann"); }), "not_found");
  EXPECT_EQ(meshes_.get(id, "bob").mesh, line_of(4));
}

TEST_F(Meshes, limit_is_each_principals_and_refuses_before_anything_is_kept) {
  for (const int64_t devices : {1, 2, 3}) meshes_.put(line_of(devices), "ann");
  EXPECT_EQ(error_word([&] { meshes_.put(line_of(4), "ann"); }), "limit_reached");
  EXPECT_EQ(meshes_.list("ann", {}).items.size(), 3U);
  EXPECT_FALSE(meshes_.put(line_of(2), "ann").second) << "one that is there is no new one";
  EXPECT_TRUE(meshes_.put(line_of(4), "bob").second);
  meshes_.remove(mesh::mesh_id(line_of(1)), "ann");
  EXPECT_TRUE(meshes_.put(line_of(4), "ann").second);
}

TEST_F(Meshes, deleted_mesh_of_an_array_keeps_its_content) {
  const std::string id = meshes_.put(line_of(4), "ann").first.id;
  store_->catalog().write([&](storage::Transaction& transaction) {
    storage::ArrayRow row = array_row("arr_1");
    row.mesh = id;
    transaction.keep_mesh(id, mesh::to_document(line_of(4)));
    transaction.insert_array(row);
  });
  const auto content = [&] {
    return store_->catalog().read([&](storage::Reader& reader) { return reader.mesh_document(id); });
  };
  meshes_.remove(id, "ann");
  EXPECT_EQ(error_word([&] { meshes_.get(id, "ann"); }), "not_found");
  EXPECT_EQ(content(), mesh::to_document(line_of(4)));
  store_->catalog().write([](storage::Transaction& transaction) { transaction.delete_array("arr_1"); });
  EXPECT_EQ(content(), std::nullopt) << "nobody names it any more";
}

TEST_F(Meshes, devices_that_the_server_does_not_have_are_named_one_by_one) {
  Mesh mesh{{{"x", 4}}, {0, 9, 1, -1}, {}};
  std::vector<std::string> pointers;
  try {
    registry::verify_mesh(mesh, 8);
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code().word(), "invalid_mesh");
    for (const auto& field : error.diagnostics()) pointers.push_back(field.pointer);
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"/devices/1", "/devices/3"}));
  registry::verify_mesh(line_of(8), 8);
}

}  // namespace
}  // namespace meshd::testing
