// Recognises comparators that are an order of integer keys: when it compares operands by LT or GT, one after another,
// where floats compare in total order, with zeros or NaNs made alike first, as JAX prints it. Such a sort is a sort of
// unsigned integers, which is fast, and total with NaN and infinities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

/// One operand that is compared. Keys are unsigned integers of the operand's width: smaller keys come first.
struct SortKey {
  int operand = 0;
  tensor::DType dtype = tensor::DType::kFloat32;
  bool descending = false;
  bool zeros_alike = false;  ///< -0 and +0 are equal
  bool nans_alike = false;   ///< all NaNs are equal, and have the order of `nan_bits`
  uint64_t nan_bits = 0;
  bool nan_is_unordered = false;  ///< floats compared as numbers: no order where there is a NaN
};

/// The keys, most significant first, of a comparator that takes (lhs, rhs) of each operand; nothing when it is another
/// kind.
std::optional<std::vector<SortKey>> recognise_comparator(const TileProgram& comparator);

/// What build_keys found.
struct KeyFacts {
  bool is_exact = true;  ///< equal keys mean equal bits, so that elements can be made from keys
  bool has_nan = false;
};

/// keys[i] = key of element i of `count` elements that are contiguous. T is uint8_t, uint16_t, uint32_t or uint64_t, at
/// least as wide as the dtype; narrower dtypes give keys of their own width.
template <typename T>
KeyFacts build_keys(const SortKey& key, const std::byte* elements, int64_t count, T* keys);

/// Elements from keys that are exact.
template <typename T>
void restore_elements(const SortKey& key, const T* keys, int64_t count, std::byte* elements);

}  // namespace meshd::kernels
