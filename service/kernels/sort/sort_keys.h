// Recognises comparators that are an order of integer keys: when it compares operands by LT or GT, one after another,
// where floats compare in total order, with zeros or NaNs made alike first, as JAX prints it. Such a sort is a sort of
// unsigned integers, which is fast, and total with NaN and infinities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

struct TileProgram;

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

/// Elements from keys: those of which equal keys have different bits come as zero or as the NaN of the key.
template <typename T>
void restore_elements(const SortKey& key, const T* keys, int64_t count, std::byte* elements);

/// Elements that have one key and different bits: zeros where they are alike, and NaNs where they are.
struct AlikeElements {
  int64_t zeros = 0;
  int64_t nans = 0;
};

/// What all NaNs are alike with is a NaN, no number: what follows takes only such keys.
bool is_nan_like_nans(const SortKey& key);

/// How many of `count` elements are alike.
AlikeElements count_alike(const SortKey& key, const std::byte* elements, int64_t count);

/// Where the keys that they share begin among `count` ascending keys.
template <typename T>
AlikeElements first_alike(const SortKey& key, const T* keys, int64_t count);

/// Writes the zeros among `count` elements to `to`, from element places.zeros on, in their order, and the NaNs from
/// places.nans on.
void place_alike(const SortKey& key, const std::byte* elements, int64_t count, AlikeElements places, std::byte* to);

}  // namespace meshd::kernels
