// The safetensors format (huggingface/safetensors): 8 bytes of length, a JSON head, then the tensors' bytes, row-major
// and little-endian. Heads only; the bytes behind are the arrays'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "service/core/memory_ledger.h"
#include "service/tensor/shape.h"

namespace meshd::api {

/// One tensor of a file: a name, and its bytes behind the head [begin, begin + byte_count(type)).
struct NamedTensor {
  std::string name;
  tensor::TensorType type;
  int64_t begin = 0;
};

/// The parsed head.
struct SafetensorsHead {
  std::vector<NamedTensor> tensors;  ///< in the order of their bytes
  int64_t head_bytes = 0;            ///< the length field and the JSON
  int64_t data_bytes = 0;            ///< what must follow
};

/// Longest JSON head that is read.
inline constexpr int64_t kLongestSafetensorsHead = int64_t{1} << 20;

/// Reads a head through `read_exactly`, which fills a span or throws. All rules of the format are held: no name twice,
/// no overlap, no hole, sizes that agree with dtype and shape. Throws malformed_body or malformed_json with every wrong
/// field's JSON Pointer, unsupported_dtype for dtypes that we do not have; memory_full and body_too_large where
/// `memory` has no room for the head (null: it is not counted).
SafetensorsHead read_safetensors_head(const std::function<void(std::span<std::byte>)>& read_exactly,
                                      core::MemoryReservation* memory = nullptr);

/// A head for tensors that follow in this order without gaps (`begin` is ignored), padded so that the data starts at a
/// multiple of 8. Throws not_acceptable for dtypes that the format has no name for.
std::string write_safetensors_head(std::span<const NamedTensor> tensors);

}  // namespace meshd::api
