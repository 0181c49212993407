// Shards of arrays that ranks keep, in memory and on their disks: what is there is not sent again, and bits stay those
// of one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <new>
#include <thread>

#include "service/hosts/own_disk.h"
#include "tests/support/eventually.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_folder.h"
#include "tests/support/watched_file_system.h"

namespace meshd::testing {
namespace {

using namespace hosts;

constexpr int64_t kMuch = int64_t{1} << 30;

const std::string kDouble = std::string(kMesh8) + R"(
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %0 = stablehlo.add %a, %a : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
})";

/// The arguments are versions of arrays, with these names.
device::RunRequest named(device::RunRequest request, const std::vector<std::string>& versions) {
  for (size_t i = 0; i < versions.size(); ++i) request.arguments[i].version = versions[i];
  return request;
}

TEST(KeptArrays, second_run_over_the_same_arrays_sends_nothing) {
  const compile::LoweredRef program = lowered(layers());
  OneProcess one;
  const auto bytes = bytes_of(start(one.engine, request_of(program))->wait());
  for (const int count : {2, 4, 8}) {
    Ranks ranks(count, static_cast<uint32_t>(count), 0, {kMuch, kMuch, ""});
    const auto run = [&](const std::vector<std::string>& versions) {
      const auto outcome = start(*ranks.coordinator, named(request_of(program), versions))->wait();
      EXPECT_EQ(bytes_of(outcome), bytes) << count << " ranks";
      return outcome.stats.argument_bytes_sent;
    };
    const int64_t all = run({"arr_a.v1", "arr_w.v1"});
    EXPECT_GT(all, 0);
    EXPECT_EQ(run({"arr_a.v1", "arr_w.v1"}), 0);
    EXPECT_EQ(run({"arr_a.v2", "arr_w.v2"}), all) << "other versions are other bytes";
    const int64_t of_w = run({"arr_a.v1", "arr_w.v3"});
    EXPECT_GT(of_w, 0);
    EXPECT_LT(of_w, all);
    ranks.coordinator->forget("arr_a");
    EXPECT_EQ(run({"arr_a.v1", "arr_w.v1"}), all - of_w) << "an array that is gone is dropped";
    EXPECT_EQ(run({"", ""}), all) << "what has no name is not kept";
  }
}

TEST(KeptArrays, one_array_may_be_several_arguments_and_many_runs_may_want_it_at_once) {
  const std::string text = std::string(kMesh8) + R"(
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<f32> {
  %0 = stablehlo.subtract %a, %b : tensor<8x6xf32>
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
})";
  const compile::LoweredRef program = lowered(text);
  Ranks ranks(4, 3, 0, {kMuch, kMuch, ""});
  std::vector<std::shared_ptr<Pending>> runs;
  for (int i = 0; i < 20; ++i) {
    device::RunRequest request = named(request_of(program), {"arr_a.v1", "arr_a.v1"});
    request.arguments[1].shards = request.arguments[0].shards;
    runs.push_back(start(*ranks.coordinator, std::move(request)));
  }
  int64_t sent = 0;
  for (const auto& run : runs) {
    const auto outcome = run->wait();
    const auto bytes = bytes_of(outcome);
    ASSERT_EQ(bytes.size(), 1U);
    float sum = 0;
    std::memcpy(&sum, bytes[0].data(), sizeof(sum));
    EXPECT_EQ(sum, 1.0F);
    sent += outcome.stats.argument_bytes_sent;
  }
  EXPECT_EQ(sent, 6 * 6 * 4) << "six of eight shards of 2x3, once";
}

TEST(KeptArrays, donated_array_is_handed_over_and_readers_before_keep_theirs) {
  const compile::LoweredRef program = lowered(kDouble);
  const compile::LoweredRef donating = lowered(kDouble, std::vector<int64_t>{0});
  ASSERT_TRUE(donating->plan->arguments[0].is_donated);
  OneProcess one;
  const auto bytes = bytes_of(start(one.engine, request_of(program))->wait());
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    Ranks ranks(2, seed, 0, {kMuch, kMuch, ""});
    std::vector<std::shared_ptr<Pending>> runs;
    for (int i = 0; i < 3; ++i) runs.push_back(start(*ranks.coordinator, named(request_of(program), {"arr_a.v1"})));
    runs.push_back(start(*ranks.coordinator, named(request_of(donating), {"arr_a.v1"})));
    for (const auto& run : runs) EXPECT_EQ(bytes_of(run->wait()), bytes);
    const auto again = start(*ranks.coordinator, named(request_of(donating), {"arr_a.v1"}))->wait();
    EXPECT_EQ(bytes_of(again), bytes);
    EXPECT_GT(again.stats.argument_bytes_sent, 0) << "the run before had it for itself";
  }
}

TEST(KeptArrays, rank_keeps_no_more_than_it_may) {
  const compile::LoweredRef program = lowered(layers());
  Ranks ranks(2, 1, 0, {100, kMuch, ""});
  for (int i = 0; i < 5; ++i) {
    const auto outcome =
        start(*ranks.coordinator, named(request_of(program), {"arr_a.v" + std::to_string(i), "arr_w.v1"}))->wait();
    EXPECT_TRUE(outcome.ok());
    EXPECT_LE(ranks.coordinator->kept_arrays()[1].bytes, 100);
    EXPECT_GT(ranks.coordinator->kept_arrays()[1].bytes, 0);
  }
}

TEST(KeptArrays, run_that_a_rank_cannot_begin_leaves_nothing_of_what_it_was_given) {
  const std::string text = std::string(kMesh8) + R"(
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %0 = stablehlo.add %a, %b : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
})";
  const compile::LoweredRef program = lowered(text);
  const compile::LoweredRef donating = lowered(text, std::vector<int64_t>{1});
  ASSERT_TRUE(donating->plan->arguments[1].is_donated);
  Ranks ranks(2, 1, 0, {kMuch, kMuch, ""});
  ASSERT_TRUE(start(*ranks.coordinator, named(request_of(program), {"arr_a.v1", "arr_b.v1"}))->wait().ok());
  // The first argument is on a disk that the rank has not; the second was to be the run's own.
  device::RunRequest request = named(request_of(donating), {"arr_c.v1", "arr_b.v1"});
  request.apart.arguments = {1, 0};
  request.arguments[0].files.resize(8);
  for (size_t s = 4; s < 8; ++s) {
    request.arguments[0].shards[s] = nullptr;
    request.arguments[0].files[s].name = storage::rank_blob_name("arr_c.v1.s" + std::to_string(s), 1);
  }
  const auto failed = start(*ranks.coordinator, std::move(request))->wait();
  ASSERT_TRUE(failed.error.has_value());
  EXPECT_EQ(failed.error->code().word(), "storage_failed");
  for (const char* array : {"arr_a", "arr_b", "arr_c"}) ranks.coordinator->forget(array);
  EXPECT_EQ(ranks.coordinator->kept_arrays()[1].bytes, 0);
  EXPECT_TRUE(eventually([&] { return ranks.pools[0]->stats().in_use_bytes == 0; }))
      << ranks.pools[0]->stats().in_use_bytes;
}

TEST(KeptArrays, cancelled_runs_leave_what_they_were_sent) {
  const compile::LoweredRef program = lowered(layers());
  OneProcess one;
  const auto bytes = bytes_of(start(one.engine, request_of(program))->wait());
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    Ranks ranks(2, seed, 0, {kMuch, kMuch, ""});
    const auto first = start(*ranks.coordinator, named(request_of(program), {"arr_a.v1", "arr_w.v1"}));
    first->run->cancel(core::Error("cancelled", "by the test"));
    const auto second = start(*ranks.coordinator, named(request_of(program), {"arr_a.v1", "arr_w.v1"}));
    EXPECT_EQ(bytes_of(second->wait()), bytes);
    first->wait();
    const auto third = start(*ranks.coordinator, named(request_of(program), {"arr_a.v1", "arr_w.v1"}))->wait();
    EXPECT_EQ(bytes_of(third), bytes);
    EXPECT_EQ(third.stats.argument_bytes_sent, 0);
  }
}

// ---- results that stay where they are made

/// The store of rank 0, which reads what ranks have written.
class RankZeroBlobs {
 public:
  RankZeroBlobs(const std::string& folder, storage::RankBlobs& ranks)
      : files_(storage::real_file_system()), blobs(*files_, folder + "/blobs", [](const std::string&) {}) {
    blobs.look_in(ranks);
  }

 private:
  std::unique_ptr<storage::FileSystem> files_;

 public:
  storage::BlobStore blobs;
};

/// A result that was left: what rank 0 has of it, and where the rest is.
struct Left {
  std::vector<tensor::BufferRef> shards;
  std::vector<device::ShardFile> files;
};

Left store(device::RunOutcome& outcome, const std::string& name) {
  Left out{outcome.outputs[0], {}};
  out.files.resize(out.shards.size());
  std::vector<device::HeldResults::ToStore> wanted;
  for (size_t s = 0; s < out.shards.size(); ++s) {
    if (out.shards[s] != nullptr) continue;
    const auto shard = static_cast<int64_t>(s);
    const int rank = outcome.held->rank_of(0, shard);
    EXPECT_GT(rank, 0);
    wanted.push_back({0, shard, storage::rank_blob_name(name + ".v1.s" + std::to_string(s), rank)});
  }
  const std::vector<device::ShardFile> files = outcome.held->store(wanted);
  EXPECT_EQ(files.size(), wanted.size());
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].name, wanted[i].name);
    out.files[static_cast<size_t>(wanted[i].shard)] = files[i];
  }
  return out;
}

class LeftResults : public ::testing::Test {
 protected:
  device::RunOutcome run(Ranks& ranks, device::RunRequest request) {
    return start_apart(ranks, std::move(request))->wait();
  }
  static std::shared_ptr<Pending> start_apart(Ranks& ranks, device::RunRequest request) {
    request.apart.arguments = {1};
    request.apart.results = {device::ResultPlace::kThere};
    return start(*ranks.coordinator, std::move(request));
  }
  device::RunRequest request_for(const Left& left, const std::string& version, storage::BlobStore& blobs) {
    device::RunRequest request = request_of(program_);
    request.arguments[0].shards = left.shards;
    request.arguments[0].may_overwrite = false;
    request.arguments[0].version = version;
    request.arguments[0].files = left.files;
    request.arguments[0].load = [this, left, &blobs](int64_t shard) {
      ++loads_;
      const device::ShardFile& file = left.files.at(static_cast<size_t>(shard));
      tensor::BufferRef buffer = new_pool()->allocate(file.length);
      blobs.read({file.name, file.length, file.checksum}, 0, buffer->bytes());
      return buffer;
    };
    return request;
  }
  std::vector<std::string> expected(int doublings) {
    std::vector<tensor::BufferRef> shards = request_of(program_).arguments[0].shards;
    for (int i = 0; i < doublings; ++i) {
      device::RunRequest request = request_of(program_);
      request.arguments[0].shards = shards;
      request.arguments[0].may_overwrite = false;
      shards = start(one_.engine, std::move(request))->wait().outputs[0];
    }
    std::vector<std::string> out;
    for (const auto& shard : shards)
      out.emplace_back(reinterpret_cast<const char*>(shard->data()), static_cast<size_t>(shard->size()));
    return out;
  }

  const compile::LoweredRef program_ = lowered(kDouble);
  TempFolder folder_;
  OneProcess one_;
  int loads_ = 0;
};

TEST_F(LeftResults, are_stored_by_their_ranks_and_read_from_there) {
  for (const int count : {2, 4, 8}) {
    TempFolder folder;
    Ranks ranks(count, static_cast<uint32_t>(count), 0, {kMuch, kMuch, folder.path()});
    RankZeroBlobs zero(folder.path(), ranks.coordinator->disks());
    device::RunOutcome outcome = run(ranks, request_of(program_));
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.stats.result_bytes_received, 0);
    EXPECT_EQ(std::count(outcome.outputs[0].begin(), outcome.outputs[0].end(), nullptr), 8 - 8 / count);
    const Left left = store(outcome, "arr_x");
    const auto bytes = expected(1);
    for (size_t s = 0; s < left.shards.size(); ++s) {
      if (left.shards[s] != nullptr) continue;
      const device::ShardFile& file = left.files[s];
      std::string there(static_cast<size_t>(file.length), '\0');
      zero.blobs.read({file.name, file.length, file.checksum}, 0, std::as_writable_bytes(std::span(there)));
      EXPECT_EQ(there, bytes[s]) << "shard " << s;
      EXPECT_EQ(storage::blob_rank(file.name), static_cast<int>(s) * count / 8);
      EXPECT_TRUE(zero.blobs.open_file(file.name) != nullptr);
    }
    const auto names = zero.blobs.list();
    EXPECT_EQ(names.size(), static_cast<size_t>(8 - 8 / count));
    // What is removed is gone, and an open file stays readable.
    const storage::BlobReader reader =
        zero.blobs.open({left.files[7].name, left.files[7].length, left.files[7].checksum});
    std::vector<std::string> all;
    for (const auto& blob : names) all.push_back(blob.name);
    EXPECT_EQ(zero.blobs.remove_unnamed(all, [](const std::string&) { return false; }),
              static_cast<int64_t>(all.size()));
    EXPECT_TRUE(zero.blobs.list().empty());
    EXPECT_EQ(zero.blobs.open_file(left.files[7].name), nullptr);
    std::string still(static_cast<size_t>(left.files[7].length), '\0');
    reader.read(0, std::as_writable_bytes(std::span(still)));
    EXPECT_EQ(still, bytes[7]);
  }
}

TEST_F(LeftResults, are_arguments_of_the_next_run_where_they_are) {
  for (const bool becomes : {true, false}) {
    TempFolder folder;
    Ranks ranks(2, 5, 0, {kMuch, kMuch, folder.path()});
    RankZeroBlobs zero(folder.path(), ranks.coordinator->disks());
    device::RunOutcome outcome = run(ranks, request_of(program_));
    Left left = store(outcome, "arr_0");
    for (int i = 1; i < 4; ++i) {
      const std::string name = "arr_" + std::to_string(i);
      if (becomes) outcome.held->became(0, "arr_" + std::to_string(i - 1) + ".v1");
      outcome.held = nullptr;
      outcome = run(ranks, request_for(left, "arr_" + std::to_string(i - 1) + ".v1", zero.blobs));
      ASSERT_TRUE(outcome.ok());
      EXPECT_EQ(outcome.stats.argument_bytes_sent, 0) << "from memory, or from the rank's own disk";
      left = store(outcome, name);
    }
    EXPECT_EQ(loads_, 0);
    const auto bytes = expected(4);
    for (size_t s = 4; s < 8; ++s) {
      std::string there(bytes[s].size(), '\0');
      zero.blobs.read({left.files[s].name, left.files[s].length, left.files[s].checksum}, 0,
                      std::as_writable_bytes(std::span(there)));
      EXPECT_EQ(there, bytes[s]);
    }
  }
}

TEST_F(LeftResults, go_through_rank_0_to_who_has_them_not) {
  Ranks ranks(2, 5, 0, {kMuch, kMuch, folder_.path()});
  RankZeroBlobs zero(folder_.path(), ranks.coordinator->disks());
  device::RunOutcome outcome = run(ranks, request_of(program_));
  const Left left = store(outcome, "arr_0");
  outcome.held->became(0, "arr_0.v1");
  device::RunRequest request = request_for(left, "arr_0.v1", zero.blobs);
  request.devices = {4, 5, 6, 7, 0, 1, 2, 3};
  EXPECT_EQ(bytes_of(start(*ranks.coordinator, std::move(request))->wait()), expected(2));
  EXPECT_EQ(loads_, 4) << "what rank 1 wrote and rank 0 needs";
}

TEST_F(LeftResults, are_among_the_bytes_that_their_rank_plans_until_they_are_released) {
  const std::string text = std::string(kMesh8) + R"(
func.func @main(%a: tensor<8x65536xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> (tensor<8x65536xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) {
  %0 = stablehlo.add %a, %a : tensor<8x65536xf32>
  return %0 : tensor<8x65536xf32>
})";
  const compile::LoweredRef program = lowered(text);
  constexpr int64_t kOfRank = int64_t{1} << 20;  // of the argument, and of the result
  for (const bool results_wait : {false, true}) {
    Ranks ranks(2, 7, 5 * kOfRank / 2, {kMuch, kMuch, folder_.path()});
    device::RunRequest request = request_of(program);
    request.results_wait = results_wait;
    device::RunOutcome first = run(ranks, std::move(request));
    ASSERT_TRUE(first.ok());
    ASSERT_EQ(first.memory.bytes(), results_wait ? 0 : kOfRank) << "of rank 0";
    first.memory = {};
    const auto second = start_apart(ranks, request_of(program));
    if (!results_wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_FALSE(second->is_done()) << "rank 1 has no memory for it";
      first.held = nullptr;
    }
    EXPECT_TRUE(second->wait().ok());
  }
}

TEST_F(LeftResults, damaged_file_of_a_rank_ends_the_run_and_nothing_else) {
  Ranks ranks(2, 5, 0, {kMuch, kMuch, folder_.path()});
  RankZeroBlobs zero(folder_.path(), ranks.coordinator->disks());
  device::RunOutcome outcome = run(ranks, request_of(program_));
  const Left left = store(outcome, "arr_0");
  outcome.held = nullptr;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    if (entry.path().filename() == left.files[6].name) std::filesystem::resize_file(entry.path(), 10);
  }
  for (int i = 0; i < 2; ++i) {
    const auto failed = run(ranks, request_for(left, "arr_0.v1", zero.blobs));
    ASSERT_TRUE(failed.error.has_value());
    EXPECT_EQ(failed.error->code().word(), "storage_failed");
  }
  // Some of these are told that the shard is there when it could not be read already.
  std::vector<std::shared_ptr<Pending>> together;
  for (int i = 0; i < 50; ++i) together.push_back(start(*ranks.coordinator, request_for(left, "arr_0.v1", zero.blobs)));
  for (const auto& pending : together) {
    const auto failed = pending->wait();
    ASSERT_TRUE(failed.error.has_value());
    EXPECT_EQ(failed.error->code().word(), "storage_failed") << failed.error->detail();
  }
  EXPECT_TRUE(run(ranks, request_of(program_)).ok());
}

TEST_F(LeftResults, that_are_not_stored_are_dropped) {
  Ranks ranks(2, 5, 0, {kMuch, kMuch, folder_.path()});
  RankZeroBlobs zero(folder_.path(), ranks.coordinator->disks());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run(ranks, request_of(program_)).ok());
  EXPECT_TRUE(zero.blobs.list().empty());
  EXPECT_EQ(ranks.coordinator->kept_arrays()[1].bytes, 0);
}

/// Notes the folders whose names were made durable, in order.
class SyncedFolders final : public SystemWatcher {
 public:
  [[nodiscard]] bool fails(const std::string& /*operation*/) override { return false; }
  void synced_folder(const std::string& path) override { paths.push_back(path); }
  std::vector<std::string> paths;
};

TEST_F(LeftResults, folders_of_a_rank_are_durable_before_its_first_shard) {
  SyncedFolders synced;
  WatchedFileSystem files(synced);
  const std::string data = folder_.path() + "/new";
  const OwnDisk disk(files, data, 1, "mesh_1", [](const std::string& reason) { ADD_FAILURE() << reason; });
  const std::string own = data + "/ranks/1";
  // Each has the next in it; the last holds the mesh first, and blobs/ once that is made.
  EXPECT_EQ(synced.paths, (std::vector<std::string>{folder_.path(), data, data + "/ranks", own, own + "/blobs", own}));
}

/// Memory is out at the named operation.
class NoMemory final : public SystemWatcher {
 public:
  [[nodiscard]] bool fails(const std::string& operation) override {
    if (operation == at) throw std::bad_alloc();
    return false;
  }
  std::string at;
};

TEST_F(LeftResults, disk_of_a_rank_without_memory_has_not_failed) {
  NoMemory no_memory;
  WatchedFileSystem files(no_memory);
  std::promise<DiskAnswer> answer;
  {
    OwnDisk disk(files, folder_.path(), 1, "mesh_1", [](const std::string& reason) { ADD_FAILURE() << reason; });
    no_memory.at = "list";
    disk.serve(DiskRequest(), {}, [&](DiskAnswer out) { answer.set_value(std::move(out)); });
  }
  const DiskAnswer got = answer.get_future().get();
  ASSERT_TRUE(got.error.has_value());
  EXPECT_EQ(got.error->code().word(), "memory_full");
}

TEST_F(LeftResults, folder_of_another_mesh_is_refused) {
  { Ranks ranks(2, 1, 0, {kMuch, kMuch, folder_.path()}); }
  auto networks = make_fake_network(2);
  WorkerOptions options;
  options.threads = 1;
  options.environment = "test";
  options.data = folder_.path();
  options.fatal = [](const std::string&) {};
  Worker worker(*networks[1], options, new_pool());
  std::thread serving([&] { EXPECT_THROW(worker.serve(), core::Error); });
  CoordinatorOptions other;
  other.engine.device_count = 2;
  other.environment = "test";
  other.mesh = "mesh_2";
  try {
    Coordinator coordinator(*networks[0], other, new_pool());
    ADD_FAILURE() << "it starts";
  } catch (const core::Error& error) {
    EXPECT_NE(error.detail().find("has shards of mesh mesh_1"), std::string::npos) << error.detail();
  }
  serving.join();
  for (auto& network : networks) network->close();
}

}  // namespace
}  // namespace meshd::testing
