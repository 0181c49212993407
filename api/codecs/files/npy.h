// NumPy's .npy format, versions 1 to 3: heads, and the elements behind them, little endian.
//
// Types of ml_dtypes have no name in such a file. NumPy 2 with ml_dtypes 0.5 writes '<V2' for bfloat16, '<V1' for every
// type of one byte, and '<f1' for float8_e5m2 (which np.load does not read); a copy of what np.load gave says '|V2'.
// All are read: '<V1' with a dtype that the reader was told. '<V2' and '<V1' are written: np.load(f).view(dtype).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "service/tensor/shape.h"

namespace meshd::api {

/// How elements follow each other: the last index fastest, or the first.
enum class ElementOrder : uint8_t { kC, kFortran };

/// The parsed head.
struct NpyHead {
  tensor::TensorType type;
  ElementOrder order = ElementOrder::kC;  ///< kFortran only where that is another order than kC
  /// What the file says where several dtypes are called so ("<V1", of one byte each); the dtype of `type` is then
  /// uint8. Empty: `type` is what the file says.
  std::string open_descr = {};
};

/// Reads a head through `read_exactly`, which fills a span or throws. `wanted`: the dtype where the file leaves it
/// open ('<V1'); it is ignored for other heads. Throws malformed_body when it is no .npy head, unsupported_format for
/// big endian, unsupported_dtype for dtypes that we do not have.
NpyHead read_npy_head(const std::function<void(std::span<std::byte>)>& read_exactly,
                      std::optional<tensor::DType> wanted = std::nullopt);

/// The same, which leaves an open dtype open: for whoever learns it behind the elements.
NpyHead read_open_npy_head(const std::function<void(std::span<std::byte>)>& read_exactly);
/// The dtype that an `open_descr` stands for: `wanted`. Throws unsupported_dtype where that is not one of its dtypes.
tensor::DType resolve_open_dtype(std::string_view open_descr, std::optional<tensor::DType> wanted);

/// Fills `out`, byte_count(head.type) bytes, with the elements behind a head in C order, through `read_exactly`, as
/// clean_elements leaves them. Elements in Fortran order go through memory of their own, which is not touched before it
/// is read: a head alone costs none.
void read_elements(const NpyHead& head, std::span<std::byte> out,
                   const std::function<void(std::span<std::byte>)>& read_exactly);

/// A version 1 head for this type, padded to 64 bytes.
std::string write_npy_head(const tensor::TensorType& type);

}  // namespace meshd::api
