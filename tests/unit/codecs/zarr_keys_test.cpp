#include "api/codecs/files/zarr_keys.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace meshd::testing {
namespace {

using api::ZarrFormats;

std::string read(std::string_view path, ZarrFormats formats) {
  const api::ZarrKey key = api::read_zarr_key(path, formats);
  std::string out = fmt::format("{} '{}'", static_cast<int>(key.kind), key.node);
  for (const int64_t index : key.index) out += " " + std::to_string(index);
  return out;
}

constexpr int kNone = 0, kNode3 = 1, kArray2 = 2, kGroup2 = 3, kAttributes2 = 4, kConsolidated2 = 5, kChunk = 6;

std::string key(int kind, std::string_view node, std::string_view index = "") {
  return fmt::format("{} '{}'{}", kind, node, index);
}

TEST(ZarrKeys, version_3_has_a_document_and_chunks_behind_c) {
  EXPECT_EQ(read("a/b/zarr.json", ZarrFormats::k3), key(kNode3, "a/b"));
  EXPECT_EQ(read("zarr.json", ZarrFormats::k3), key(kNode3, ""));
  EXPECT_EQ(read("a/c/1/0", ZarrFormats::k3), key(kChunk, "a", " 1 0"));
  EXPECT_EQ(read("a/c/c/0", ZarrFormats::k3), key(kChunk, "a/c", " 0"));
  EXPECT_EQ(read("a/c/0/c", ZarrFormats::k3), key(kChunk, "a/c/0"));
  EXPECT_EQ(read("c", ZarrFormats::k3), key(kChunk, ""));
  for (const char* none :
       {"a", "a/1/0", "a/c/01", "a/c/x", "a/.zarray", "a/0.0", "a/c/-1", "a/c/99999999999999999999", ""})
    EXPECT_EQ(read(none, ZarrFormats::k3), key(kNone, "")) << none;
}

TEST(ZarrKeys, version_2_has_four_documents_and_chunks_with_dots) {
  EXPECT_EQ(read("a/.zarray", ZarrFormats::k2), key(kArray2, "a"));
  EXPECT_EQ(read(".zgroup", ZarrFormats::k2), key(kGroup2, ""));
  EXPECT_EQ(read("a/.zattrs", ZarrFormats::k2), key(kAttributes2, "a"));
  EXPECT_EQ(read("a/.zmetadata", ZarrFormats::k2), key(kConsolidated2, "a"));
  EXPECT_EQ(read("a/1/10.2", ZarrFormats::k2), key(kChunk, "a/1", " 10 2"));
  for (const char* none : {"a", "a/c/0/x", "a/1.02", "a/1.", "a/.1", "a/zarr.json"})
    EXPECT_EQ(read(none, ZarrFormats::k2), key(kNone, "")) << none;
}

TEST(ZarrKeys, rank_0_is_c_in_version_3_and_0_in_version_2) {
  const auto index = [](std::string_view path, size_t rank) {
    return api::chunk_index(api::read_zarr_key(path, ZarrFormats::kBoth), rank).has_value();
  };
  EXPECT_TRUE(index("c", 0));
  EXPECT_TRUE(index("0", 0));
  EXPECT_FALSE(index("c/0", 0));
  EXPECT_FALSE(index("1", 0));
  EXPECT_TRUE(index("0", 1));
  EXPECT_FALSE(index("c", 1));
}

TEST(ZarrKeys, names_with_reserved_or_empty_segments_are_no_paths) {
  for (const char* path : {"a", "a/b", "a b/é", "c", "c/0"}) EXPECT_TRUE(api::is_zarr_path(path)) << path;
  for (const char* path : {"", "/a", "a/", "a//b", ".", "a/..", "__a", "a/zarr.json", ".zattrs"})
    EXPECT_FALSE(api::is_zarr_path(path)) << path;
}

}  // namespace
}  // namespace meshd::testing
