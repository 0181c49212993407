// A dense value: a type with its row-major bytes, as requests, callbacks and static arguments have them.
#pragma once

#include <span>
#include <utility>

#include "service/tensor/buffer.h"
#include "service/tensor/shape.h"

namespace meshd::tensor {

/// Row-major bytes of a type, shared by its copies. Filled by its creator, immutable afterwards, but for a job that has
/// the only copy.
struct DenseValue {
  TensorType type;
  BufferRef buffer;

  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_const(*buffer).bytes(); }
};

/// A value whose bytes are to be filled, in memory of the pool. Throws memory_exceeded.
DenseValue new_dense(const TensorType& type, BufferPool& pool);
/// The same in memory of its own: for values that are small or few.
DenseValue new_dense(const TensorType& type);
/// With a copy of `bytes`, byte_count(type) of them.
DenseValue dense_copy(const TensorType& type, std::span<const std::byte> bytes, BufferPool& pool);
DenseValue dense_copy(const TensorType& type, std::span<const std::byte> bytes);

}  // namespace meshd::tensor
