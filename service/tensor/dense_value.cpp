#include "service/tensor/dense_value.h"

#include <cstring>
#include <memory>

namespace meshd::tensor {
namespace {

// Memory that no pool gave, and the buffer that shows it.
struct OwnMemory {
  explicit OwnMemory(int64_t size)
      : lines(std::make_unique_for_overwrite<Line[]>(static_cast<size_t>(size / kBufferAlignment + 1))),
        buffer(reinterpret_cast<std::byte*>(lines.get()), size, size, nullptr) {}

  struct alignas(kBufferAlignment) Line {
    std::byte bytes[kBufferAlignment];
  };
  std::unique_ptr<Line[]> lines;
  Buffer buffer;
};

DenseValue filled(DenseValue out, std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(out.buffer->data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

DenseValue new_dense(const TensorType& type, BufferPool& pool) { return {type, pool.allocate(byte_count(type))}; }

DenseValue new_dense(const TensorType& type) {
  auto memory = std::make_shared<OwnMemory>(byte_count(type));
  return {type, BufferRef(memory, &memory->buffer)};
}

DenseValue dense_copy(const TensorType& type, std::span<const std::byte> bytes, BufferPool& pool) {
  return filled(new_dense(type, pool), bytes);
}

DenseValue dense_copy(const TensorType& type, std::span<const std::byte> bytes) {
  return filled(new_dense(type), bytes);
}

}  // namespace meshd::tensor
