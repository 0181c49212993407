#include "service/zarr/chunk_codec.h"

#include <blosc.h>
#include <fmt/core.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "service/core/error.h"

namespace meshd::zarr {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib: with the head of gzip
constexpr int kGzipMemory = 8;        // zlib's default
constexpr size_t kZlibPiece = size_t{1} << 30;
constexpr int kBloscThreads = 1;
constexpr size_t kBloscSmallest = BLOSC_MIN_HEADER_LENGTH;

[[noreturn]] void refuse(std::string_view what) {
  throw core::Error("malformed_body", fmt::format("the chunk is {}", what));
}

[[noreturn]] void refuse_size(std::string_view codec, std::string_view has, size_t expected) {
  refuse(fmt::format("{} of {} bytes; a chunk of this array has {}", codec, has, expected));
}

auto* zlib_bytes(const std::byte* bytes) { return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes)); }

// The parts of a gzip body follow each other, as those of a file may.
void decode_gzip(std::span<const std::byte> bytes, std::span<std::byte> chunk) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } const end{&stream};
  size_t in = 0, out = 0;
  std::byte beyond{};  // where more comes than the chunk has
  int status = Z_OK;
  while (in < bytes.size()) {
    const bool is_full = out == chunk.size();
    const size_t given = std::min(bytes.size() - in, kZlibPiece);
    const size_t room = is_full ? 1 : std::min(chunk.size() - out, kZlibPiece);
    stream.next_in = zlib_bytes(bytes.data() + in);
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = zlib_bytes(is_full ? &beyond : chunk.data() + out);
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) refuse("no gzip data");
    const size_t produced = room - stream.avail_out;
    if (is_full && produced > 0) refuse_size("gzip data", "more", chunk.size());
    in += given - stream.avail_in;
    if (!is_full) out += produced;
    if (status == Z_STREAM_END && in < bytes.size() && inflateReset(&stream) != Z_OK) refuse("no gzip data");
  }
  if (status != Z_STREAM_END) refuse("gzip data that ends early");
  if (out != chunk.size()) refuse_size("gzip data", std::to_string(out), chunk.size());
}

void decode_zstd(std::span<const std::byte> bytes, std::span<std::byte> chunk) {
  const size_t got = ZSTD_decompress(chunk.data(), chunk.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) != 0) {
    if (ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall) refuse_size("zstd data", "more", chunk.size());
    refuse(fmt::format("no zstd data ({})", ZSTD_getErrorName(got)));
  }
  if (got != chunk.size()) refuse_size("zstd data", std::to_string(got), chunk.size());
}

void decode_blosc(std::span<const std::byte> bytes, std::span<std::byte> chunk) {
  size_t has = 0;
  if (bytes.size() < kBloscSmallest || blosc_cbuffer_validate(bytes.data(), bytes.size(), &has) != 0)
    refuse("no Blosc data, version 1");
  if (has != chunk.size()) refuse_size("Blosc data", std::to_string(has), chunk.size());
  const int got = blosc_decompress_ctx(bytes.data(), chunk.data(), chunk.size(), kBloscThreads);
  if (got < 0 || static_cast<size_t>(got) != chunk.size())
    refuse("damaged Blosc data, or of a compressor that is not known here");
}

std::vector<std::byte> encode_gzip(int level, std::span<const std::byte> chunk) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, kGzipMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::vector<std::byte> out(deflateBound(&stream, chunk.size()));
  stream.next_in = zlib_bytes(chunk.data());
  stream.avail_in = static_cast<uInt>(chunk.size());
  stream.next_out = zlib_bytes(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw core::Error("internal", "gzip of a chunk did not end");
  return out;
}

std::vector<std::byte> encode_zstd(int level, std::span<const std::byte> chunk) {
  std::vector<std::byte> out(ZSTD_compressBound(chunk.size()));
  const size_t size = ZSTD_compress(out.data(), out.size(), chunk.data(), chunk.size(), level);
  if (ZSTD_isError(size) != 0) throw core::Error("internal", "zstd of a chunk failed");
  out.resize(size);
  return out;
}

std::vector<std::byte> encode_blosc(const ChunkEncoding& encoding, std::span<const std::byte> chunk) {
  std::vector<std::byte> out(chunk.size() + BLOSC_MAX_OVERHEAD);
  const int size =
      blosc_compress_ctx(encoding.level, encoding.shuffle, static_cast<size_t>(encoding.element_bytes), chunk.size(),
                         chunk.data(), out.data(), out.size(), encoding.compressor.c_str(), 0, kBloscThreads);
  if (size <= 0) throw core::Error("internal", "Blosc of a chunk failed");
  out.resize(static_cast<size_t>(size));
  return out;
}

}  // namespace

bool has_blosc_compressor(const std::string& name) { return blosc_compname_to_compcode(name.c_str()) >= 0; }

int64_t most_encoded_bytes(const ChunkEncoding& encoding, int64_t chunk_bytes) {
  constexpr int64_t kHeads = 64 * 1024;  // heads and tables of blocks that do not shrink
  return encoding.codec == ChunkCodec::kNone ? chunk_bytes : chunk_bytes + chunk_bytes / 64 + kHeads;
}

void decode_chunk(const ChunkEncoding& encoding, std::span<const std::byte> bytes, std::span<std::byte> chunk) {
  switch (encoding.codec) {
    case ChunkCodec::kNone:
      if (bytes.size() != chunk.size())
        refuse(fmt::format("{} bytes; a chunk of this array has {}", bytes.size(), chunk.size()));
      if (!bytes.empty()) std::memcpy(chunk.data(), bytes.data(), bytes.size());
      return;
    case ChunkCodec::kGzip:
      return decode_gzip(bytes, chunk);
    case ChunkCodec::kZstd:
      return decode_zstd(bytes, chunk);
    case ChunkCodec::kBlosc:
      return decode_blosc(bytes, chunk);
  }
}

std::vector<std::byte> encode_chunk(const ChunkEncoding& encoding, std::span<const std::byte> chunk) {
  switch (encoding.codec) {
    case ChunkCodec::kNone:
      break;
    case ChunkCodec::kGzip:
      return encode_gzip(encoding.level, chunk);
    case ChunkCodec::kZstd:
      return encode_zstd(encoding.level, chunk);
    case ChunkCodec::kBlosc:
      return encode_blosc(encoding, chunk);
  }
  return {chunk.begin(), chunk.end()};
}

}  // namespace meshd::zarr
