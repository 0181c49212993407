// Buffers of arrays and runs. Fresh memory costs sixteen times as much as recycled memory (page faults), so a pool
// keeps released buffers by size class and reuses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace meshd::tensor {

/// Of every buffer's first byte, of arenas' slots and of constants: for aligned vector loads.
inline constexpr int64_t kBufferAlignment = 64;

class BufferPool;

/// A run of bytes aligned to kBufferAlignment, owned through shared_ptr; returns to its pool when the last owner
/// releases it. The bytes are not synchronised: its owners agree on who may write.
class Buffer {
 public:
  Buffer(std::byte* data, int64_t size, int64_t capacity, std::shared_ptr<BufferPool> pool);
  /// A slice of another buffer, which it keeps alive, with the same right to write.
  Buffer(std::shared_ptr<Buffer> whole, int64_t offset, int64_t size);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t capacity() const { return capacity_; }
  [[nodiscard]] std::span<std::byte> bytes() { return {data_, static_cast<size_t>(size_)}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  std::byte* data_;
  int64_t size_;
  int64_t capacity_;
  std::shared_ptr<BufferPool> pool_;  ///< null for a slice
  std::shared_ptr<Buffer> whole_;
};

using BufferRef = std::shared_ptr<Buffer>;

/// Recycles buffers by size class (powers of two with four steps between). Large ones use huge pages. Any thread.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  /// Keeps at most `keep_bytes` of released memory, and no more than `most_bytes` less the buffers in use; the rest is
  /// returned to the system.
  static std::shared_ptr<BufferPool> create(int64_t keep_bytes, int64_t most_bytes = INT64_MAX);
  ~BufferPool();

  /// A buffer of `size` bytes with unspecified content. Throws core::Error memory_exceeded when the system has none.
  BufferRef allocate(int64_t size);

  struct Stats {
    int64_t in_use_bytes = 0;
    int64_t kept_bytes = 0;
    int64_t fresh_allocations = 0;
  };
  [[nodiscard]] Stats stats() const;

 private:
  friend class Buffer;
  BufferPool(int64_t keep_bytes, int64_t most_bytes);
  void release(std::byte* data, int64_t capacity);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace meshd::tensor
