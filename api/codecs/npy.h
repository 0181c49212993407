// NumPy's .npy format, versions 1 to 3: heads, and the elements behind them, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "service/tensor/shape.h"

namespace meshd::api {

/// How elements follow each other: the last index fastest, or the first.
enum class ElementOrder : uint8_t { kC, kFortran };

/// The parsed head.
struct NpyHead {
  tensor::TensorType type;
  ElementOrder order = ElementOrder::kC;  ///< kFortran only where that is another order than kC
};

/// Reads a head through `read_exactly`, which fills a span or throws. Throws malformed_body when it is no .npy head,
/// unsupported_format for big endian, unsupported_dtype for dtypes that we do not have.
NpyHead read_npy_head(const std::function<void(std::span<std::byte>)>& read_exactly);

/// Fills `out`, byte_count(head.type) bytes, with the elements behind a head in C order, through `read_exactly`; bools
/// become 0 or 1. Elements in Fortran order go through memory of their own, which is not touched before it is read: a
/// head alone costs none.
void read_elements(const NpyHead& head, std::span<std::byte> out,
                   const std::function<void(std::span<std::byte>)>& read_exactly);

/// A version 1 head for this type, padded to 64 bytes. Throws not_acceptable for dtypes that NumPy has no name for.
std::string write_npy_head(const tensor::TensorType& type);

}  // namespace meshd::api
