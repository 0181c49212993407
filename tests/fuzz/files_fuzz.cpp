// libFuzzer target: any bytes as a safetensors head, a .npz file, a Zarr key, document or chunk are read or refused
// with core::Error. The first byte says which. What is read of a safetensors head can be written and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "api/codecs/files/npy.h"
#include "api/codecs/files/safetensors.h"
#include "api/codecs/files/zarr_keys.h"
#include "api/codecs/files/zarr_metadata.h"
#include "api/codecs/files/zip.h"
#include "service/core/error.h"

namespace {

using meshd::api::ZipReader;

struct Bytes {
  const uint8_t* data;
  size_t size, at = 0;
  size_t read(std::span<std::byte> to) {
    const size_t count = std::min(to.size(), size - at);
    std::memcpy(to.data(), data + at, count);
    at += count;
    return count;
  }
  void read_exactly(std::span<std::byte> to) {
    if (read(to) != to.size()) throw meshd::core::Error("malformed_body", "the end");
  }
};

void read_safetensors(Bytes bytes) {
  const auto head = meshd::api::read_safetensors_head([&](std::span<std::byte> to) { bytes.read_exactly(to); });
  const std::string written = meshd::api::write_safetensors_head(head.tensors);
  Bytes again{reinterpret_cast<const uint8_t*>(written.data()), written.size()};
  const auto back = meshd::api::read_safetensors_head([&](std::span<std::byte> to) { again.read_exactly(to); });
  if (back.data_bytes != head.data_bytes || back.tensors.size() != head.tensors.size()) std::abort();
}

void read_npz(Bytes bytes) {
  ZipReader zip([&](std::span<std::byte> to) { return bytes.read(to); });
  ZipReader::Member member;
  std::vector<std::byte> piece(4096);
  while (zip.next(member)) {
    const auto head = meshd::api::read_npy_head([&](std::span<std::byte> to) { zip.read_exactly(to); });
    int64_t left = meshd::tensor::byte_count(head.type);
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
  meshd::sharding::Layout layout;
  layout.global_dims = {7, 3};
  layout.shard_dims = {2, 3};
  layout.part_counts = {4, 1};
  layout.shard_count = 4;
  const auto read = meshd::api::read_zarr_key(key, meshd::api::ZarrFormats::kBoth);
  if (read.kind != meshd::api::ZarrKey::Kind::kChunk) return;
  if (meshd::api::shard_at(read, layout).value_or(0) >= layout.shard_count) std::abort();
}

void read_document(const std::string& text) {
  const auto pool = meshd::tensor::BufferPool::create(0);
  if (text.starts_with('2')) {
    meshd::api::read_zarr2_array(text.substr(1), *pool);
  } else if (text.starts_with('a')) {
    meshd::api::read_zarr2_attributes(text.substr(1));
  } else {
    meshd::api::read_zarr3(text, *pool);
  }
}

void read_chunk(const Bytes& bytes) {
  if (bytes.size < 2) return;
  std::vector<std::byte> chunk(16 * static_cast<size_t>(bytes.data[1]));
  meshd::zarr::decode_chunk({static_cast<meshd::zarr::ChunkCodec>(bytes.data[0] % 4)},
                            std::as_bytes(std::span(bytes.data + 2, bytes.size - 2)), chunk);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes bytes{data + 1, size - 1};
  try {
    switch (data[0] % 5) {
      case 0:
        read_safetensors(bytes);
        break;
      case 1:
        read_npz(bytes);
        break;
      case 2:
        read_document({reinterpret_cast<const char*>(data + 1), size - 1});
        break;
      case 3:
        read_chunk(bytes);
        break;
      default:
        read_key({reinterpret_cast<const char*>(data + 1), size - 1});
    }
  } catch (const meshd::core::Error&) {
  }
  return 0;
}
