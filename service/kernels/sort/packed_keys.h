// The keys of an element and its index in one integer, most significant first, so that the order of these integers is
// the order of a line, and equal keys keep theirs.
#pragma once

#include <cstdint>
#include <span>

#include "service/kernels/sort/sort_keys.h"
#include "service/kernels/sort/vector_sort.h"

namespace meshd::kernels {

/// Bits of the index, which is in the lowest ones.
inline constexpr int kIndexBits = 32;

/// Of the keys of an element and its index.
int packed_bits(std::span<const SortKey> keys);

/// packed[i] for elements `first` + i of a line of each operand, i < count, in as many bits as T has at most. `column`
/// is memory for as many keys. False: the comparator is no order of these keys, because of a NaN.
bool pack_keys(std::span<const SortKey> keys, const std::byte* const* lines, int64_t first, int64_t count,
               uint64_t* packed, uint64_t* column);
bool pack_keys(std::span<const SortKey> keys, const std::byte* const* lines, int64_t first, int64_t count,
               Wide128* packed, uint64_t* column);

inline int64_t index_of(uint64_t packed) { return static_cast<int64_t>(packed & UINT32_MAX); }
inline int64_t index_of(const Wide128& packed) { return index_of(packed.low); }

/// to[i] = from[index_of(packed[i])], elements of `elem_size` bytes.
template <typename T>
void permute_by(const T* packed, int64_t count, const std::byte* from, std::byte* to, int64_t elem_size);

}  // namespace meshd::kernels
