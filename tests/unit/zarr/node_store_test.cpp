// Pending Zarr nodes: when they end, what a commit takes and leaves.
#include "service/zarr/node_store.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/manual_clock.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using tensor::DType;

class NodeStore : public ::testing::Test {
 protected:
  NodeStore()
      : store_(folder_.path()),
        arrays_(*store_, tensor::BufferPool::create(0), clock_, int64_t{1} << 30, int64_t{1} << 40,
                {.timeout = std::chrono::seconds(60), .most_of_principal = 3, .most_bytes = 1000}),
        nodes_(*store_, arrays_, clock_,
               {.most_nodes = 4, .most_groups = 2, .most_document_bytes = 100, .most_attribute_bytes = 500}) {}

  /// uint8[2] in chunks of 1, fill value 9.
  void put_array(const std::string& path) {
    arrays::NewArray wanted;
    wanted.principal = "ann";
    wanted.name = path;
    wanted.is_unique = true;
    wanted.type = {DType::kUint8, {2}};
    for (const arrays::ArrayRef& holder : nodes_.holders(path, "ann")) wanted.leaving.push_back(holder->info().id);
    auto array = std::make_shared<zarr::ChunkedArray>(arrays_, arrays_.begin(wanted),
                                                      zarr::ChunkedType{{1}, {std::byte{9}}, {}});
    nodes_.put("ann", path, 3, {"zarr.json", "{}", zarr::NodeKind::kArray, "{}", std::move(array)});
  }
  void put_group(const std::string& path, const std::string& attributes = "{}") {
    nodes_.put("ann", path, 3, {"zarr.json", "{}", zarr::NodeKind::kGroup, attributes, nullptr});
  }
  void put_chunk(const std::string& path, int64_t chunk, uint8_t value) {
    const auto byte = static_cast<std::byte>(value);
    nodes_.find_chunked("ann", path, 3)->write(chunk, {&byte, 1});
  }
  std::vector<arrays::ArrayRef> commit(const std::string& path, bool replaces = false) {
    return nodes_.commit("ann", path, 3, replaces, std::nullopt);
  }
  std::string code_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const core::Error& error) {
      return std::string(error.code().word());
    }
    return "";
  }
  std::vector<int> values(const arrays::ArrayRef& array) {
    std::vector<int> out;
    const auto shards = arrays_.shards(array);
    for (const std::byte byte : shards.at(0)->bytes()) out.push_back(static_cast<int>(byte));
    return out;
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  OpenStore store_;
  ManualClock clock_;
  arrays::ArrayStore arrays_;
  zarr::NodeStore nodes_;
};

TEST_F(NodeStore, chunks_keep_all_of_their_tree_and_nothing_else) {
  put_group("a");
  put_array("a/x");
  put_array("a/y");
  put_array("b/z");
  clock_.advance(std::chrono::seconds(50));
  put_chunk("a/x", 1, 1);
  clock_.advance(std::chrono::seconds(50));
  arrays_.expire_pending();
  nodes_.expire();
  EXPECT_EQ(code_of([&] { commit("b"); }), "not_found");
  const auto made = commit("a");
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(values(made[0]), (std::vector<int>{9, 1}));
  core::MemoryReservation memory;
  EXPECT_TRUE(nodes_.find_group("a", "ann", memory));
}

TEST_F(NodeStore, a_part_that_is_gone_is_not_passed_over) {
  put_array("a/x");
  put_array("a/y");
  arrays_.remove(nodes_.find_pending("ann", "a/x", 3)->array->array());
  nodes_.expire();
  EXPECT_EQ(code_of([&] { commit("a"); }), "not_found");
  EXPECT_TRUE(nodes_.drop("ann", "a/x", 3, "zarr.json"));
  EXPECT_EQ(commit("a").size(), 1U);
}

TEST_F(NodeStore, chunks_of_a_part_that_is_gone_are_not_read_behind_a_refused_commit) {
  put_array("a/x");
  put_array("a/y");
  put_chunk("a/x", 0, 3);
  const auto array = nodes_.find_pending("ann", "a/x", 3)->array;
  std::byte chunk{};
  EXPECT_TRUE(array->read(0, {&chunk, 1}));
  arrays_.remove(array->array());
  nodes_.expire();
  EXPECT_EQ(code_of([&] { commit("a"); }), "not_found");
  EXPECT_FALSE(array->read(0, {&chunk, 1}));
}

TEST_F(NodeStore, a_refused_commit_leaves_all_pending) {
  put_array("a/x");
  commit("a");
  put_array("a/x");
  put_array("a/y");
  put_chunk("a/x", 0, 3);
  EXPECT_EQ(code_of([&] { commit("a"); }), "name_taken");
  put_chunk("a/x", 1, 4);
  const auto made = commit("a", true);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(values(made[0]), (std::vector<int>{3, 4}));
  EXPECT_EQ(code_of([&] { commit("a"); }), "not_found");
}

TEST_F(NodeStore, a_commit_over_a_limit_leaves_all_pending) {
  put_group("a");
  put_group("a/b");
  commit("a");
  put_group("c");
  put_array("c/x");
  put_chunk("c/x", 0, 3);
  EXPECT_EQ(code_of([&] { commit("c"); }), "limit_reached") << "a third group";
  put_chunk("c/x", 1, 4);
  EXPECT_TRUE(nodes_.drop("ann", "c", 3, "zarr.json"));
  const auto made = commit("c");
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(values(made[0]), (std::vector<int>{3, 4}));
}

TEST_F(NodeStore, what_ends_makes_room_for_other_nodes) {
  for (int round = 0; round < 3; ++round) {
    for (const char* path : {"a", "b", "c", "d"}) put_group(path, "[1]");
    put_group("a", "[1, 2]");
    nodes_.put("ann", "a", 2, {".zgroup", "{}", zarr::NodeKind::kGroup, std::nullopt, nullptr});  // in its place
    EXPECT_EQ(code_of([&] { put_group("e"); }), "limit_reached");
    EXPECT_TRUE(nodes_.drop("ann", "a", 2, ".zgroup"));
    EXPECT_EQ(code_of([&] { put_array("e"); }), "");
    EXPECT_EQ(code_of([&] { put_group("f"); }), "limit_reached");
    commit("e", true);
    EXPECT_EQ(code_of([&] { put_group("f"); }), "");
    clock_.advance(std::chrono::seconds(61));
    nodes_.expire();
    EXPECT_EQ(code_of([&] { put_group("a", std::string(90, ' ')); }), "") << "all bytes are free";
    EXPECT_TRUE(nodes_.drop("ann", "a", 3, "zarr.json"));
  }
}

TEST_F(NodeStore, limits_are_of_nodes_documents_and_groups) {
  for (const char* path : {"a", "b", "c", "d"}) put_group(path);
  EXPECT_EQ(code_of([&] { put_group("e"); }), "limit_reached");
  EXPECT_EQ(code_of([&] { put_group("a", std::string(200, ' ')); }), "");
  EXPECT_EQ(code_of([&] { put_group("b"); }), "limit_reached") << "of documents";
  EXPECT_EQ(code_of([&] { commit(""); }), "limit_reached") << "of committed groups";
}

TEST_F(NodeStore, documents_of_one_principal_leave_room_for_others) {
  put_group("a", std::string(30, ' '));
  EXPECT_EQ(code_of([&] { put_group("b"); }), "limit_reached");
  nodes_.put("ben", "a", 3, {"zarr.json", "{}", zarr::NodeKind::kGroup, "{}", nullptr});
}

TEST_F(NodeStore, attributes_of_a_principal_are_limited) {
  for (const char* path : {"a", "b"}) {
    put_group(path, std::string(200, ' '));
    commit(path);
  }
  put_group("a", std::string(400, ' '));
  EXPECT_EQ(code_of([&] { commit("a"); }), "limit_reached");
  core::MemoryReservation memory;
  EXPECT_EQ(nodes_.find_group("a", "ann", memory)->attributes.size(), 200U);
}

TEST_F(NodeStore, what_is_below_a_group_is_listed_as_far_as_there_is_memory) {
  put_group("a", "{}");
  put_group("a/b", std::string(300, ' '));
  commit("a");
  core::MemoryReservation enough(core::MemoryLedger::create(int64_t{1} << 20), core::MemoryAccount::kRequests);
  const auto listed = nodes_.find_group("a", "ann", enough);
  ASSERT_TRUE(listed && listed->arrays);
  EXPECT_EQ(listed->groups.size(), 1U);
  EXPECT_GT(enough.bytes(), 300);
  core::MemoryReservation little(core::MemoryLedger::create(int64_t{16} << 10), core::MemoryAccount::kRequests);
  const auto alone = nodes_.find_group("a", "ann", little);
  ASSERT_TRUE(alone);
  EXPECT_FALSE(alone->arrays);
  EXPECT_EQ(alone->attributes, "{}");
  EXPECT_TRUE(alone->groups.empty());
  EXPECT_EQ(little.bytes(), 0);
}

TEST_F(NodeStore, a_document_that_comes_behind_its_commit_is_pending_no_more) {
  put_array("a");
  const auto array = nodes_.find_pending("ann", "a", 3)->array;
  commit("a");
  nodes_.put("ann", "a", 3, {"zarr.json", "{}", zarr::NodeKind::kArray, "{}", array});
  EXPECT_TRUE(array->is_gone());
  nodes_.expire();
  EXPECT_FALSE(nodes_.find_pending("ann", "a", 3));
}

TEST_F(NodeStore, a_pending_array_counts_until_it_ends) {
  put_array("a");
  EXPECT_EQ(arrays_.totals_of("ann").bytes, 2);
  EXPECT_TRUE(nodes_.drop("ann", "a", 3, "zarr.json"));
  EXPECT_EQ(arrays_.totals_of("ann").bytes, 0);
  EXPECT_EQ(arrays_.pending().held_bytes(), 0);
}

}  // namespace
}  // namespace meshd::testing
