// Bytes that arrays and runs live in. Fresh memory costs sixteen times what memory costs (page faults), so buffers are
// recycled: a pool keeps released ones by size class and hands them out again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace meshd::tensor {

/// Of every buffer's first byte, of arenas' slots and of constants: vectors are read whole.
inline constexpr int64_t kBufferAlignment = 64;

class BufferPool;

/// A run of bytes aligned to kBufferAlignment, owned through shared_ptr; goes back to its pool when the last owner lets
/// go. The bytes are not synchronised: who may write is settled by whoever shares it.
class Buffer {
 public:
  Buffer(std::byte* data, int64_t size, int64_t capacity, std::shared_ptr<BufferPool> pool);
  /// A stretch of another buffer, which it keeps alive. Who may write the stretch is who may write the whole.
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
  std::shared_ptr<BufferPool> pool_;  ///< null for a stretch
  std::shared_ptr<Buffer> whole_;
};

using BufferRef = std::shared_ptr<Buffer>;

/// Recycles buffers by size class (powers of two with four steps between). Large ones ask for huge pages. Any thread.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  /// Keeps at most `keep_bytes` of released memory; more goes back to the system.
  static std::shared_ptr<BufferPool> create(int64_t keep_bytes);
  ~BufferPool();

  /// A buffer of `size` bytes with unspecified content. Throws core::Error memory_exceeded when the system has none.
  BufferRef allocate(int64_t size);

  struct Stats {
    int64_t in_use_bytes = 0;
    int64_t kept_bytes = 0;
    int64_t fresh_allocations = 0;
    int64_t reuses = 0;
  };
  [[nodiscard]] Stats stats() const;

 private:
  friend class Buffer;
  explicit BufferPool(int64_t keep_bytes);
  void release(std::byte* data, int64_t capacity);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace meshd::tensor
