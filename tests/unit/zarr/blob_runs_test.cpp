// Runs of bytes of blobs, and the narrow chunks that are made of short ones.
#include "service/zarr/blob_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "service/zarr/chunked_array.h"
#include "tests/support/manual_clock.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_file_system.h"

namespace meshd::testing {
namespace {

class Calls final : public SystemWatcher {
 public:
  bool fails(const std::string& /*operation*/) override {
    ++count;
    return false;
  }
  std::atomic<int64_t> count{0};
};

class BlobRuns : public ::testing::Test {
 protected:
  TempFolder folder_{TempFolder::Where::kMemory};
  Calls calls_;
  WatchedFileSystem files_{calls_};
  ManualClock clock_;
  storage::Store store_{storage::StoreOptions{folder_.path(), {}, [](const std::string&) {}}, files_, clock_};
};

TEST_F(BlobRuns, give_and_take_what_single_calls_would) {
  constexpr int64_t kBytes = 100'000;
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    storage::PendingBlobs blobs(store_);
    std::vector<std::vector<std::byte>> expected(3, std::vector<std::byte>(kBytes));
    for (int i = 0; i < 3; ++i) blobs.begin(std::to_string(round) + "." + std::to_string(i), kBytes);
    for (const int64_t stride : {1, 2, 37, 700, 5000}) {
      zarr::BlobRuns runs(blobs, kBytes);
      const auto length = static_cast<int64_t>(random() % static_cast<unsigned>(stride)) + 1;
      for (int64_t at = random() % 100; at + length <= kBytes; at += stride) {
        const size_t blob = random() % 3;
        std::vector<std::byte> bytes(static_cast<size_t>(length), static_cast<std::byte>(random()));
        runs.write(blob, at, bytes);
        std::copy(bytes.begin(), bytes.end(), expected[blob].begin() + at);
        if (random() % 1000 == 0) at = static_cast<int64_t>(random() % kBytes);
      }
      runs.finish();
    }
    zarr::BlobRuns runs(blobs, kBytes);
    for (size_t blob = 0; blob < 3; ++blob) {
      std::vector<std::byte> got(kBytes);
      for (int64_t at = 0; at < kBytes; at += 10)
        runs.read(blob, at, std::span(got).subspan(static_cast<size_t>(at), 10));
      EXPECT_TRUE(got == expected[blob]) << round << " " << blob;
    }
  }
}

// A row of the array is four bytes, and each chunk has one of them: a call to the system for each would be a million.
TEST_F(BlobRuns, narrow_chunks_take_few_calls) {
  constexpr int64_t kRows = int64_t{1} << 20;
  arrays::ArrayStore arrays(store_, tensor::BufferPool::create(0), clock_, int64_t{1} << 30, int64_t{1} << 40,
                            {.timeout = std::chrono::seconds(60), .most_of_principal = 3, .most_bytes = 1 << 30});
  arrays::NewArray wanted;
  wanted.principal = "ann";
  wanted.type = {tensor::DType::kUint8, {kRows, 4}};
  for (const bool has_chunk : {false, true}) {
    calls_.count = 0;
    zarr::ChunkedArray array(arrays, arrays.begin(wanted), {{kRows, 1}, {std::byte{9}}, {}});
    std::vector<std::byte> column(kRows);
    for (size_t i = 0; i < column.size(); ++i) column[i] = static_cast<std::byte>(i * 7);
    if (has_chunk) {
      array.write(1, column);
      array.write(3, column);
      array.forget(3);
      std::vector<std::byte> got(kRows);
      EXPECT_TRUE(array.read(1, got));
      EXPECT_TRUE(got == column);
    }
    array.begin_commit();
    arrays.publish(array.array(), array.take_shards());
    array.end_commit();
    EXPECT_LT(calls_.count, 20'000);
    const auto shards = arrays.shards(array.array());
    const auto bytes = shards.at(0)->bytes();
    int64_t wrong = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      wrong += bytes[i] != (has_chunk && i % 4 == 1 ? column[i / 4] : std::byte{9}) ? 1 : 0;
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace meshd::testing
