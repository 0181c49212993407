// ZIP records: zip64 wherever a size asks for it, written and read again; what the reader refuses.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "api/codecs/files/zip.h"
#include "api/codecs/files/zip_records.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

struct Content {
  std::string name, bytes;
};

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span<const char>(text)); }

std::string stored_file(const std::vector<Content>& contents, int64_t zip64_from) {
  ZipWriter writer(zip64_from);
  std::string out;
  for (const Content& content : contents) {
    out += writer.begin_stored(content.name, static_cast<int64_t>(content.bytes.size()),
                               zip_crc(0, bytes_of(content.bytes)));
    out += content.bytes;
  }
  return out + writer.finish();
}

// Reads members whose sizes are known, in pieces of `step` bytes of the file.
std::vector<Content> read(const std::string& file, const std::vector<size_t>& sizes, size_t step) {
  size_t at = 0;
  ZipReader reader([&](std::span<std::byte> to) {
    const size_t count = std::min({to.size(), step, file.size() - at});
    std::memcpy(to.data(), file.data() + at, count);
    at += count;
    return count;
  });
  std::vector<Content> out;
  ZipReader::Member member;
  while (reader.next(member)) {
    std::string bytes(sizes.at(out.size()), '\0');
    reader.read_exactly(std::as_writable_bytes(std::span(bytes)));
    reader.end_member();
    out.push_back({member.name, bytes});
  }
  return out;
}

const std::vector<Content> kTwo = {{"a.npy", "hello"}, {"\xC3\xA4/b.npy", std::string(70'000, 'x')}};

TEST(Zip, what_is_written_is_read_however_it_arrives) {
  for (const int64_t zip64_from : {int64_t{0}, int64_t{6}, int64_t{0xFFFFFFFF}}) {
    const std::string file = stored_file(kTwo, zip64_from);
    for (const size_t step : {size_t{1}, size_t{7}, size_t{1} << 20}) {
      const std::vector<Content> back = read(file, {5, 70'000}, step);
      ASSERT_EQ(2u, back.size());
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(kTwo[i].name, back[i].name);
        EXPECT_EQ(kTwo[i].bytes, back[i].bytes);
      }
    }
  }
}

TEST(Zip, sizes_of_4_gib_stand_in_zip64_fields) {
  constexpr int64_t kLarge = int64_t{5} << 30;
  ZipWriter writer;
  const std::string first = writer.begin_stored("large.npy", kLarge, 7);
  EXPECT_EQ(zip::kSee64, zip::get(first, 18, 4));
  EXPECT_EQ(zip::kSee64, zip::get(first, 22, 4));
  EXPECT_EQ(20u, zip::get(first, 28, 2));
  EXPECT_EQ(kLarge, static_cast<int64_t>(zip::get(first, 30 + 9 + 4, 8)));
  // Small, but it begins behind 4 GiB: its own record is as ever, the directory says where in a zip64 field.
  const std::string second = writer.begin_stored("b", 3, 8);
  EXPECT_EQ(3u, zip::get(second, 18, 4));
  EXPECT_EQ(0u, zip::get(second, 28, 2));
  const std::string end = writer.finish();
  const int64_t begin_of_second = static_cast<int64_t>(first.size()) + kLarge;
  const size_t listed = 46 + 9 + 4 + 16;
  EXPECT_EQ(zip::kCentral, zip::get(end, listed, 4));
  EXPECT_EQ(3u, zip::get(end, listed + 24, 4));
  EXPECT_EQ(zip::kSee64, zip::get(end, listed + 42, 4));
  EXPECT_EQ(begin_of_second, static_cast<int64_t>(zip::get(end, listed + 46 + 1 + 4, 8)));
  const size_t end64 = listed + 46 + 1 + 4 + 8;
  EXPECT_EQ(zip::kEnd64, zip::get(end, end64, 4));
  EXPECT_EQ(2u, zip::get(end, end64 + 32, 8));
  EXPECT_EQ(begin_of_second + static_cast<int64_t>(second.size()) + 3,
            static_cast<int64_t>(zip::get(end, end64 + 48, 8)));
  EXPECT_EQ(zip::kLocator64, zip::get(end, end64 + 56, 4));
  EXPECT_EQ(zip::kEnd, zip::get(end, end64 + 76, 4));
}

TEST(Zip, deflated_members_of_4_gib_tell_their_sizes_in_8_bytes) {
  ZipWriter small, large;
  EXPECT_EQ(30u + 1, small.begin_deflated("a", 100).size());
  EXPECT_EQ(16u, small.end_deflated(50, 1).size());
  EXPECT_EQ(30u + 1 + 20, large.begin_deflated("a", int64_t{5} << 30).size());
  EXPECT_EQ(24u, large.end_deflated(50, 1).size());
}

TEST(Zip, every_shortened_file_is_refused) {
  const std::string file = stored_file({{"a.npy", "hello"}, {"b.npy", "world"}}, 0);
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_THROW(read(file.substr(0, length), {5, 5}, 64), core::Error) << length;
  EXPECT_THROW(read(file + " ", {5, 5}, 64), core::Error);
  EXPECT_THROW(read(file, {5, 4}, 64), core::Error);
  EXPECT_THROW(read(file, {6, 5}, 64), core::Error);
}

TEST(Zip, names_come_once) {
  ZipWriter writer;
  static_cast<void>(writer.begin_stored("a", 0, 0));
  EXPECT_THROW(static_cast<void>(writer.begin_stored("a", 0, 0)), core::Error);
  EXPECT_THROW(static_cast<void>(writer.begin_deflated(std::string(70'000, 'n'), 0)), core::Error);
}

}  // namespace
}  // namespace meshd::api
