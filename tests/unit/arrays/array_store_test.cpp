// Arrays from begin to their end: bytes and rows, what a restart finds, whose they are, new versions and what stands
// against them, donation, and who is told when an array is ready or gone.
#include "service/arrays/array_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <numeric>
#include <random>
#include <thread>

#include "service/arrays/assembly.h"
#include "service/arrays/compare.h"
#include "service/arrays/regions/region.h"
#include "service/arrays/regions/row_major.h"
#include "service/arrays/reshard.h"
#include "tests/support/eventually.h"
#include "tests/support/fault_plan.h"
#include "tests/support/held_writer.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_file_system.h"

namespace meshd::testing {
namespace {

using arrays::ArrayRef;
using arrays::ArrayStore;
using arrays::ShardBuffers;
using storage::Durability;
using tensor::DType;

struct Wanted {
  tensor::Dims dims = {8};
  std::string principal = "ann";
  Durability durability = Durability::kDurable;
  bool sharded = true;  // over x=4 along dimension 0; false: whole on device 0
};

class Arrays : public ::testing::Test {
 protected:
  ArrayRef begin(const Wanted& wanted) { return begin(*arrays_, wanted); }
  static ArrayRef begin(ArrayStore& arrays, const Wanted& wanted) {
    arrays::NewArray out;
    out.principal = wanted.principal;
    out.type = {DType::kFloat32, wanted.dims};
    out.durability = wanted.durability;
    if (wanted.sharded) {
      const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 4}}, {0, 1, 2, 3}, {}});
      out.mesh_id = "mesh_1";
      out.sharding = sharding::fully_replicated("", mesh, out.type.rank());
      out.sharding->dims[0].axes.push_back({0, 1, 0});
    }
    return arrays.begin(out);
  }
  /// Shards with first, first + 1, ... in row-major order, two elements each: [8] over x=4.
  ShardBuffers counting(const ArrayRef& array, float first) {
    ShardBuffers shards = arrays_->allocate(*array);
    for (const tensor::BufferRef& shard : shards) {
      auto* values = reinterpret_cast<float*>(shard->data());
      for (int64_t i = 0; i < shard->size() / 4; ++i) values[i] = first++;
    }
    return shards;
  }
  static std::vector<float> values(const ShardBuffers& shards) {
    std::vector<float> out;
    for (const tensor::BufferRef& shard : shards) {
      const auto* values = reinterpret_cast<const float*>(shard->data());
      out.insert(out.end(), values, values + shard->size() / 4);
    }
    return out;
  }
  static std::vector<float> count_from(float first, size_t count = 8) {
    std::vector<float> out(count);
    std::iota(out.begin(), out.end(), first);
    return out;
  }
  ArrayRef published(float first, const Wanted& wanted = {}) {
    ArrayRef array = begin(wanted);
    arrays_->publish(array, counting(array, first));
    return array;
  }
  std::vector<std::pair<ArrayRef, arrays::NewShards>> both(const ArrayRef& first, float of_first,
                                                           const ArrayRef& second, float of_second) {
    std::vector<std::pair<ArrayRef, arrays::NewShards>> out;
    out.emplace_back(first, counting(first, of_first));
    out.emplace_back(second, counting(second, of_second));
    return out;
  }
  /// 0, 1, 2, ... row-major, as an upload writes them, in pieces that end anywhere.
  arrays::NewShards written(const ArrayRef& array, float first = 0) {
    arrays::NewShards shards = arrays_->new_shards(*array);
    arrays::ScatterWriter writer(array->layout(), 4, shards);
    const std::vector<float> values = count_from(first, static_cast<size_t>(array->byte_count() / 4));
    const auto bytes = std::as_bytes(std::span(values));
    constexpr size_t kPiece = 999'998;
    for (size_t at = 0; at < bytes.size(); at += kPiece)
      writer.write(bytes.subspan(at, std::min(kPiece, bytes.size() - at)));
    return shards;
  }
  std::vector<float> row_major(const ArrayRef& array) {
    arrays::GatherReader reader({array, &array->layout()}, 4, arrays_->shards(array),
                                arrays::full_slices(array->info().type.dims));
    std::vector<float> out(static_cast<size_t>(array->byte_count() / 4));
    reader.read(std::as_writable_bytes(std::span(out)));
    return out;
  }
  std::string why_not(const std::function<void()>& f) {
    try {
      f();
    } catch (const core::Error& error) {
      return std::string(error.code().word()) + ": " + error.detail();
    }
    return "";
  }
  /// A server that stops and starts again over the same folder.
  void restart() {
    arrays_.reset();
    store_.reset();
    store_ = std::make_unique<OpenStore>(folder_.path());
    open();
  }
  void open(int64_t memory_budget = int64_t{1} << 30, int64_t quota = int64_t{1} << 30) {
    arrays_ = std::make_unique<ArrayStore>(**store_, pool_, clock_, memory_budget, quota);
  }
  int64_t blob_count() {
    (*store_)->collect_garbage();
    int64_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path() + "/blobs"))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }
  void SetUp() override { open(); }
  void TearDown() override {
    if (arrays_ == nullptr) return;
    EXPECT_EQ(arrays_->loaded_bytes(), arrays_->usage().memory_bytes);
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  std::unique_ptr<OpenStore> store_ = std::make_unique<OpenStore>(folder_.path());
  std::shared_ptr<tensor::BufferPool> pool_ = tensor::BufferPool::create(0);
  core::SystemClock clock_;
  std::unique_ptr<ArrayStore> arrays_;
};

const auto kAnyVersion = [](int64_t) {};

TEST_F(Arrays, array_is_not_found_before_it_is_published) {
  const ArrayRef array = begin({});
  EXPECT_EQ(error_word([&] { arrays_->find(array->info().id, "ann"); }), "not_found");
  EXPECT_EQ(error_word([&] { arrays_->shards(array); }), "conflict");
  arrays_->publish(array, counting(array, 1));
  EXPECT_EQ(arrays_->find(array->info().id, "ann"), array);
  EXPECT_EQ(values(arrays_->shards(array)), count_from(1));
}

TEST_F(Arrays, names_are_bounded_but_for_those_of_accepted_jobs) {
  arrays::NewArray wanted;
  wanted.principal = "ann";
  wanted.type = {DType::kFloat32, {1}};
  wanted.name = std::string(ArrayStore::kLongestName, 'n');
  EXPECT_EQ(why_not([&] { arrays_->begin(wanted); }), "");
  wanted.name += "n";
  EXPECT_EQ(why_not([&] { arrays_->begin(wanted); }),
            "invalid_array: name: the name of an array has at most 1024 bytes, this one has 1025");
  EXPECT_EQ(why_not([&] { arrays_->begin(wanted, "arr_1"); }), "");
}

TEST_F(Arrays, arrays_on_one_mesh_share_it) {
  const ArrayRef first = published(1), second = published(1);
  EXPECT_EQ(first->info().sharding.mesh, second->info().sharding.mesh);
}

TEST_F(Arrays, another_principals_array_is_answered_like_one_that_does_not_exist) {
  const std::string id = published(1)->info().id;
  EXPECT_EQ(why_not([&] { arrays_->find(id, "bob"); }), "not_found: there is no array '" + id + "'");
  EXPECT_EQ(why_not([&] { arrays_->find("arr_1", "bob"); }), "not_found: there is no array 'arr_1'");
  EXPECT_TRUE(arrays_->list("bob", {}, {}).items.empty());
  EXPECT_EQ(arrays_->list("ann", {}, {}).items.size(), 1U);
}

TEST_F(Arrays, durable_array_has_the_same_bytes_layout_and_version_after_a_restart) {
  const std::string id = published(1)->info().id;
  arrays_->replace(arrays_->find(id, "ann"), counting(arrays_->find(id, "ann"), 100), kAnyVersion);
  restart();
  const ArrayRef array = arrays_->find(id, "ann");
  const auto snapshot = arrays_->snapshot(array);
  EXPECT_EQ(values(snapshot.shards), count_from(100));
  EXPECT_EQ(snapshot.version, 2);
  EXPECT_EQ(array->info().mesh_id, "mesh_1");
  EXPECT_EQ(array->layout().shard_count, 4);
  EXPECT_TRUE(array->info().committed);
  EXPECT_EQ(error_word([&] { arrays_->find(id, "bob"); }), "not_found");
}

TEST_F(Arrays, memory_array_is_lost_by_a_restart_and_says_so) {
  const std::string id = published(1, {.durability = Durability::kMemory})->info().id;
  EXPECT_EQ(blob_count(), 0);
  restart();
  const ArrayRef array = arrays_->find(id, "ann");
  EXPECT_EQ(error_word([&] { arrays_->shards(array); }), "array_lost");
  EXPECT_EQ(error_word([&] { arrays_->require_usable(array); }), "array_lost");
}

// Large durable arrays: from the stream to blobs, without memory.

constexpr int64_t kLarge = ArrayStore::kStreamedBytes / 4 + 7;  // elements; uneven over x=4

TEST_F(Arrays, large_durable_array_is_written_as_it_comes_and_loaded_when_it_is_read) {
  for (const Wanted& wanted :
       {Wanted{{kLarge}}, Wanted{{kLarge / 3, 3}}, Wanted{{kLarge}, "ann", Durability::kDurable, false}}) {
    const ArrayRef array = begin(wanted);
    arrays::NewShards shards = written(array);
    ASSERT_TRUE(shards.blobs.has_value());
    EXPECT_TRUE(shards.memory.empty());
    arrays_->publish(array, std::move(shards));
    EXPECT_EQ(arrays_->usage().memory_bytes, 0);
    EXPECT_EQ(pool_->stats().in_use_bytes, 0);
    EXPECT_EQ(row_major(array), count_from(0, static_cast<size_t>(array->byte_count() / 4)));
    restart();
    const ArrayRef found = arrays_->find(array->info().id, "ann");
    EXPECT_EQ(row_major(found), count_from(0, static_cast<size_t>(found->byte_count() / 4)));
    arrays_->remove(found);
  }
  EXPECT_EQ(blob_count(), 0);
}

TEST_F(Arrays, small_and_memory_arrays_are_taken_into_memory) {
  EXPECT_FALSE(written(begin({})).blobs.has_value());
  EXPECT_FALSE(written(begin({.dims = {kLarge}, .durability = Durability::kMemory})).blobs.has_value());
  const ArrayRef array = begin({});
  EXPECT_TRUE(arrays_->new_shards(*array, ArrayStore::kStreamedBytes).blobs.has_value())
      << "small ones of a request that holds much already";
}

TEST_F(Arrays, large_array_that_does_not_come_to_its_end_leaves_no_file) {
  const ArrayRef array = begin({.dims = {kLarge}});
  {
    const arrays::NewShards shards = written(array);
    EXPECT_EQ(blob_count(), 4) << "being written";
  }
  EXPECT_EQ(blob_count(), 0);
}

TEST_F(Arrays, new_version_of_a_large_array_is_written_as_it_comes) {
  const ArrayRef array = begin({.dims = {kLarge}});
  arrays_->publish(array, written(array));
  static_cast<void>(arrays_->shards(array));
  EXPECT_EQ(arrays_->replace(array, written(array, 5), kAnyVersion), 2);
  EXPECT_EQ(arrays_->usage().memory_bytes, 0) << "the old shards are no longer those of the array";
  EXPECT_EQ(row_major(array), count_from(5, kLarge));
  EXPECT_EQ(blob_count(), 4);
  restart();
  EXPECT_EQ(row_major(arrays_->find(array->info().id, "ann")), count_from(5, kLarge));
}

TEST_F(Arrays, large_array_that_is_not_in_memory_is_read_from_its_blobs) {
  const tensor::Dims dims = {kLarge / 5, 5};
  for (const bool columns : {false, true}) {
    arrays::NewArray wanted;
    wanted.principal = "ann";
    wanted.type = {DType::kFloat32, dims};
    wanted.mesh_id = "mesh_1";
    const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 4}}, {0, 1, 2, 3}, {}});
    wanted.sharding = sharding::fully_replicated("", mesh, 2);
    wanted.sharding->dims[columns ? 1 : 0].axes.push_back({0, 1, 0});
    ArrayRef array = arrays_->begin(wanted);
    arrays_->publish(array, written(array));
    for (const std::string_view text : {"", "7:90000:3,1:4", "-100000:,::2", "5,:"}) {
      const auto slices = arrays::parse_slices(text, dims);
      const ArrayStore::Opened opened = arrays_->open(array);
      ASSERT_FALSE(opened.shards.blobs.empty());
      arrays::GatherReader from_disk({array, &array->layout()}, 4, opened.shards, slices);
      EXPECT_EQ(from_disk.pieces(1000), std::nullopt);
      // Each row takes from four shards, or from one.
      EXPECT_EQ(from_disk.page_memory(), (columns && text != "5,:" ? 4 : 1) * storage::BlobStore::kPageBytes);
      arrays::GatherReader from_memory({array, &array->layout()}, 4, arrays_->snapshot(array).shards, slices);
      const int64_t middle = from_disk.total_bytes() / 2 + 1;
      for (const int64_t begin : {int64_t{0}, middle}) {
        from_disk.seek(begin);
        from_memory.seek(begin);
        std::vector<std::byte> a(100'001), b(a.size());
        size_t got = 0;
        do {
          got = from_memory.read(a);
          ASSERT_EQ(from_disk.read(b), got) << text;
          ASSERT_EQ(std::memcmp(a.data(), b.data(), got), 0) << text;
        } while (got > 0);
      }
      open();  // forgets what is in memory
      array = arrays_->find(array->info().id, "ann");
    }
    ASSERT_EQ(arrays_->usage().memory_bytes, 0);
  }
}

TEST_F(Arrays, opened_version_stays_readable_and_a_damaged_page_is_not_given) {
  const ArrayRef array = begin({.dims = {kLarge}});
  arrays_->publish(array, written(array));
  const auto read_all = [&](const ArrayStore::Opened& opened) {
    arrays::GatherReader reader({array, &array->layout()}, 4, opened.shards,
                                arrays::full_slices(array->info().type.dims));
    std::vector<float> out(static_cast<size_t>(array->byte_count() / 4));
    reader.read(std::as_writable_bytes(std::span(out)));
    return out;
  };
  const ArrayStore::Opened first = arrays_->open(array);
  EXPECT_EQ(arrays_->replace(array, written(array, 9), kAnyVersion), 2);
  EXPECT_EQ(blob_count(), 4) << "those of the first version are gone";
  EXPECT_EQ(read_all(first), count_from(0, kLarge));
  EXPECT_EQ(read_all(arrays_->open_at(array, 2)), count_from(9, kLarge));
  EXPECT_EQ(error_word([&] { arrays_->open_at(array, 1); }), "deleted_or_donated");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path() + "/blobs")) {
    if (entry.path().extension() != ".s2") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(700'000);
    file.put('!');
  }
  EXPECT_EQ(error_word([&] { read_all(arrays_->open(array)); }), "storage_failed");
}

TEST_F(Arrays, moved_array_that_a_client_reads_is_in_memory_once) {
  for (const Durability durability : {Durability::kMemory, Durability::kDurable}) {
    const ArrayRef array = published(1, {.durability = durability});
    const int64_t before = arrays_->loaded_bytes();
    ASSERT_GT(before, 0);
    std::optional<ArrayStore::Opened> slow = arrays_->open(array, ArrayStore::ReadBy::kClient);
    const ArrayRef moved = arrays_->move(array);
    EXPECT_EQ(arrays_->loaded_bytes(), before) << "its client and the new array have the same memory";
    arrays_->remove(moved);
    EXPECT_EQ(arrays_->loaded_bytes(), before) << "the client has it";
    slow.reset();
    EXPECT_EQ(arrays_->loaded_bytes(), 0);
  }
}

TEST_F(Arrays, what_clients_read_of_arrays_that_left_memory_is_counted_and_bounded) {
  constexpr int64_t kBytes = 512 << 10;
  open(2 * kBytes);
  const Wanted wanted{.dims = {kBytes / 4}, .durability = Durability::kMemory};
  std::vector<ArrayStore::Opened> slow;
  const auto read = [&](const ArrayRef& array) { slow.push_back(arrays_->open(array, ArrayStore::ReadBy::kClient)); };
  for (const float first : {1.F, 2.F}) {
    const ArrayRef array = published(first, wanted);
    const int64_t before = arrays_->loaded_bytes();
    read(array);
    read(array);
    EXPECT_EQ(arrays_->loaded_bytes(), before) << "it is in memory once";
    arrays_->remove(array);
    EXPECT_EQ(arrays_->loaded_bytes(), before) << "two clients hold it";
  }
  const ArrayRef array = published(3, wanted);
  EXPECT_EQ(error_word([&] { read(array); }), "memory_full");
  EXPECT_EQ(row_major(array), count_from(3, kBytes / 4)) << "the server itself reads on";
  const ArrayRef small = published(4, {.durability = Durability::kMemory});
  read(small);
  EXPECT_EQ(values(slow.front().shards.memory), count_from(1, kBytes / 4));
  slow.clear();
  EXPECT_LE(arrays_->loaded_bytes(), 2 * kBytes);
  read(array);
  EXPECT_EQ(values(slow.front().shards.memory), count_from(3, kBytes / 4));
}

TEST_F(Arrays, durable_arrays_leave_memory_to_running_jobs) {
  arrays_ = std::make_unique<ArrayStore>(**store_, pool_, clock_, arrays::ArrayMemory{100, 200}, int64_t{1} << 30);
  const ArrayRef first = published(1), second = published(2), third = published(3);  // 32 bytes each
  EXPECT_EQ(arrays_->usage().memory_bytes, 96);
  {
    const arrays::LentMemory small(*arrays_, 100);
    EXPECT_EQ(arrays_->usage().memory_bytes, 96);
    const arrays::LentMemory large(*arrays_, 60);
    EXPECT_EQ(arrays_->usage().memory_bytes, 32) << "40 are left";
    EXPECT_EQ(values(arrays_->shards(first)), count_from(1));
    EXPECT_EQ(arrays_->usage().memory_bytes, 32) << "the one that is used takes the other's place";
    const arrays::LentMemory all(*arrays_, 1000);
    EXPECT_EQ(arrays_->usage().memory_bytes, 0);
  }
  for (const ArrayRef& array : {first, second, third}) static_cast<void>(arrays_->shards(array));
  EXPECT_EQ(arrays_->usage().memory_bytes, 96);
}

TEST_F(Arrays, small_and_large_arrays_are_published_together) {
  const ArrayRef small = begin({}), large = begin({.dims = {kLarge}}), last = begin({});
  std::vector<std::pair<ArrayRef, arrays::NewShards>> all;
  all.emplace_back(small, counting(small, 1));
  all.emplace_back(large, written(large));
  all.emplace_back(last, counting(last, 3));
  arrays_->publish(std::move(all));
  restart();
  EXPECT_EQ(row_major(arrays_->find(small->info().id, "ann")), count_from(1));
  EXPECT_EQ(row_major(arrays_->find(large->info().id, "ann")), count_from(0, kLarge));
  EXPECT_EQ(row_major(arrays_->find(last->info().id, "ann")), count_from(3));
}

TEST_F(Arrays, several_are_published_together_or_not_at_all) {
  const ArrayRef first = begin({}), second = begin({});
  arrays_->publish(both(first, 1, second, 20));
  EXPECT_EQ(arrays_->list("ann", {}, {}).items.size(), 2U);
  const ArrayRef third = begin({});
  // A second row of the same id breaks the transaction.
  EXPECT_NE(error_word([&] { arrays_->publish(both(third, 1, second, 1)); }), "");
  EXPECT_EQ(error_word([&] { arrays_->find(third->info().id, "ann"); }), "not_found");
  EXPECT_EQ(blob_count(), 8) << "what was written for the two is collected";
}

TEST_F(Arrays, array_over_the_quota_is_refused_before_it_has_memory) {
  open(int64_t{1} << 30, 64);
  static_cast<void>(begin({.dims = {16}}));
  EXPECT_EQ(error_word([&] { begin({.dims = {17}}); }), "quota_exceeded");
  EXPECT_EQ(error_word([&] { begin({.dims = {int64_t{1} << 62, 8}}); }), "invalid_array");
  EXPECT_EQ(pool_->stats().in_use_bytes, 0);
}

TEST_F(Arrays, arrays_used_longest_ago_leave_memory_and_are_read_from_disk) {
  open(70);  // two arrays of 32 bytes
  const ArrayRef first = published(1), second = published(20);
  static_cast<void>(arrays_->shards(first));
  const ArrayRef third = published(40);
  const auto in_memory = [](const ArrayRef& array) {
    return array->state().with([](const arrays::Array::State& state) { return !state.shards.empty(); });
  };
  EXPECT_TRUE(in_memory(first));
  EXPECT_FALSE(in_memory(second));
  EXPECT_TRUE(in_memory(third));
  EXPECT_EQ(values(arrays_->shards(second)), count_from(20));
  EXPECT_TRUE(in_memory(second));
  EXPECT_LE(arrays_->usage().memory_bytes, 70);
}

TEST_F(Arrays, as_many_bytes_are_counted_as_are_in_memory_whatever_is_done) {
  constexpr int kSteps = 400;
  open(8 * 32);
  std::mt19937 random(7);
  std::vector<ArrayRef> all;
  const auto any = [&]() -> ArrayRef& { return all[random() % all.size()]; };
  for (int step = 0; step < kSteps; ++step) {
    const auto first = static_cast<float>(step);
    switch (all.empty() ? 0 : random() % 7) {
      case 0:
      case 1:
        all.push_back(published(first, {.durability = random() % 2 == 0 ? Durability::kDurable : Durability::kMemory}));
        break;
      case 2:
        arrays_->replace(any(), counting(all.back(), first), kAnyVersion);
        break;
      case 3: {
        const ArrayRef array = any();
        arrays_->reserve({array}, "job");
        try {
          auto taken = arrays_->take(array, "job");
          if (random() % 2 == 0) arrays_->give_back(array, std::move(taken));
        } catch (const core::Error&) {
          // A memory array that a job has taken before and not given back has nothing to take.
        }
        arrays_->release({array}, "job");
        break;
      }
      case 4: {
        ArrayRef& array = any();
        arrays_->remove(array);
        array = all.back();
        all.pop_back();
        break;
      }
      default:
        try {
          static_cast<void>(arrays_->shards(any()));
        } catch (const core::Error&) {
          // The same.
        }
    }
    ASSERT_EQ(arrays_->loaded_bytes(), arrays_->usage().memory_bytes) << step;
    ASSERT_LE(arrays_->loaded_bytes(), 8 * 32) << step;
  }
}

/// Three memory arrays where there is room for two: blobs of the first are on disk.
class SpilledArrays : public Arrays {
 protected:
  void SetUp() override {
    open(70);  // two arrays of 32 bytes
    for (const float first : {1.F, 20.F, 40.F}) all_.push_back(published(first, kInMemory));
  }
  int64_t bytes_in_memory() { return arrays_->usage().memory_bytes; }

  const Wanted kInMemory{.durability = Durability::kMemory};
  std::vector<ArrayRef> all_;
};

TEST_F(SpilledArrays, leave_memory_and_come_back) {
  EXPECT_EQ(bytes_in_memory(), 64);
  EXPECT_EQ(blob_count(), 4);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(values(arrays_->shards(all_[0])), count_from(1));
    EXPECT_EQ(values(arrays_->shards(all_[1])), count_from(20));
    EXPECT_EQ(values(arrays_->shards(all_[2])), count_from(40));
    EXPECT_EQ(bytes_in_memory(), 64);
  }
  EXPECT_EQ(blob_count(), 12) << "each is written once";
}

TEST_F(SpilledArrays, durable_ones_leave_memory_first) {
  const ArrayRef durable = published(60);
  EXPECT_EQ(blob_count(), 12) << "a second one has left for it";
  static_cast<void>(published(80, kInMemory));
  EXPECT_EQ(blob_count(), 12);
  EXPECT_EQ(values(arrays_->shards(durable)), count_from(60));
}

TEST_F(SpilledArrays, blobs_end_with_the_version) {
  EXPECT_EQ(arrays_->replace(all_[0], counting(all_[0], 7), kAnyVersion), 2);
  EXPECT_EQ(values(arrays_->shards(all_[0])), count_from(7));
  arrays_->remove(all_[0]);
  arrays_->remove(all_[1]);
  arrays_->remove(all_[2]);
  EXPECT_EQ(blob_count(), 0);
}

TEST_F(SpilledArrays, are_donated_and_given_back_by_a_job_that_failed) {
  arrays_->reserve({all_[0]}, "job_1");
  ShardBuffers taken = arrays_->take(all_[0], "job_1");
  EXPECT_EQ(values(taken), count_from(1));
  std::memset(taken[0]->data(), 0, 8);
  taken.clear();
  arrays_->spoil({all_[0]}, "job_1");
  EXPECT_EQ(values(arrays_->shards(all_[0])), count_from(1)) << "its blobs are as they were";
  arrays_->reserve({all_[0]}, "job_2");
  static_cast<void>(arrays_->take(all_[0], "job_2"));
  arrays_->consume({all_[0]}, "job_2");
  for (const ArrayRef& array : {all_[1], all_[2]}) arrays_->remove(array);
  EXPECT_EQ(blob_count(), 0);
}

TEST_F(SpilledArrays, are_lost_with_their_files_by_a_restart) {
  const std::string id = all_[0]->info().id;
  all_.clear();
  (*store_)->catalog().write([](storage::Transaction&) {});  // their rows are written without being waited for
  restart();
  EXPECT_EQ(error_word([&] { arrays_->shards(arrays_->find(id, "ann")); }), "array_lost");
  EXPECT_EQ(blob_count(), 0);
}

// New versions.

TEST_F(Arrays, files_that_a_run_refers_to_stay_until_it_has_read_them) {
  const std::string id = published(1)->info().id;
  restart();
  const ArrayRef array = arrays_->find(id, "ann");
  ArrayStore::Referred referred = arrays_->refer(array);
  ASSERT_EQ(std::count(referred.shards.begin(), referred.shards.end(), nullptr), 4) << "they are on the disk alone";
  arrays_->replace(array, counting(array, 50), kAnyVersion);
  EXPECT_EQ(blob_count(), 8);
  ShardBuffers loaded;
  for (int64_t s = 0; s < 4; ++s)
    loaded.push_back(arrays_->load_shard(array, referred.version, referred.blobs[static_cast<size_t>(s)], s));
  EXPECT_EQ(values(loaded), count_from(1));
  EXPECT_EQ(values(arrays_->shards(array)), count_from(50));
  referred = {};
  EXPECT_EQ(blob_count(), 4);
}

TEST_F(Arrays, new_version_leaves_the_old_shards_to_those_who_hold_them) {
  const ArrayRef array = published(1);
  const ShardBuffers old = arrays_->shards(array);
  EXPECT_EQ(arrays_->replace(array, counting(array, 50), kAnyVersion), 2);
  EXPECT_EQ(values(old), count_from(1));
  EXPECT_EQ(values(arrays_->shards(array)), count_from(50));
  EXPECT_EQ(blob_count(), 4) << "the old version's blobs are collected";
}

TEST_F(Arrays, update_writes_only_the_shards_that_change) {
  const ArrayRef array = published(1);
  const auto blobs = [&] {
    return array->state().with([](const arrays::Array::State& state) {
      std::vector<std::string> names;
      for (const storage::BlobRef& blob : state.blobs) names.push_back(blob.name);
      return names;
    });
  };
  const std::vector<std::string> before = blobs();
  const float five_six[] = {-5, -6};
  arrays_->update(array, std::vector<arrays::Slice>{{4, 6}}, arrays::memory_source(std::as_bytes(std::span(five_six))),
                  kAnyVersion);
  EXPECT_EQ(values(arrays_->shards(array)), (std::vector<float>{1, 2, 3, 4, -5, -6, 7, 8}));
  const std::vector<std::string> after = blobs();
  for (const size_t kept : {0U, 1U, 3U}) EXPECT_EQ(after[kept], before[kept]);
  EXPECT_NE(after[2], before[2]);
}

TEST_F(Arrays, version_that_the_caller_does_not_expect_is_not_replaced) {
  const ArrayRef array = published(1);
  arrays_->replace(array, counting(array, 50), kAnyVersion);
  const auto only_first = [](int64_t version) {
    if (version != 1) throw core::Error("precondition_failed", "the version is " + std::to_string(version));
  };
  EXPECT_EQ(error_word([&] { arrays_->replace(array, counting(array, 9), only_first); }), "precondition_failed");
  EXPECT_EQ(error_word([&] {
              arrays_->update(array, std::vector<arrays::Slice>{{0, 0}}, arrays::memory_source({}), only_first);
            }),
            "precondition_failed");
  EXPECT_EQ(arrays_->snapshot(array).version, 2);
  EXPECT_EQ(values(arrays_->shards(array)), count_from(50));
}

TEST_F(Arrays, array_that_an_accepted_job_has_still_to_read_keeps_its_version) {
  const ArrayRef array = published(1);
  arrays_->keep_for_job({array}, "ses_1");
  EXPECT_EQ(error_word([&] { arrays_->replace(array, counting(array, 9), kAnyVersion); }), "array_in_use");
  EXPECT_EQ(error_word([&] { arrays_->remove(array); }), "array_in_use");
  arrays_->job_has_read({array}, "ses_1");
  arrays_->replace(array, counting(array, 9), kAnyVersion);
  arrays_->remove(array);
  EXPECT_EQ(error_word([&] { arrays_->find(array->info().id, "ann"); }), "not_found");
  EXPECT_EQ(blob_count(), 0);
}

TEST_F(Arrays, job_keeps_all_of_its_arrays_or_none) {
  const ArrayRef stays = published(1), goes = published(1);
  arrays_->remove(goes);
  EXPECT_EQ(error_word([&] { arrays_->keep_for_job({stays, goes}, ""); }), "not_found");
  arrays_->remove(stays);
}

TEST_F(Arrays, snapshot_of_a_version_that_is_not_the_current_one_is_refused) {
  const ArrayRef array = published(1);
  arrays_->replace(array, counting(array, 50), kAnyVersion);
  EXPECT_EQ(error_word([&] { arrays_->open_at(array, 1); }), "deleted_or_donated");
  EXPECT_EQ(values(arrays_->open_at(array, 2).shards.memory), count_from(50));
  EXPECT_EQ(error_word([&] { arrays_->open_at(array, 3); }), "not_found");
}

TEST_F(Arrays, reshard_cuts_the_same_values_otherwise) {
  const ArrayRef array = published(1);
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"y", 2}}, {0, 1}, {}});
  arrays::ReshardTarget target{"mesh_2", sharding::fully_replicated("", mesh, 1), "halves", {}};
  target.sharding.dims[0].axes.push_back({0, 1, 0});
  const ArrayRef made = arrays::reshard(*arrays_, array, target, "ann");
  EXPECT_EQ(made->layout().shard_dims, tensor::Dims{4});
  EXPECT_EQ(values(arrays_->shards(made)), count_from(1));
  EXPECT_EQ(made->info().name, "halves");
  EXPECT_EQ(values(arrays_->shards(array)), count_from(1));
}

TEST_F(Arrays, reshard_to_an_abstract_mesh_of_other_axes_is_refused) {
  const ArrayRef array = published(1);
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"y", 2}}, {}, {}});
  const arrays::ReshardTarget target{"mesh_2", sharding::fully_replicated("", mesh, 1), {}, {}};
  EXPECT_EQ(error_word([&] { arrays::reshard(*arrays_, array, target, "ann"); }), "invalid_array");
}

TEST_F(Arrays, arrays_that_are_cut_otherwise_are_alike_in_bits_and_not_in_placement) {
  const ArrayRef array = published(1), other = published(2);
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"y", 2}}, {0, 1}, {}});
  const ArrayRef whole =
      arrays::reshard(*arrays_, array, {"mesh_2", sharding::fully_replicated("", mesh, 1), {}, {}}, "ann");
  EXPECT_TRUE(arrays::are_alike(*arrays_, array, whole, arrays::Likeness::kBits));
  EXPECT_FALSE(arrays::are_alike(*arrays_, array, whole, arrays::Likeness::kPlacement));
  EXPECT_FALSE(arrays::are_alike(*arrays_, array, other, arrays::Likeness::kBits));
  EXPECT_TRUE(arrays::are_alike(*arrays_, array, other, arrays::Likeness::kPlacement));
}

TEST_F(Arrays, values_in_fortran_order_are_turned_from_the_disk) {
  std::mt19937 random(3);
  const ArrayRef array = begin({});
  for (const tensor::Dims& dims : {tensor::Dims{}, {7}, {1, 5}, {6, 4}, {3, 5, 7}, {1, 4, 1, 6}, {2, 3, 4, 5}}) {
    const int64_t count = tensor::element_count(dims);
    std::vector<float> columns(static_cast<size_t>(count));
    std::vector<float> rows(columns.size());
    std::iota(columns.begin(), columns.end(), 0.0F);
    const tensor::TensorType type{DType::kFloat32, dims};
    arrays::to_row_major(type, reinterpret_cast<const std::byte*>(columns.data()),
                         reinterpret_cast<std::byte*>(rows.data()));
    arrays::Spool spool = arrays_->spool(*array, count * 4);
    const auto bytes = std::as_bytes(std::span(columns));
    for (size_t at = 0; at < bytes.size(); at += 5)
      spool.write(bytes.subspan(at, std::min<size_t>(5, bytes.size() - at)));
    EXPECT_EQ(spool.remaining(), 0);
    const auto blob = spool.seal();
    for (const int64_t most : {1, 4, 8, 12, 20, 100, 10'000}) {
      std::vector<std::byte> found;
      arrays::write_row_major(
          type, blob,
          [&](std::span<const std::byte> piece) {
            EXPECT_LE(static_cast<int64_t>(piece.size()), std::max<int64_t>(most, 4));
            found.insert(found.end(), piece.begin(), piece.end());
          },
          most);
      ASSERT_EQ(found.size(), rows.size() * 4);
      EXPECT_EQ(0, std::memcmp(found.data(), rows.data(), found.size())) << dims.size() << " " << most;
    }
  }
  (*store_)->collect_garbage();
  EXPECT_TRUE((*store_)->blobs().list().empty()) << "what was spooled is gone";
}

TEST_F(Arrays, slices_of_large_arrays_are_written_from_disk_to_disk) {
  constexpr int64_t kCount = 4 << 20;  // 16 MiB, in four shards
  const ArrayRef array = begin({.dims = {kCount}});
  arrays_->publish(array, written(array));
  EXPECT_FALSE(ArrayStore::is_loaded(array));
  std::vector<float> expected = count_from(0, kCount);
  const auto put = [&](const arrays::Slice& slice) {
    std::vector<float> values = count_from(1e6F, static_cast<size_t>(slice.count()));
    for (int64_t i = 0; i < slice.count(); ++i)
      expected[static_cast<size_t>(slice.start + i * slice.step)] = values[static_cast<size_t>(i)];
    return arrays_->update(array, std::span(&slice, 1), arrays::memory_source(std::as_bytes(std::span(values))),
                           kAnyVersion);
  };
  const auto names = [&] {
    std::vector<std::string> out;
    array->state().with([&](const arrays::Array::State& state) {
      for (const storage::BlobRef& blob : state.blobs) out.push_back(blob.name);
    });
    return out;
  };
  const auto before = names();
  EXPECT_EQ(put({100, (2 << 20) + 5, 3}), 2);
  EXPECT_FALSE(ArrayStore::is_loaded(array)) << "nothing of it came into memory";
  EXPECT_NE(names()[0], before[0]);
  EXPECT_NE(names()[2], before[2]);
  EXPECT_EQ(names()[3], before[3]) << "a shard that has nothing of it stays";
  EXPECT_EQ(put({5, 6, 1}), 3);
  EXPECT_EQ(put({5, 5, 1}), 4) << "a slice of nothing";
  EXPECT_FALSE(ArrayStore::is_loaded(array));
  EXPECT_EQ(row_major(array), expected);
  EXPECT_TRUE(ArrayStore::is_loaded(array));
  EXPECT_EQ(put({7, 9, 1}), 5);
  EXPECT_TRUE(ArrayStore::is_loaded(array)) << "little of what is in memory is copied there";
  EXPECT_EQ(put({0, kCount, 2}), 6);
  EXPECT_EQ(row_major(array), expected);
  restart();
  EXPECT_EQ(row_major(arrays_->find(array->info().id, "ann")), expected);
}

TEST_F(Arrays, a_durable_array_moves_without_a_byte_read_or_written) {
  const ArrayRef array = begin({.dims = {4 << 20}});
  arrays_->publish(array, written(array, 3));
  const auto files = [&] {
    std::set<std::string> out;
    for (const storage::StoredBlob& blob : (*store_)->blobs().list()) out.insert(blob.name);
    return out;
  };
  const auto before = files();
  const ArrayRef moved = arrays_->move(array);
  EXPECT_FALSE(ArrayStore::is_loaded(moved));
  EXPECT_EQ(arrays_->totals_of("ann").arrays, 1);
  (*store_)->collect_garbage();
  EXPECT_EQ(files(), before);
  restart();
  EXPECT_EQ(files(), before);
  const ArrayRef found = arrays_->find(moved->info().id, "ann");
  EXPECT_EQ(row_major(found), count_from(3, 4 << 20));
  const ArrayRef again = arrays_->move(found);
  EXPECT_TRUE(ArrayStore::is_loaded(again)) << "what was in memory stays there";
  arrays_->remove(again);
  (*store_)->collect_garbage();
  EXPECT_TRUE(files().empty());
}

TEST_F(Arrays, large_durable_arrays_are_resharded_on_the_disk) {
  const ArrayRef array = begin({.dims = {9 << 20}});  // 36 MiB
  arrays_->publish(array, written(array));
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"y", 3}}, {0, 1, 2}, {}});
  auto sharding = sharding::fully_replicated("", mesh, 1);
  sharding.dims[0].axes.push_back({0, 1, 0});
  const ArrayRef made = arrays::reshard(*arrays_, array, {"mesh_2", sharding, {}, {}}, "ann");
  EXPECT_FALSE(ArrayStore::is_loaded(array));
  EXPECT_FALSE(ArrayStore::is_loaded(made));
  EXPECT_EQ(made->layout().shard_count, 3);
  EXPECT_EQ(row_major(made), row_major(array));
}

class Updates : public Arrays {
 protected:
  /// What a job's commit does.
  void commit(ArrayStore::PreparedUpdates& prepared) {
    (*store_)->catalog().write(prepared.rows);
    prepared.committed();
  }
};

TEST_F(Updates, jobs_result_becomes_the_next_version_also_after_a_restart) {
  const ArrayRef array = published(1);
  {
    auto prepared = arrays_->prepare_updates({{array, 1, counting(array, 70)}}, {}, "");
    EXPECT_EQ(values(arrays_->shards(array)), count_from(1)) << "not visible before the commit";
    commit(prepared);
  }
  EXPECT_EQ(values(arrays_->shards(array)), count_from(70));
  const std::string id = array->info().id;
  restart();
  EXPECT_EQ(values(arrays_->snapshot(arrays_->find(id, "ann")).shards), count_from(70));
  EXPECT_EQ(arrays_->snapshot(arrays_->find(id, "ann")).version, 2);
}

TEST_F(Arrays, memory_array_whose_move_fails_is_as_it_was) {
  const ArrayRef array = published(1, {.durability = Durability::kMemory});
  storage::IdempotencyRow key{"ann", "moveArray", "k", "f", "", clock_.wall()};
  (*store_)->catalog().write([&](storage::Transaction& t) { t.claim_key(key); });
  EXPECT_EQ(error_word([&] { arrays_->move(array, key); }), "idempotency_in_progress");
  EXPECT_EQ(values(arrays_->shards(array)), count_from(1));
  EXPECT_EQ(values(arrays_->shards(arrays_->move(array))), count_from(1));
}

TEST_F(Updates, version_that_is_durable_is_waited_for_until_it_is_in_memory) {
  const ArrayRef array = published(1);
  auto prepared = arrays_->prepare_updates({{array, 1, counting(array, 70)}}, {}, "");
  EXPECT_EQ(arrays_->find(array->info().id, "ann")->version(), 1) << "not durable";
  (*store_)->catalog().write(prepared.rows);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    prepared.committed();
  });
  EXPECT_EQ(arrays_->find(array->info().id, "ann")->version(), 2);
  writer.join();
}

TEST_F(Updates, version_that_somebody_else_replaced_is_a_conflict) {
  const ArrayRef array = published(1);
  arrays_->replace(array, counting(array, 50), kAnyVersion);
  EXPECT_EQ(why_not([&] {
              arrays_->prepare_updates({{array, 1, counting(array, 70)}}, {}, "");
            }),
            "conflict: array '" + array->info().id +
                "' has version 2 by now; the job has read version 1, so its update would lose another; run it again");
  EXPECT_EQ(values(arrays_->shards(array)), count_from(50));
}

TEST_F(Updates, abandoned_update_leaves_the_array_as_it_was) {
  const ArrayRef array = published(1);
  {
    auto prepared = arrays_->prepare_updates({{array, 1, counting(array, 70)}}, {}, "");
    EXPECT_EQ(error_word([&] { arrays_->reserve({array}, "job_9"); }), "array_in_use")
        << "it is just being given new data";
  }
  EXPECT_EQ(arrays_->snapshot(array).version, 1);
  EXPECT_EQ(values(arrays_->shards(array)), count_from(1));
  EXPECT_EQ(blob_count(), 4);
  arrays_->reserve({array}, "job_9");
}

TEST_F(Updates, readers_of_the_same_session_do_not_stand_against_an_update_others_do) {
  const ArrayRef array = published(1);
  arrays_->keep_for_job({array}, "ses_1");
  {
    auto prepared = arrays_->prepare_updates({{array, 1, counting(array, 70)}}, {array}, "ses_1");
    commit(prepared);
  }
  EXPECT_EQ(arrays_->snapshot(array).version, 2);
  EXPECT_EQ(error_word([&] {
              arrays_->prepare_updates({{array, 2, counting(array, 80)}}, {}, "ses_2");
            }),
            "array_in_use");
  arrays_->job_has_read({array}, "ses_1");
  auto prepared = arrays_->prepare_updates({{array, 2, counting(array, 80)}}, {}, "ses_2");
  commit(prepared);
  EXPECT_EQ(arrays_->snapshot(array).version, 3);
}

TEST_F(Updates, memory_array_gets_its_next_version_without_a_blob) {
  const ArrayRef array = published(1, {.durability = Durability::kMemory});
  auto prepared = arrays_->prepare_updates({{array, 1, counting(array, 70)}}, {}, "");
  commit(prepared);
  EXPECT_EQ(blob_count(), 0);
  EXPECT_EQ(values(arrays_->shards(array)), count_from(70));
}

// Writes that fail after their blobs are on the disk. blob_count() collects garbage without a restart.

class FailedWrites : public Updates {
 protected:
  /// Deletes the row beneath the array: the next transaction about it throws.
  void lose_row(const ArrayRef& array) {
    (*store_)->catalog().write([&](storage::Transaction& transaction) { transaction.delete_array(array->info().id); });
  }
};

TEST_F(FailedWrites, published_array_whose_row_exists_already_leaves_no_blob) {
  const ArrayRef array = published(1);
  EXPECT_EQ(error_word([&] { arrays_->publish(array, counting(array, 50)); }), "conflict");
  EXPECT_EQ(blob_count(), 4);
  EXPECT_EQ(values(arrays_->shards(array)), count_from(1)) << "as it was";
}

TEST_F(FailedWrites, prepared_arrays_of_a_job_that_does_not_commit_leave_no_blob) {
  const ArrayRef first = begin({}), second = begin({});
  {
    auto prepared = arrays_->prepare(both(first, 1, second, 9));
    EXPECT_EQ(blob_count(), 8) << "not collected while the job may commit";
    EXPECT_EQ(error_word([&] {
                (*store_)->catalog().write([&](storage::Transaction& transaction) {
                  prepared.rows(transaction);
                  throw core::Error("conflict", "the job fails");
                });
              }),
              "conflict");
  }
  EXPECT_EQ(blob_count(), 0);
  EXPECT_EQ(error_word([&] { arrays_->find(first->info().id, "ann"); }), "not_found");
  arrays_->publish(first, counting(first, 3));
  EXPECT_EQ(values(arrays_->shards(first)), count_from(3)) << "may be tried again";
}

TEST_F(FailedWrites, new_versions_and_moves_leave_no_blob) {
  const ArrayRef array = published(1);
  lose_row(array);
  const float value = 9;
  const arrays::Slice last{7, 8, 1};
  EXPECT_EQ(error_word([&] { arrays_->replace(array, counting(array, 50), kAnyVersion); }), "not_found");
  EXPECT_EQ(error_word([&] {
              arrays_->update(array, std::span(&last, 1), arrays::memory_source(std::as_bytes(std::span(&value, 1))),
                              kAnyVersion);
            }),
            "not_found");
  EXPECT_EQ(error_word([&] { arrays_->move(array); }), "not_found");
  EXPECT_EQ(blob_count(), 0);
}

TEST_F(FailedWrites, updates_of_a_job_that_does_not_commit_leave_no_blob) {
  const ArrayRef array = published(1);
  {
    auto prepared = arrays_->prepare_updates({{array, 1, counting(array, 70)}}, {}, "");
    lose_row(array);
    EXPECT_EQ(error_word([&] { commit(prepared); }), "not_found");
    EXPECT_EQ(blob_count(), 4);
  }
  EXPECT_EQ(blob_count(), 0);
  EXPECT_EQ(array->version(), 1);
}

TEST_F(FailedWrites, blobs_of_which_only_some_got_their_names_are_removed) {
  FaultPlan faults;
  WatchedFileSystem files(faults);
  TempFolder folder{TempFolder::Where::kMemory};
  storage::Store store({folder.path(), {}, [](const std::string& reason) { FAIL() << reason; }}, files, clock_);
  {
    storage::PendingBlobs blobs(store);
    for (const char* name : {"arr_1.s0", "arr_1.s1", "arr_1.s2"}) blobs.add(name, as_bytes("abc"));
    faults.arm(3, FaultReach::kOnce, FaultKind::kNoSpace, "rename");
    EXPECT_EQ(error_word([&] { static_cast<void>(blobs.sync()); }), "disk_full");
    EXPECT_TRUE(faults.fired());
    EXPECT_EQ(store.blobs().list().size(), 2U);
  }
  EXPECT_EQ(store.collect_garbage(), 2);
  EXPECT_TRUE(store.blobs().list().empty());
}

TEST_F(FailedWrites, kept_blobs_are_not_reported_and_a_moved_owner_abandons_once) {
  const auto write = [&](const char* name) {
    storage::PendingBlobs blobs(**store_);
    blobs.add(name, as_bytes("abc"));
    static_cast<void>(blobs.sync());
    return blobs;
  };
  write("arr_1.s0").keep();
  EXPECT_EQ((*store_)->collect_garbage(), 0) << "its rows would keep it";
  {
    storage::PendingBlobs first = write("arr_2.s0");
    const storage::PendingBlobs second = std::move(first);
    EXPECT_EQ((*store_)->collect_garbage(), 0);
  }
  EXPECT_EQ((*store_)->collect_garbage(), 1);
}

// Between a commit and the memory that follows it. What is written while the writer is held is one commit.

class Moments : public Arrays {
 protected:
  ~Moments() override { join(); }
  void write(std::function<void()> write) {
    writers_.emplace_back(std::move(write));
    const auto count = static_cast<int64_t>(writers_.size());
    ASSERT_TRUE(eventually([&] { return catalog_.counters().queued == count; }));
  }
  /// `look` runs behind the commit, before memory has followed what is written after this.
  void write_and_look(const std::function<void()>& look) {
    write([this, look] { catalog_.write_then([](storage::Transaction&) {}, look); });
  }
  void join() {
    for (std::thread& each : writers_) each.join();
    writers_.clear();
  }

  storage::Catalog& catalog_ = (*store_)->catalog();

 private:
  std::vector<std::thread> writers_;
};

TEST_F(Moments, array_is_read_until_what_takes_its_place_is_safe) {
  const ArrayRef old = published(1);
  const std::string id = old->info().id;
  {
    const HeldWriter held(catalog_);
    write([&] {
      const ArrayRef next = begin({});
      std::vector<std::pair<ArrayRef, arrays::NewShards>> one;
      one.emplace_back(next, counting(next, 2));
      arrays_->publish(std::move(one), {old});
    });
    EXPECT_EQ(arrays_->find(id, "ann"), old);
    EXPECT_EQ(values(arrays_->shards(old)), count_from(1));
    EXPECT_EQ(why_not([&] { arrays_->reserve({old}, "job_1"); }), "not_found: there is no array '" + id + "'");
  }
  join();
  EXPECT_EQ(why_not([&] { arrays_->find(id, "ann"); }), "not_found: there is no array '" + id + "'");
}

TEST_F(Moments, array_that_is_found_before_it_is_in_memory_is_the_one_that_will_be) {
  const ArrayRef made = begin({});
  std::future<ArrayRef> found;
  {
    const HeldWriter held(catalog_);
    write_and_look([&] {
      found = std::async(std::launch::async, [&] { return arrays_->find(made->info().id, "ann"); });
      static_cast<void>(found.wait_for(std::chrono::milliseconds(200)));  // another object would be found by then
    });
    write([&] { arrays_->publish(made, counting(made, 1)); });
  }
  join();
  EXPECT_EQ(found.get(), made);
  arrays_->remove(made);
  EXPECT_EQ(arrays_->totals_of("ann").arrays, 0);
}

TEST_F(Moments, moved_array_is_charged_whoever_finds_the_old_one_donated_first) {
  const ArrayRef from = published(1);
  ArrayRef to;
  {
    const HeldWriter held(catalog_);
    write_and_look([&] { static_cast<void>(arrays_->find(from->info().id, "ann")); });
    write([&] { to = arrays_->move(from); });
  }
  join();
  EXPECT_EQ(from->state().with([](const arrays::Array::State& state) { return state.state; }),
            storage::ArrayState::kDonated);
  EXPECT_EQ(arrays_->totals_of("ann").arrays, 1);
  EXPECT_EQ(arrays_->totals_of("ann").bytes, 32);
}

// Donation.

TEST_F(Arrays, array_is_reserved_by_one_job_at_a_time) {
  const ArrayRef first = published(1), second = published(1);
  arrays_->reserve({second}, "job_1");
  EXPECT_EQ(why_not([&] {
              arrays_->reserve({first, second}, "job_2");
            }),
            "array_in_use: array '" + second->info().id + "' is donated to job job_1 already");
  arrays_->reserve({first}, "job_3");
  EXPECT_EQ(why_not([&] { arrays_->reserve({second}, "job_1"); }),
            "array_in_use: array '" + second->info().id + "' is donated to this job twice");
  EXPECT_EQ(error_word([&] { arrays_->remove(second); }), "array_in_use");
  EXPECT_EQ(error_word([&] { arrays_->replace(second, counting(second, 9), kAnyVersion); }), "array_in_use");
  arrays_->release({second}, "job_2");
  EXPECT_EQ(error_word([&] { arrays_->remove(second); }), "array_in_use") << "job_2 does not have it";
  arrays_->release({second}, "job_1");
  arrays_->remove(second);
}

TEST_F(Arrays, consumed_array_is_donated_for_good) {
  const ArrayRef array = published(1);
  const std::string id = array->info().id;
  arrays_->reserve({array}, "job_1");
  (*store_)->catalog().write(arrays_->consume_rows({array}, "job_1"));
  arrays_->consume({array}, "job_1");
  EXPECT_EQ(error_word([&] { arrays_->shards(array); }), "deleted_or_donated");
  EXPECT_EQ(error_word([&] { arrays_->reserve({array}, "job_2"); }), "array_donated");
  EXPECT_EQ(arrays_->totals_of("ann").bytes, 0);
  EXPECT_EQ(blob_count(), 0);
  restart();
  EXPECT_EQ(error_word([&] { arrays_->shards(arrays_->find(id, "ann")); }), "deleted_or_donated");
}

TEST_F(Arrays, donated_arrays_leave_memory_and_are_read_from_their_rows) {
  ArrayRef on_disk = published(1), in_memory = published(20, {.durability = Durability::kMemory});
  const ArrayRef kept = published(40);
  const std::vector<std::string> ids{on_disk->info().id, in_memory->info().id};
  arrays_->reserve({on_disk, in_memory}, "job_1");
  (*store_)->catalog().write(arrays_->consume_rows({on_disk}, "job_1"));
  arrays_->consume({on_disk, in_memory}, "job_1");
  const std::string why = why_not([&] { arrays_->shards(on_disk); });
  const int64_t version = on_disk->version();
  std::vector<std::weak_ptr<arrays::Array>> left{on_disk, in_memory};
  on_disk.reset();
  in_memory.reset();
  EXPECT_EQ(arrays_->forget_donated(), 1) << "the other's row does not say so yet";
  EXPECT_TRUE(left[0].expired());
  EXPECT_FALSE(left[1].expired());
  (*store_)->catalog().write(arrays_->consume_rows({left[1].lock()}, "job_1"));
  EXPECT_EQ(arrays_->forget_donated(), 1);
  EXPECT_TRUE(left[1].expired());
  EXPECT_EQ(arrays_->forget_donated(), 0);
  for (const std::string& id : ids) {
    const ArrayRef found = arrays_->find(id, "ann");
    EXPECT_EQ(error_word([&] { arrays_->shards(found); }), "deleted_or_donated");
    EXPECT_EQ(error_word([&] { arrays_->reserve({found}, "job_2"); }), "array_donated");
  }
  EXPECT_EQ(why_not([&] { arrays_->shards(arrays_->find(ids[0], "ann")); }), why);
  EXPECT_EQ(arrays_->find(ids[0], "ann")->version(), version);
  EXPECT_EQ(arrays_->list("ann", {}, {}).items.size(), 3U);
  EXPECT_EQ(arrays_->usage().count, 1) << "to look at them does not bring them back";
  EXPECT_EQ(values(arrays_->shards(arrays_->find(kept->info().id, "ann"))), count_from(40));
  arrays_->remove(arrays_->find(ids[0], "ann"));
  EXPECT_EQ(error_word([&] { arrays_->find(ids[0], "ann"); }), "not_found");
}

TEST_F(Arrays, rows_of_gone_arrays_are_kept_by_number_and_age) {
  const core::WallTime start{};
  const auto donate = [&](const ArrayRef& array) {
    arrays_->reserve({array}, "job_1");
    (*store_)->catalog().write(arrays_->consume_rows({array}, "job_1"));
    arrays_->consume({array}, "job_1");
    return array->info().id;
  };
  const auto what_is = [&](const std::string& id) {
    return error_word([&] { arrays_->shards(arrays_->find(id, "ann")); });
  };
  const std::string ready = published(1)->info().id;
  const std::string lost = published(2, {.durability = Durability::kMemory})->info().id;
  const std::string first = donate(published(3)), second = donate(published(4));
  restart();
  EXPECT_EQ(arrays_->expire_gone({}, start), 0) << "any number, for ever";
  EXPECT_EQ(arrays_->expire_gone({.time = std::chrono::hours(1)}, start + std::chrono::minutes(59)), 0);
  const std::string third = donate(published(5));
  EXPECT_EQ(arrays_->expire_gone({.count = 3}, start + std::chrono::minutes(59)), 1);
  EXPECT_EQ(what_is(lost), "not_found") << "the oldest of those that are gone as long";
  EXPECT_EQ(what_is(first), "deleted_or_donated");
  EXPECT_EQ(arrays_->expire_gone({.time = std::chrono::hours(1)}, std::nullopt), 0) << "time is not believed";
  EXPECT_EQ(arrays_->expire_gone({.time = std::chrono::hours(1)}, start + std::chrono::minutes(61)), 2);
  EXPECT_EQ(what_is(first), "not_found");
  EXPECT_EQ(what_is(second), "not_found");
  EXPECT_EQ(what_is(third), "deleted_or_donated") << "it was met later";
  EXPECT_EQ(what_is(ready), "");
  EXPECT_EQ(arrays_->list("ann", {}, {}).items.size(), 2U);
  EXPECT_EQ(arrays_->expire_gone({.time = std::chrono::hours(1)}, start + std::chrono::hours(2)), 1);
  EXPECT_EQ(what_is(ready), "");
}

TEST_F(Arrays, donation_is_found_from_its_commit_on) {
  const ArrayRef array = published(1);
  const std::string id = array->info().id;
  arrays_->reserve({array}, "job_1");
  EXPECT_EQ(values(arrays_->shards(arrays_->find(id, "ann"))), count_from(1)) << "the job is still running";
  (*store_)->catalog().write(arrays_->consume_rows({array}, "job_1"));
  EXPECT_EQ(error_word([&] { arrays_->shards(arrays_->find(id, "ann")); }), "deleted_or_donated");
  const int64_t version = array->version();
  arrays_->consume({array}, "job_1");
  EXPECT_EQ(array->version(), version) << "it is donated once";
}

TEST_F(Arrays, taken_shards_are_out_of_the_array_until_they_are_given_back) {
  const ArrayRef on_disk = published(1), in_memory = published(20, {.durability = Durability::kMemory});
  arrays_->reserve({on_disk, in_memory}, "job_1");
  const ShardBuffers first = arrays_->take(on_disk, "job_1");
  const ShardBuffers second = arrays_->take(in_memory, "job_1");
  EXPECT_EQ(values(arrays_->shards(on_disk)), count_from(1)) << "read from disk, into other memory";
  EXPECT_NE(arrays_->shards(on_disk)[0], first[0]);
  EXPECT_EQ(error_word([&] { arrays_->shards(in_memory); }), "array_in_use");
  arrays_->give_back(in_memory, second);
  arrays_->release({on_disk, in_memory}, "job_1");
  EXPECT_EQ(values(arrays_->shards(in_memory)), count_from(20));
}

TEST_F(Arrays, spoilt_array_is_read_from_disk_or_lost) {
  const ArrayRef on_disk = published(1), in_memory = published(20, {.durability = Durability::kMemory});
  arrays_->reserve({on_disk, in_memory}, "job_1");
  for (const ArrayRef& array : {on_disk, in_memory}) std::memset(arrays_->take(array, "job_1")[0]->data(), 0xff, 8);
  arrays_->spoil({on_disk, in_memory}, "job_1");
  EXPECT_EQ(values(arrays_->shards(on_disk)), count_from(1));
  EXPECT_EQ(
      why_not([&] { arrays_->shards(in_memory); }),
      "array_lost: array '" + in_memory->info().id + "' is lost: job job_1 failed after it had overwritten the memory");
}

TEST_F(Arrays, moved_array_has_the_bytes_under_a_new_id_and_the_old_one_is_donated) {
  const ArrayRef from = published(1);
  const ArrayRef to = arrays_->move(from);
  EXPECT_NE(to->info().id, from->info().id);
  EXPECT_EQ(values(arrays_->shards(to)), count_from(1));
  EXPECT_EQ(error_word([&] { arrays_->shards(from); }), "deleted_or_donated");
  EXPECT_EQ(error_word([&] { arrays_->move(from); }), "array_donated");
  EXPECT_EQ(arrays_->totals_of("ann").bytes, 32) << "charged once";
  const std::string id = to->info().id;
  restart();
  EXPECT_EQ(values(arrays_->shards(arrays_->find(id, "ann"))), count_from(1));
}

// Parts, and those who wait.

class Parts : public Arrays {
 protected:
  void put(const ArrayRef& array, int64_t device, std::vector<float> values,
           arrays::Replicas replicas = arrays::Replicas::kOne) {
    const tensor::BufferRef bytes = pool_->allocate(static_cast<int64_t>(values.size() * sizeof(float)));
    std::memcpy(bytes->data(), values.data(), values.size() * sizeof(float));
    arrays::put_part(*arrays_, array, device, {DType::kFloat32, {static_cast<int64_t>(values.size())}}, bytes,
                     replicas);
  }
  struct Counted final : core::Waiter {
    void wait(core::SteadyTime) override {}
    void notify() override { ++count; }
    int count = 0;
  };
};

TEST_F(Parts, last_part_makes_the_array_durable_and_wakes_those_who_wait) {
  const ArrayRef array = begin({});
  arrays_->announce(array);
  const auto waiter = std::make_shared<Counted>();
  array->watchers().add(waiter);
  for (const int64_t device : {3, 1, 0}) put(array, device, {2.0F * static_cast<float>(device), 0});
  EXPECT_EQ(waiter->count, 0);
  EXPECT_EQ(error_word([&] { arrays_->require_usable(array); }), "conflict");
  put(array, 2, {4, 5});
  EXPECT_GE(waiter->count, 1);
  arrays_->require_usable(array);
  const std::string id = array->info().id;
  restart();
  EXPECT_EQ(values(arrays_->shards(arrays_->find(id, "ann"))), (std::vector<float>{0, 0, 2, 0, 4, 5, 6, 0}));
}

TEST_F(Parts, deleting_wakes_those_who_wait) {
  const ArrayRef array = begin({});
  arrays_->announce(array);
  const auto waiter = std::make_shared<Counted>();
  array->watchers().add(waiter);
  arrays_->remove(array);
  EXPECT_EQ(waiter->count, 1);
  EXPECT_EQ(error_word([&] { put(array, 0, {1, 2}); }), "not_found");
}

TEST_F(Parts, part_of_the_wrong_shape_or_device_is_refused_and_changes_nothing) {
  const ArrayRef array = begin({});
  arrays_->announce(array);
  EXPECT_EQ(error_word([&] { put(array, 0, {1, 2, 3}); }), "invalid_array");
  EXPECT_EQ(error_word([&] { put(array, 7, {1, 2}); }), "not_found");
  EXPECT_EQ(arrays_->usage().memory_bytes, 0);
  for (int64_t device = 0; device < 4; ++device) put(array, device, {1, 2});
  arrays_->require_usable(array);
}

TEST_F(Parts, replicas_have_to_be_equal) {
  const ArrayRef array = [&] {
    arrays::NewArray wanted;
    wanted.principal = "ann";
    wanted.type = {DType::kFloat32, {2}};
    const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 2}}, {5, 6}, {}});
    wanted.mesh_id = "mesh_1";
    wanted.sharding = sharding::fully_replicated("", mesh, 1);
    return arrays_->begin(wanted);
  }();
  arrays_->announce(array);
  put(array, 6, {1, 2});
  EXPECT_EQ(error_word([&] { put(array, 5, {1, 3}); }), "invalid_array");
  put(array, 5, {1, 2});
  EXPECT_EQ(values(arrays_->shards(array)), (std::vector<float>{1, 2}));
}

TEST_F(Parts, parts_without_devices_go_to_them_in_order) {
  std::vector<arrays::Part> parts(2);
  const std::vector<int64_t> devices = {6, 5};
  arrays::assign_devices(parts, devices, arrays::PartOrder::kLocal);
  EXPECT_EQ(parts[0].devices, std::vector<int64_t>{6});
  EXPECT_EQ(parts[1].devices, std::vector<int64_t>{5});
  parts[0].devices = {5};
  parts[1].devices = {6};
  EXPECT_EQ(error_word([&] { arrays::assign_devices(parts, devices, arrays::PartOrder::kLocal); }), "invalid_array");
  arrays::assign_devices(parts, devices, arrays::PartOrder::kKeyed);
  parts[1].devices = {5};
  EXPECT_EQ(error_word([&] { arrays::assign_devices(parts, devices, arrays::PartOrder::kKeyed); }), "invalid_array");
}

}  // namespace
}  // namespace meshd::testing
