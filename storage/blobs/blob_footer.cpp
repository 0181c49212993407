#include "storage/blobs/blob_footer.h"

#include <xxhash.h>

#include <algorithm>
#include <string_view>

#include "service/core/checked_math.h"
#include "storage/blobs/blob_store.h"

namespace meshd::storage {
namespace {

constexpr std::string_view kMagic = "MESHBLB1";
constexpr int64_t kWordBytes = 8;

// Little endian whatever the machine is: files move between machines.
void append_word(std::vector<std::byte>& out, uint64_t word) {
  for (int64_t i = 0; i < kWordBytes; ++i) out.push_back(static_cast<std::byte>(word >> (8 * i)));
}

}  // namespace

int64_t blob_page_count(int64_t length) { return core::ceil_div(length, BlobStore::kPageBytes); }

int64_t blob_page_length(int64_t length, int64_t page) {
  return std::min(BlobStore::kPageBytes, length - page * BlobStore::kPageBytes);
}

int64_t blob_page_end(int64_t length, int64_t page) {
  return page * BlobStore::kPageBytes + blob_page_length(length, page);
}

int64_t blob_footer_bytes(int64_t length) {
  return blob_page_count(length) * kWordBytes + kWordBytes + static_cast<int64_t>(kMagic.size());
}

std::vector<std::byte> encode_blob_footer(int64_t length, std::span<const uint64_t> pages) {
  std::vector<std::byte> footer;
  footer.reserve(static_cast<size_t>(blob_footer_bytes(length)));
  for (const uint64_t page : pages) append_word(footer, page);
  append_word(footer, static_cast<uint64_t>(length));
  for (const char c : kMagic) footer.push_back(static_cast<std::byte>(c));
  return footer;
}

std::vector<uint64_t> decode_blob_footer(int64_t length, std::span<const std::byte> footer) {
  std::vector<uint64_t> pages(static_cast<size_t>(blob_page_count(length)));
  for (size_t page = 0; page < pages.size(); ++page) {
    for (size_t i = 0; i < kWordBytes; ++i) {
      pages[page] |= static_cast<uint64_t>(footer[page * kWordBytes + i]) << (8 * i);
    }
  }
  return pages;
}

uint64_t blob_checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace meshd::storage
