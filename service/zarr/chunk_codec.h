// Codecs of Zarr chunks: bytes as they are, gzip, zstd and Blosc. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace meshd::zarr {

enum class ChunkCodec : uint8_t { kNone, kGzip, kZstd, kBlosc };

/// A codec with what its encoder needs; to decode, the codec is enough.
struct ChunkEncoding {
  ChunkCodec codec = ChunkCodec::kNone;
  int level = 1;
  std::string compressor = {};  ///< of Blosc: "lz4", "zstd", ...
  int shuffle = 0;              ///< of Blosc: 0 none, 1 bytes, 2 bits
  int64_t element_bytes = 1;    ///< of Blosc's shuffle

  friend bool operator==(const ChunkEncoding&, const ChunkEncoding&) = default;
};

/// The compressors that Blosc has here.
bool has_blosc_compressor(const std::string& name);

/// The most bytes that a chunk of so many bytes is taken in.
int64_t most_encoded_bytes(const ChunkEncoding& encoding, int64_t chunk_bytes);
/// Decodes `bytes` into all of `chunk`. Throws malformed_body where they are not of the codec, or have another number
/// of bytes behind it.
void decode_chunk(const ChunkEncoding& encoding, std::span<const std::byte> bytes, std::span<std::byte> chunk);
std::vector<std::byte> encode_chunk(const ChunkEncoding& encoding, std::span<const std::byte> chunk);

}  // namespace meshd::zarr
