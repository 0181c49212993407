// Blobs that other ranks wrote: found in the folders of the ranks, collected, recovered, and refused where they are
// not.
#include "storage/blobs/rank_blobs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "storage/maintenance.h"
#include "storage/pending_blobs.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace storage;

TEST(RankBlobs, name_tells_the_rank) {
  EXPECT_EQ(blob_rank("arr_X.v1.w7.s0"), 0);
  EXPECT_EQ(blob_rank(rank_blob_name("arr_X.v1.w7.s0", 12)), 12);
  EXPECT_EQ(rank_blob_name("arr_X.v1.w7.s0", 1), "arr_X.v1.w7.s0.rank1");
  for (const char* odd : {"arr_X.rank", "arr_X.rank0", "arr_X.rank01", "arr_X.rank1x", "arr_X.rank-1",
                          "arr_X.rank99999999999", ".rank1.s0", ""})
    EXPECT_EQ(blob_rank(odd), 0) << odd;
}

class RankFolder : public ::testing::Test {
 protected:
  // Array arr_1 with shard 0 here and shard 1 on the disk of rank 1.
  void SetUp() override {
    OpenStore store(folder_.path());
    const BlobRef here = put_blob(store->blobs(), "arr_1.v1.w1.s0", "here").ref;
    const BlobRef there = put("arr_1.v1.w2.s1.rank1", "there");
    store->catalog().write([&](Transaction& t) {
      t.insert_array(array_row("arr_1"));
      t.put_shard({"arr_1", 0, here});
      t.put_shard({"arr_1", 1, there});
    });
  }
  // As rank 1 does.
  BlobRef put(const std::string& name, std::string_view bytes) {
    for (const int rank : {0, 1}) EXPECT_EQ(name_of_mesh(*files_, folder_.path(), rank, "mesh_1"), "mesh_1");
    BlobStore blobs(*files_, rank_folder(folder_.path(), 1) + "/blobs",
                    [](const std::string& why) { ADD_FAILURE() << why; });
    return put_blob(blobs, name, bytes).ref;
  }
  static std::vector<std::string> texts(Store& store) {
    std::vector<std::string> out;
    const auto shards = store.catalog().read([](Reader& r) { return r.shards("arr_1"); });
    for (const ShardRow& shard : shards) out.push_back(read_blob(store.blobs(), shard.blob));
    return out;
  }
  [[nodiscard]] int64_t files_of_rank() const {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(rank_folder(folder_.path(), 1) + "/blobs"))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }
  const std::vector<std::string> kTexts{"here", "there"};
  TempFolder folder_{TempFolder::Where::kMemory};
  std::unique_ptr<FileSystem> files_ = real_file_system();
};

TEST_F(RankFolder, shards_are_read_where_their_rank_left_them) {
  OpenStore store(folder_.path());
  EXPECT_TRUE(store->recovery().damaged_arrays.empty());
  EXPECT_EQ(texts(*store), kTexts);
  EXPECT_EQ(store->blobs().list().size(), 2U);
}

TEST_F(RankFolder, what_no_row_names_is_removed_at_the_start_and_by_the_collector) {
  put("arr_2.v1.w3.s0.rank1", "orphan");
  EXPECT_EQ(files_of_rank(), 2);
  {
    OpenStore store(folder_.path());
    EXPECT_EQ(store->recovery().orphans, 1);
    EXPECT_EQ(files_of_rank(), 1);
    EXPECT_EQ(texts(*store), kTexts);
    store->abandon({"arr_1.v1.w2.s1.rank1"});
    EXPECT_EQ(store->collect_garbage(), 0) << "a row names it";
    store->catalog().write([](Transaction& t) { t.delete_array("arr_1"); });
    EXPECT_EQ(store->collect_garbage(), 2);
  }
  EXPECT_EQ(files_of_rank(), 0);
}

TEST_F(RankFolder, shards_of_another_mesh_are_no_orphans) {
  // The host of rank 1, where a server is started on its own; and a folder that another mesh has left.
  const std::string host = folder_.path() + "/host", other = folder_.path() + "/other";
  for (const std::string& data : {host, other}) {
    std::filesystem::create_directories(data + "/ranks");
    std::filesystem::copy(rank_folder(folder_.path(), 1), rank_folder(data, 1),
                          std::filesystem::copy_options::recursive);
  }
  EXPECT_EQ(name_of_mesh(*files_, other, 0, "mesh_2"), "mesh_2");
  for (const std::string& data : {host, other}) {
    OpenStore store(data);
    EXPECT_EQ(store->recovery().orphans, 0) << data;
    EXPECT_TRUE(store->blobs().list().empty());
  }
  for (const std::string& data : {host, other}) {
    std::filesystem::remove_all(rank_folder(folder_.path(), 1));
    std::filesystem::rename(rank_folder(data, 1), rank_folder(folder_.path(), 1));
    EXPECT_EQ(texts(*OpenStore(folder_.path())), kTexts) << data;
  }
}

TEST_F(RankFolder, data_without_the_rank_that_has_shards_are_refused_and_not_changed) {
  const std::string away = folder_.path() + "/away";
  std::filesystem::rename(folder_.path() + "/ranks", away);
  for (int i = 0; i < 2; ++i) {
    try {
      OpenStore store(folder_.path());
      ADD_FAILURE() << "it starts";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code().word(), "storage_failed");
      EXPECT_NE(error.detail().find("rank 1 has 1 shards"), std::string::npos) << error.detail();
      EXPECT_NE(error.detail().find("arr_1"), std::string::npos) << error.detail();
    }
  }
  std::filesystem::rename(away, folder_.path() + "/ranks");
  OpenStore store(folder_.path());
  EXPECT_EQ(texts(*store), kTexts);
}

TEST_F(RankFolder, rank_that_is_given_up_loses_its_arrays_alone) {
  {
    OpenStore store(folder_.path());
    const BlobRef own = put_blob(store->blobs(), "arr_3.v1.w9.s0", "own").ref;
    store->catalog().write([&](Transaction& t) {
      t.insert_array(array_row("arr_3"));
      t.put_shard({"arr_3", 0, own});
    });
  }
  std::filesystem::remove_all(folder_.path() + "/ranks");
  core::SystemClock clock;
  StoreOptions options{folder_.path(), "", [](const std::string& why) { ADD_FAILURE() << why; }};
  options.lost_ranks = {1};
  Store store(options, *files_, clock);
  EXPECT_EQ(store.recovery().damaged_arrays, std::vector<std::string>{"arr_1"});
  store.catalog().read([](Reader& r) {
    EXPECT_EQ(r.array("arr_1")->state, ArrayState::kLost);
    EXPECT_EQ(r.array("arr_3")->state, ArrayState::kReady);
  });
}

TEST_F(RankFolder, what_is_given_up_once_is_not_asked_for_again) {
  std::filesystem::remove_all(folder_.path() + "/ranks");
  core::SystemClock clock;
  StoreOptions options{folder_.path(), "", [](const std::string& why) { ADD_FAILURE() << why; }};
  options.lost_ranks = {1};
  Store(options, *files_, clock);
  OpenStore store(folder_.path());
  EXPECT_EQ(store->catalog().read([](Reader& r) { return r.array("arr_1"); })->state, ArrayState::kLost);
}

TEST_F(RankFolder, one_missing_file_of_a_rank_loses_its_array_alone) {
  {
    OpenStore store(folder_.path());
    const BlobRef other = put("arr_3.v1.w4.s0.rank1", "other");
    store->catalog().write([&](Transaction& t) {
      t.insert_array(array_row("arr_3"));
      t.put_shard({"arr_3", 0, other});
    });
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    if (entry.path().filename() == "arr_1.v1.w2.s1.rank1") {
      std::filesystem::remove(entry.path());
      break;
    }
  }
  OpenStore store(folder_.path());
  EXPECT_EQ(store->recovery().damaged_arrays, std::vector<std::string>{"arr_1"});
}

TEST_F(RankFolder, backup_has_the_shards_of_all_ranks) {
  const std::string copy = folder_.path() + "/copy", restored = folder_.path() + "/restored";
  OpenStore(folder_.path())->backup_to(copy);
  EXPECT_EQ(texts(*OpenStore(copy)), kTexts);
  EXPECT_EQ(check(*files_, copy).problem_count, 0);
  EXPECT_EQ(check(*files_, folder_.path()).problem_count, 0);
  restore(*files_, copy, restored);
  EXPECT_EQ(texts(*OpenStore(restored)), kTexts);
  std::filesystem::remove_all(folder_.path() + "/ranks");
  EXPECT_EQ(check(*files_, folder_.path()).problem_count, 1) << "the shard of rank 1";
}

TEST_F(RankFolder, blobs_of_a_write_that_came_to_nothing_are_abandoned) {
  OpenStore store(folder_.path());
  const BlobRef left = put("arr_4.v1.w5.s1.rank1", "left");
  {
    PendingBlobs blobs(*store);
    blobs.adopt(left);
    blobs.add("arr_4.v1.w6.s0", as_bytes("own"));
    const auto refs = blobs.sync();
    ASSERT_EQ(refs.size(), 2U);
    EXPECT_EQ(refs[0].name, left.name);
    EXPECT_EQ(read_blob(store->blobs(), refs[0]), "left");
    EXPECT_EQ(read_blob(store->blobs(), refs[1]), "own");
  }
  EXPECT_EQ(store->collect_garbage(), 2);
  EXPECT_EQ(files_of_rank(), 1);
}

/// Another rank, whose disk can be used once it answers.
class SlowRank final : public RankBlobs {
 public:
  [[nodiscard]] bool has_rank(int rank) const override { return rank == 2; }
  [[nodiscard]] std::vector<StoredBlob> list() override { return {}; }
  [[nodiscard]] std::unique_ptr<File> open(const std::string& /*name*/) override { return nullptr; }
  int64_t remove(std::span<const std::string> names) override {
    if (!answers) throw core::Error("storage_failed", "rank 2 does not answer for its disk");
    removed.insert(removed.end(), names.begin(), names.end());
    return static_cast<int64_t>(names.size());
  }
  bool answers = false;
  std::vector<std::string> removed;
};

TEST_F(RankFolder, what_could_not_be_removed_is_removed_the_next_time) {
  SlowRank rank;
  core::SystemClock clock;
  StoreOptions options{folder_.path(), "", [](const std::string& why) { ADD_FAILURE() << why; }};
  options.ranks = &rank;
  Store store(options, *files_, clock);
  const std::vector<std::string> names{"arr_5.v1.w7.s0.rank2"};
  store.abandon(names);
  EXPECT_THROW(store.collect_garbage(), core::Error);
  rank.answers = true;
  EXPECT_EQ(store.collect_garbage(), 1);
  EXPECT_EQ(rank.removed, names);
}

}  // namespace
}  // namespace meshd::testing
