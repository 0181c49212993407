// The footer of a blob file: page checksums, by which a range is verified without reading the rest. See blob_store.h
// for the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace meshd::storage {

/// How many pages the data of a blob has.
int64_t blob_page_count(int64_t length);
/// How many bytes page `page` has: all pages are full but the last.
int64_t blob_page_length(int64_t length, int64_t page);
/// Where the data of page `page` ends.
int64_t blob_page_end(int64_t length, int64_t page);
/// Bytes of the footer of a blob of this length.
int64_t blob_footer_bytes(int64_t length);
/// The footer for these page checksums.
std::vector<std::byte> encode_blob_footer(int64_t length, std::span<const uint64_t> pages);
/// The page checksums in a footer that has been checked against its row.
std::vector<uint64_t> decode_blob_footer(int64_t length, std::span<const std::byte> footer);
/// XXH3-64.
uint64_t blob_checksum(std::span<const std::byte> bytes);

}  // namespace meshd::storage
