// Any bytes as a safetensors head, a .npy or .npz file, a Zarr key, document or chunk are read or refused with
// core::Error. What is read of a safetensors head can be written and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "api/codecs/files/file_arrays.h"
#include "api/codecs/files/npy.h"
#include "api/codecs/files/safetensors.h"
#include "api/codecs/files/zarr_keys.h"
#include "api/codecs/files/zarr_metadata.h"
#include "api/codecs/files/zip.h"
#include "service/core/error.h"
#include "tests/fuzz/format.h"

namespace meshd::fuzz {
namespace {

using api::ZipReader;

/// A body whose bytes come piece by piece.
struct Bytes {
  std::string_view left;
  size_t read(std::span<std::byte> to) {
    const size_t count = std::min(to.size(), left.size());
    if (count > 0) std::memcpy(to.data(), left.data(), count);
    left.remove_prefix(count);
    return count;
  }
  void read_exactly(std::span<std::byte> to) {
    if (read(to) != to.size()) throw core::Error("malformed_body", "the end");
  }
};

/// As forms and bodies of sessions read a file.
void read_whole(api::FileKind kind, std::string_view text) {
  constexpr int64_t kMemory = int64_t{64} << 20;
  const auto pool = tensor::BufferPool::create(0);
  core::MemoryReservation memory(core::MemoryLedger::create(kMemory), core::MemoryAccount::kRequests);
  const api::FileArrays file(kind, text, *pool, &memory);
  for (size_t i = 0; i < file.entries().size(); ++i) {
    const tensor::DenseValue value = file.read(i, tensor::DType::kFloat8E4M3FN);
    if (static_cast<int64_t>(value.bytes().size()) != tensor::byte_count(value.type)) std::abort();
  }
}

void read_safetensors(std::string_view text) {
  Bytes bytes{text};
  const auto head = api::read_safetensors_head([&](std::span<std::byte> to) { bytes.read_exactly(to); });
  const std::string written = api::write_safetensors_head(head.tensors);
  Bytes again{written};
  const auto back = api::read_safetensors_head([&](std::span<std::byte> to) { again.read_exactly(to); });
  if (back.data_bytes != head.data_bytes || back.tensors.size() != head.tensors.size()) std::abort();
  read_whole(api::FileKind::kSafetensors, text);
}

void read_npy(std::string_view text) {
  read_whole(api::FileKind::kNpy, text);
  Bytes bytes{text};
  const auto head = api::read_npy_head([&](std::span<std::byte> to) { bytes.read_exactly(to); });
  if (tensor::byte_count(head.type) < 0) std::abort();
}

void read_npz(std::string_view text) {
  read_whole(api::FileKind::kZip, text);
  Bytes bytes{text};
  ZipReader zip([&](std::span<std::byte> to) { return bytes.read(to); });
  ZipReader::Member member;
  std::vector<std::byte> piece(4096);
  while (zip.next(member)) {
    const auto head = api::read_npy_head([&](std::span<std::byte> to) { zip.read_exactly(to); });
    int64_t left = tensor::byte_count(head.type);
    if (left > 1 << 26) return;
    while (left > 0) {
      const auto count = static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(piece.size())));
      zip.read_exactly(std::span(piece).first(count));
      left -= static_cast<int64_t>(count);
    }
    zip.end_member();
  }
}

void read_key(std::string_view key) {
  sharding::Layout layout;
  layout.global_dims = {7, 3};
  layout.shard_dims = {2, 3};
  layout.part_counts = {4, 1};
  layout.shard_count = 4;
  const auto read = api::read_zarr_key(key, api::ZarrFormats::kBoth);
  if (read.kind != api::ZarrKey::Kind::kChunk) return;
  if (api::shard_at(read, layout).value_or(0) >= layout.shard_count) std::abort();
}

void read_zarr2(std::string_view text) {
  const auto pool = tensor::BufferPool::create(0);
  api::read_zarr2_array(std::string(text), *pool);
}

void read_zarr2_attributes(std::string_view text) { api::read_zarr2_attributes(std::string(text)); }

void read_zarr3(std::string_view text) {
  const auto pool = tensor::BufferPool::create(0);
  api::read_zarr3(std::string(text), *pool);
}

/// The first byte is the codec, the second the size of the chunk in units of 16 bytes.
void read_chunk(std::string_view bytes) {
  if (bytes.size() < 2) return;
  std::vector<std::byte> chunk(16 * static_cast<size_t>(static_cast<uint8_t>(bytes[1])));
  const auto codec = static_cast<zarr::ChunkCodec>(static_cast<uint8_t>(bytes[0]) % 4);
  zarr::decode_chunk({codec}, std::as_bytes(std::span(bytes.substr(2))), chunk);
}

constexpr Format kFormats[] = {{"safetensors", read_safetensors},
                               {"npy", read_npy},
                               {"npz", read_npz},
                               {"zarr_key", read_key},
                               {"zarr2", read_zarr2},
                               {"zarr2_attributes", read_zarr2_attributes},
                               {"zarr3", read_zarr3},
                               {"zarr_chunk", read_chunk}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

}  // namespace meshd::fuzz
