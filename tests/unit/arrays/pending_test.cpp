// Arrays that wait for their parts: what they cost, when they end, how many there may be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "service/arrays/assembly.h"
#include "tests/support/manual_clock.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using arrays::ArrayRef;
using tensor::DType;

constexpr int64_t kHuge = int64_t{1} << 30;  // elements: 4 GiB of float32

class PendingArrays : public ::testing::Test {
 protected:
  PendingArrays()
      : store_(folder_.path()),
        pool_(tensor::BufferPool::create(0)),
        arrays_(*store_, pool_, clock_, int64_t{1} << 30, int64_t{1} << 40,
                {.timeout = std::chrono::seconds(60), .most_of_principal = 3, .most_bytes = 1000}) {}

  /// Cut over four devices along its first dimension.
  ArrayRef announce(tensor::Dims dims, const std::string& principal = "ann", const std::string& name = "") {
    arrays::NewArray wanted;
    wanted.principal = principal;
    wanted.name = name;
    wanted.type = {DType::kFloat32, std::move(dims)};
    wanted.mesh_id = "mesh_1";
    const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 4}}, {0, 1, 2, 3}, {}});
    wanted.sharding = sharding::fully_replicated("", mesh, wanted.type.rank());
    wanted.sharding->dims[0].axes.push_back({0, 1, 0});
    ArrayRef array = arrays_.begin(wanted);
    arrays_.announce(array);
    return array;
  }
  void put(const ArrayRef& array, int64_t device, const std::vector<float>& values) {
    const tensor::BufferRef bytes = pool_->allocate(static_cast<int64_t>(values.size() * sizeof(float)));
    std::memcpy(bytes->data(), values.data(), values.size() * sizeof(float));
    arrays::put_part(arrays_, array, device, {DType::kFloat32, {static_cast<int64_t>(values.size())}}, bytes);
  }
  std::vector<std::string> listed(const storage::PageRequest& page, std::string* next = nullptr,
                                  const storage::ArrayFilter& filter = {}) {
    const auto found = arrays_.list("ann", filter, page);
    if (next != nullptr) *next = found.next;
    std::vector<std::string> ids;
    for (const ArrayRef& array : found.items) ids.push_back(array->info().id);
    return ids;
  }
  std::string why_not_found(const ArrayRef& array, const std::string& principal = "ann") {
    try {
      arrays_.find(array->info().id, principal);
    } catch (const core::Error& error) {
      return std::string(error.code().word()) + ": " + error.detail();
    }
    return "found";
  }
  [[nodiscard]] int64_t memory() const { return pool_->stats().in_use_bytes; }

  TempFolder folder_{TempFolder::Where::kMemory};
  OpenStore store_;
  std::shared_ptr<tensor::BufferPool> pool_;
  ManualClock clock_;
  arrays::ArrayStore arrays_;
};

TEST_F(PendingArrays, array_without_parts_takes_no_memory_and_is_listed) {
  const ArrayRef array = announce({kHuge});
  EXPECT_EQ(memory(), 0);
  EXPECT_EQ(arrays_.usage().memory_bytes, 0);
  EXPECT_EQ(arrays_.usage().count, 1);
  EXPECT_EQ(listed({}), std::vector<std::string>{array->info().id});
  EXPECT_EQ(arrays_.find(array->info().id, "ann"), array);
}

TEST_F(PendingArrays, memory_grows_with_the_parts_that_come) {
  const ArrayRef array = announce({8});
  const int64_t before = memory();
  put(array, 2, {5, 6});
  const int64_t one = memory() - before;
  EXPECT_GT(one, 0);
  EXPECT_EQ(arrays_.usage().memory_bytes, 8);
  EXPECT_EQ(arrays_.pending().held_bytes(), 8);
  put(array, 0, {1, 2});
  EXPECT_EQ(memory() - before, 2 * one);
  put(array, 1, {3, 4});
  EXPECT_EQ(error_word([&] { arrays_.require_usable(array); }), "conflict");
  put(array, 3, {7, 8});
  arrays_.require_usable(array);
  EXPECT_EQ(arrays_.pending().held_bytes(), 0);
  EXPECT_EQ(listed({}), std::vector<std::string>{array->info().id});
  const auto shards = arrays_.shards(array);
  float last = 0;
  std::memcpy(&last, shards.at(3)->data() + sizeof(float), sizeof(float));
  EXPECT_EQ(last, 8);
  EXPECT_EQ(error_word([&] { put(array, 3, {7, 8}); }), "conflict");
}

TEST_F(PendingArrays, short_last_part_is_padded) {
  const ArrayRef array = announce({7});
  for (int64_t device = 0; device < 3; ++device) put(array, device, {1, 2});
  put(array, 3, {3});
  arrays_.require_usable(array);
  EXPECT_EQ(arrays_.shards(array).at(3)->size(), 8);
}

TEST_F(PendingArrays, array_that_gets_no_part_expires_and_says_so_to_its_principal) {
  const ArrayRef array = announce({8});
  put(array, 0, {1, 2});
  clock_.advance(std::chrono::seconds(59));
  EXPECT_EQ(why_not_found(array), "found");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(why_not_found(array),
            "not_found: array '" + array->info().id + "' was pending and got no part for 60 seconds; it is gone");
  EXPECT_EQ(why_not_found(array, "bob"), "not_found: there is no array '" + array->info().id + "'");
  EXPECT_EQ(memory(), 0);
  EXPECT_EQ(arrays_.pending().held_bytes(), 0);
  EXPECT_EQ(arrays_.usage().count, 0);
  EXPECT_TRUE(listed({}).empty());
  EXPECT_EQ(error_word([&] { put(array, 1, {3, 4}); }), "not_found");
}

TEST_F(PendingArrays, those_nobody_asks_about_expire_too) {
  announce({8});
  clock_.advance(std::chrono::seconds(60));
  arrays_.expire_pending();
  EXPECT_EQ(arrays_.usage().count, 0);
}

TEST_F(PendingArrays, each_part_begins_the_time_anew) {
  const ArrayRef array = announce({8});
  for (int64_t device = 0; device < 4; ++device) {
    clock_.advance(std::chrono::seconds(59));
    put(array, device, {1, 2});
  }
  arrays_.require_usable(array);
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(why_not_found(array), "found") << "a complete array does not expire";
}

TEST_F(PendingArrays, part_on_its_way_keeps_the_array) {
  const ArrayRef array = announce({8});
  {
    const arrays::PartOnItsWay slow(arrays_, array);
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(why_not_found(array), "found");
  }
  clock_.advance(std::chrono::seconds(59));
  EXPECT_EQ(why_not_found(array), "found");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_NE(why_not_found(array), "found");
}

TEST_F(PendingArrays, principal_may_have_so_many) {
  std::vector<ArrayRef> mine;
  for (int i = 0; i < 3; ++i) mine.push_back(announce({8}));
  EXPECT_EQ(error_word([&] { announce({8}); }), "limit_reached");
  announce({8}, "bob");
  arrays_.remove(mine[0]);
  announce({8});
  EXPECT_EQ(error_word([&] { announce({8}); }), "limit_reached");
  for (int64_t device = 0; device < 4; ++device) put(mine[1], device, {1, 2});
  announce({8});
  clock_.advance(std::chrono::seconds(60));
  for (int i = 0; i < 3; ++i) announce({8});
}

TEST_F(PendingArrays, parts_of_all_pending_arrays_are_bounded) {
  const ArrayRef first = announce({800});
  const std::vector<float> part(200);
  put(first, 0, part);
  const ArrayRef second = announce({800}, "bob");
  EXPECT_EQ(error_word([&] { put(second, 0, part); }), "overloaded");
  EXPECT_EQ(arrays_.pending().held_bytes(), 800);
  arrays_.remove(first);
  EXPECT_EQ(arrays_.pending().held_bytes(), 0);
  put(second, 0, part);
  EXPECT_EQ(arrays_.pending().held_bytes(), 800);
}

TEST_F(PendingArrays, pages_have_pending_and_complete_arrays_in_the_order_of_their_ids) {
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i) {
    const ArrayRef array = announce({8}, "ann", i < 3 ? "early" : "late");
    ids.push_back(array->info().id);
    if (i % 3 != 0) {
      for (int64_t device = 0; device < 4; ++device) put(array, device, {1, 2});
    }
  }
  std::sort(ids.begin(), ids.end());
  for (const int64_t limit : {1, 2, 3, 4, 6, 100}) {
    std::vector<std::string> seen;
    storage::PageRequest page{limit, ""};
    do {
      const auto items = listed(page, &page.cursor);
      EXPECT_LE(static_cast<int64_t>(items.size()), limit);
      seen.insert(seen.end(), items.begin(), items.end());
    } while (!page.cursor.empty());
    EXPECT_EQ(seen, ids) << "limit " << limit;
  }
  EXPECT_EQ(listed({}, nullptr, {.session = "", .name = "late"}).size(), 3U);
  EXPECT_TRUE(listed({}, nullptr, {.session = "ses_1", .name = ""}).empty());
}

}  // namespace
}  // namespace meshd::testing
