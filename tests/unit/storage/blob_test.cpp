// Blobs: bytes at offsets in, checked bytes out, nothing left behind that nobody names.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "tests/support/fault_plan.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_file_system.h"

namespace meshd::testing {
namespace {

using namespace storage;

class StorageBlob : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path_of(const std::string& name) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      if (entry.path().filename() == name) return entry.path().string();
    }
    return {};
  }
  [[nodiscard]] int64_t count_temporary() const {
    return std::distance(std::filesystem::directory_iterator(folder_.path() + "/blobs/tmp"), {});
  }
  TempFolder folder_{TempFolder::Where::kMemory};
  FaultPlan plan_;
  WatchedFileSystem files_{plan_};
  std::string fatal_;
  BlobStore blobs_{files_, folder_.path() + "/blobs", [this](const std::string& reason) { fatal_ = reason; }};
};

std::string pattern(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST_F(StorageBlob, blob_of_any_length_reads_back) {
  for (const int64_t length : {int64_t{0}, int64_t{1}, int64_t{7}, BlobStore::kPageBytes - 1, BlobStore::kPageBytes,
                               BlobStore::kPageBytes + 1, 3 * BlobStore::kPageBytes, 5 * BlobStore::kPageBytes + 77}) {
    const std::string text = pattern(static_cast<size_t>(length), 1);
    const CommittedBlob blob = put_blob(blobs_, "arr_" + std::to_string(length) + ".s0", text);
    EXPECT_EQ(blob.ref.length, length);
    EXPECT_EQ(read_blob(blobs_, blob.ref), text);
    blobs_.verify(blob.ref);
  }
}

TEST_F(StorageBlob, one_that_ends_early_has_the_checksums_of_what_it_has) {
  const std::string text = pattern(static_cast<size_t>(BlobStore::kPageBytes) + 100, 3);
  const auto bytes = as_bytes(text);
  BlobWriter writer = blobs_.begin("arr_1.s0", 4 * BlobStore::kPageBytes, BlobSpace::kAsWritten);
  const auto page = static_cast<size_t>(BlobStore::kPageBytes);
  writer.write(BlobStore::kPageBytes, bytes.subspan(page));
  writer.write(0, bytes.first(page));
  writer.end_at(static_cast<int64_t>(text.size()));
  const CommittedBlob blob = writer.commit();
  EXPECT_EQ(read_blob(blobs_, blob.ref), text);
}

TEST_F(StorageBlob, pieces_in_any_order_and_size_give_the_same_blob_as_one_write) {
  const std::string text = pattern(static_cast<size_t>(3 * BlobStore::kPageBytes + 12345), 2);
  const CommittedBlob whole = put_blob(blobs_, "whole.s0", text);
  for (const size_t piece : {size_t{333}, size_t{4096}, size_t{70'000}, size_t{400'000}}) {
    for (const bool shuffled : {false, true}) {
      std::vector<size_t> offsets;
      for (size_t offset = 0; offset < text.size(); offset += piece) offsets.push_back(offset);
      if (shuffled) std::shuffle(offsets.begin(), offsets.end(), std::mt19937(piece));
      const std::string name = "p" + std::to_string(piece) + (shuffled ? "s" : "o");
      BlobWriter writer = blobs_.begin(name, static_cast<int64_t>(text.size()));
      for (const size_t offset : offsets) {
        writer.write(static_cast<int64_t>(offset), as_bytes(std::string_view(text).substr(offset, piece)));
      }
      const CommittedBlob blob = writer.commit();
      EXPECT_EQ(blob.ref.checksum, whole.ref.checksum) << name;
      EXPECT_EQ(read_blob(blobs_, blob.ref), text) << name;
    }
  }
}

TEST_F(StorageBlob, bytes_written_twice_are_the_later_ones) {
  BlobWriter writer = blobs_.begin("twice", 6);
  writer.write(0, as_bytes("aaaaaa"));
  writer.write(2, as_bytes("bb"));
  EXPECT_EQ(read_blob(blobs_, writer.commit().ref), "aabbaa");
}

TEST_F(StorageBlob, bytes_never_written_are_zero) {
  BlobWriter writer = blobs_.begin("holes", 2 * BlobStore::kPageBytes + 3);
  writer.write(BlobStore::kPageBytes + 5, as_bytes("x"));
  const CommittedBlob blob = writer.commit();
  std::string expected(static_cast<size_t>(2 * BlobStore::kPageBytes + 3), '\0');
  expected[static_cast<size_t>(BlobStore::kPageBytes + 5)] = 'x';
  EXPECT_EQ(read_blob(blobs_, blob.ref), expected);
}

// Rows of a shard with padding behind each, in ascending order: the second page begins and ends in padding.
TEST_F(StorageBlob, what_is_left_out_between_ascending_pieces_costs_no_second_read) {
  constexpr int64_t kRow = 1000, kStride = 1024;
  const int64_t length = 2 * BlobStore::kPageBytes + 1500;
  std::string expected(static_cast<size_t>(length), '\0');
  BlobWriter writer = blobs_.begin("padded", length, BlobSpace::kAsWritten);
  for (int64_t at = 0; at + kRow <= length; at += kStride) {
    const bool is_left_out = at / BlobStore::kPageBytes == 1 && (at % BlobStore::kPageBytes < 4096 || at % 7 == 0);
    if (is_left_out) continue;
    const std::string row = pattern(kRow, static_cast<unsigned>(at));
    expected.replace(static_cast<size_t>(at), row.size(), row);
    writer.write(at, as_bytes(row));
  }
  const int64_t reads = plan_.calls("read");
  const CommittedBlob blob = writer.commit();
  EXPECT_EQ(plan_.calls("read"), reads);
  EXPECT_EQ(plan_.calls("reserve"), 0);
  EXPECT_EQ(blob.ref.checksum, put_blob(blobs_, "as_one", expected).ref.checksum);
  EXPECT_EQ(read_blob(blobs_, blob.ref), expected);
}

TEST_F(StorageBlob, range_reads_touch_only_their_pages) {
  const std::string text = pattern(static_cast<size_t>(8 * BlobStore::kPageBytes + 100), 3);
  const CommittedBlob blob = put_blob(blobs_, "ranges", text);
  const BlobReader reader = blobs_.open(blob.ref);
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    const size_t offset = random() % text.size();
    const size_t length = random() % (text.size() - offset) % 600'000;
    std::string out(length, '\0');
    reader.read(static_cast<int64_t>(offset), std::as_writable_bytes(std::span(out)));
    EXPECT_EQ(out, text.substr(offset, length));
  }
  const int64_t before = plan_.calls("read");
  std::string small(10, '\0');
  reader.read(5 * BlobStore::kPageBytes + 3, std::as_writable_bytes(std::span(small)));
  EXPECT_EQ(plan_.calls("read") - before, 1);
}

TEST_F(StorageBlob, range_outside_of_the_blob_is_refused) {
  const CommittedBlob blob = put_blob(blobs_, "small", "abc");
  std::string out(2, '\0');
  EXPECT_EQ(error_word([&] { blobs_.read(blob.ref, 2, std::as_writable_bytes(std::span(out))); }), "internal");
  EXPECT_EQ(error_word([&] { blobs_.read(blob.ref, -1, std::as_writable_bytes(std::span(out))); }), "internal");
  BlobWriter writer = blobs_.begin("other", 3);
  EXPECT_EQ(error_word([&] { writer.write(2, as_bytes("xy")); }), "internal");
}

TEST_F(StorageBlob, every_single_flipped_bit_is_detected) {
  const CommittedBlob blob = put_blob(blobs_, "bits", pattern(100, 5));
  const std::string path = path_of("bits");
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  EXPECT_EQ(size, BlobStore::file_bytes(100));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (int64_t bit = 0; bit < size * 8; ++bit) {
    const auto flip = [&] {
      file.seekg(bit / 8);
      const char c = static_cast<char>(file.get() ^ (1 << (bit % 8)));
      file.seekp(bit / 8);
      file.put(c);
      file.flush();
    };
    flip();
    EXPECT_EQ(error_word([&] { read_blob(blobs_, blob.ref); }), "storage_failed") << "bit " << bit;
    flip();
  }
  blobs_.verify(blob.ref);
}

TEST_F(StorageBlob, missing_shortened_or_swapped_file_is_detected) {
  const CommittedBlob one = put_blob(blobs_, "one", pattern(1000, 6));
  const CommittedBlob two = put_blob(blobs_, "two", pattern(1000, 7));
  std::filesystem::copy_file(path_of("two"), path_of("one"), std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(error_word([&] { blobs_.verify(one.ref); }), "storage_failed");
  std::filesystem::resize_file(path_of("two"), 1000);
  EXPECT_EQ(error_word([&] { blobs_.verify(two.ref); }), "storage_failed");
  std::filesystem::remove(path_of("two"));
  EXPECT_EQ(error_word([&] { blobs_.verify(two.ref); }), "storage_failed");
}

TEST_F(StorageBlob, writer_destroyed_before_commit_leaves_nothing) {
  {
    BlobWriter writer = blobs_.begin("gone", 3);
    writer.write(0, as_bytes("abc"));
    EXPECT_EQ(count_temporary(), 1);
  }
  EXPECT_EQ(count_temporary(), 0);
  EXPECT_TRUE(blobs_.list().empty());
  (void)blobs_.begin("gone", 3).commit();  // the name is free again
}

TEST_F(StorageBlob, name_in_use_or_unfit_is_refused) {
  const BlobWriter writer = blobs_.begin("busy", 3);
  EXPECT_EQ(error_word([&] { (void)blobs_.begin("busy", 3); }), "storage_failed");
  { const CommittedBlob blob = put_blob(blobs_, "done", "abc"); }
  EXPECT_EQ(error_word([&] { (void)blobs_.begin("done", 3); }), "storage_failed");
  for (const char* name : {"", ".x", "../x", "a/b", "a b"}) {
    EXPECT_EQ(error_word([&] { (void)blobs_.begin(name, 3); }), "internal") << name;
  }
}

TEST_F(StorageBlob, shards_of_one_array_share_one_folder_sync) {
  std::vector<BlobWriter> writers;
  for (int i = 0; i < 6; ++i) {
    writers.push_back(blobs_.begin("arr_1.v1.s" + std::to_string(i), 3));
    writers.back().write(0, as_bytes("abc"));
  }
  const int64_t before = plan_.calls("sync_folder");
  const std::vector<CommittedBlob> committed = commit_blobs(std::move(writers));
  EXPECT_EQ(plan_.calls("sync_folder") - before, 1);
  EXPECT_EQ(committed.size(), 6U);
  for (const CommittedBlob& blob : committed) EXPECT_EQ(read_blob(blobs_, blob.ref), "abc");
}

TEST_F(StorageBlob, collector_leaves_pinned_and_named_blobs) {
  auto pinned = std::make_unique<CommittedBlob>(put_blob(blobs_, "pinned", "abc"));
  { const CommittedBlob blob = put_blob(blobs_, "named", "abc"); }
  { const CommittedBlob blob = put_blob(blobs_, "orphan", "abc"); }
  const std::vector<std::string> all = {"pinned", "named", "orphan", "never-was"};
  const auto is_named = [](const std::string& name) { return name == "named"; };
  EXPECT_EQ(blobs_.remove_unnamed(all, is_named), 1);
  EXPECT_EQ(blobs_.list().size(), 2U);
  pinned.reset();
  EXPECT_EQ(blobs_.remove_unnamed(all, is_named), 1);
}

TEST_F(StorageBlob, open_reader_goes_on_after_removal) {
  auto blob = std::make_unique<CommittedBlob>(put_blob(blobs_, "read", "abcdef"));
  const BlobReader reader = blobs_.open(blob->ref);
  blob.reset();
  blobs_.remove_unnamed(std::vector<std::string>{"read"}, [](const std::string&) { return false; });
  std::string out(6, '\0');
  reader.read(0, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out, "abcdef");
}

TEST_F(StorageBlob, full_disk_at_any_call_is_clean_and_not_fatal) {
  const std::string text = pattern(static_cast<size_t>(5 * BlobStore::kPageBytes), 8);
  int64_t nth = 1;
  for (;; ++nth) {
    const std::string name = "full" + std::to_string(nth);
    plan_.arm(nth, FaultReach::kOnce, FaultKind::kNoSpace);
    const std::string word = error_word([&] { (void)put_blob(blobs_, name, text); });
    const bool fired = plan_.fired();
    plan_.disarm();
    if (!fired) break;
    EXPECT_EQ(word, "disk_full") << nth;
    if (fatal_.empty()) {
      EXPECT_EQ(count_temporary(), 0) << nth;
    } else {
      // Only a folder that cannot be synced is beyond repair.
      EXPECT_NE(fatal_.find("folder"), std::string::npos) << fatal_;
      fatal_.clear();
    }
  }
  EXPECT_GT(nth, 5);
  EXPECT_EQ(fatal_, "");
}

TEST_F(StorageBlob, failed_sync_is_fatal_and_never_repeated) {
  plan_.arm(1, FaultReach::kOnce, FaultKind::kIo, "sync");
  EXPECT_EQ(error_word([&] { (void)put_blob(blobs_, "file", "abc"); }), "storage_failed");
  EXPECT_NE(fatal_, "");
  EXPECT_EQ(plan_.calls("sync"), 1);
  EXPECT_TRUE(blobs_.list().empty());
  fatal_.clear();
  plan_.arm(1, FaultReach::kOnce, FaultKind::kIo, "sync_folder");
  EXPECT_EQ(error_word([&] { (void)put_blob(blobs_, "folder", "abc"); }), "storage_failed");
  EXPECT_NE(fatal_, "");
}

TEST_F(StorageBlob, temporary_files_of_an_earlier_process_are_removed) {
  std::ofstream(folder_.path() + "/blobs/tmp/left.s0") << "half";
  EXPECT_EQ(blobs_.remove_temporary_files(), 1);
  EXPECT_EQ(count_temporary(), 0);
}

}  // namespace
}  // namespace meshd::testing
