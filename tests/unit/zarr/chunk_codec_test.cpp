#include "service/zarr/chunk_codec.h"

#include <gtest/gtest.h>

#include "service/core/error.h"

namespace meshd::testing {
namespace {

using zarr::ChunkCodec;
using zarr::ChunkEncoding;

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(i % 4 == 0 ? i / 4 : 0);
  return out;
}

std::vector<ChunkEncoding> all_encodings() {
  std::vector<ChunkEncoding> out{{ChunkCodec::kNone},
                                 {ChunkCodec::kGzip, 0},
                                 {ChunkCodec::kGzip, 9},
                                 {ChunkCodec::kZstd, -7},
                                 {ChunkCodec::kZstd, 19}};
  for (const char* compressor : {"blosclz", "lz4", "lz4hc", "zlib", "zstd"}) {
    for (const int shuffle : {0, 1, 2}) out.push_back({ChunkCodec::kBlosc, 5, compressor, shuffle, 4});
  }
  return out;
}

TEST(ChunkCodec, every_encoding_is_decoded_to_the_same_bytes) {
  for (const ChunkEncoding& encoding : all_encodings()) {
    for (const size_t size : {size_t{1}, size_t{40}, size_t{1} << 20}) {
      const auto chunk = some_bytes(size);
      const auto encoded = zarr::encode_chunk(encoding, chunk);
      EXPECT_LE(static_cast<int64_t>(encoded.size()), zarr::most_encoded_bytes(encoding, static_cast<int64_t>(size)));
      std::vector<std::byte> back(size);
      zarr::decode_chunk(encoding, encoded, back);
      EXPECT_EQ(back, chunk) << encoding.compressor << encoding.shuffle;
    }
  }
}

TEST(ChunkCodec, bytes_that_are_cut_changed_or_too_many_are_refused_or_decoded_whole) {
  const auto chunk = some_bytes(3000);
  for (const ChunkEncoding& encoding : all_encodings()) {
    const auto encoded = zarr::encode_chunk(encoding, chunk);
    std::vector<std::byte> back(chunk.size());
    for (size_t size = 0; size < encoded.size(); size += 1 + encoded.size() / 50) {
      EXPECT_THROW(zarr::decode_chunk(encoding, std::span(encoded).first(size), back), core::Error)
          << encoding.compressor;
    }
    for (const size_t size : {chunk.size() - 1, chunk.size() + 1}) {
      std::vector<std::byte> other(size);
      EXPECT_THROW(zarr::decode_chunk(encoding, encoded, other), core::Error) << encoding.compressor;
    }
    for (size_t at = 0; at < encoded.size(); at += 1 + encoded.size() / 200) {
      auto changed = encoded;
      changed[at] ^= std::byte{0x55};
      try {
        zarr::decode_chunk(encoding, changed, back);
      } catch (const core::Error& error) {
        EXPECT_EQ(error.code(), core::ErrorCode("malformed_body"));
      }
    }
  }
}

}  // namespace
}  // namespace meshd::testing
