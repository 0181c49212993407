#include "service/kernels/sort/packed_keys.h"

#include <algorithm>
#include <cstring>

#include "service/kernels/element_width.h"

namespace meshd::kernels {
namespace {

int bit_count(const SortKey& key) { return static_cast<int>(8 * tensor::size_bytes(key.dtype)); }

void shift_in(uint64_t& packed, uint64_t value, int shift) { packed = packed << shift | value; }

void shift_in(Wide128& packed, uint64_t value, int shift) {
  if (shift == 64) {
    packed = {value, packed.low};
  } else {
    packed = {packed.low << shift | value, packed.high << shift | packed.low >> (64 - shift)};
  }
}

template <typename T>
bool pack(std::span<const SortKey> keys, const std::byte* const* lines, int64_t first, int64_t count, T* packed,
          uint64_t* column) {
  std::fill_n(packed, count, T{});
  for (const SortKey& key : keys) {
    const std::byte* const from = lines[key.operand] + first * tensor::size_bytes(key.dtype);
    const KeyFacts facts = build_keys(key, from, count, column);
    if (facts.has_nan && key.nan_is_unordered) return false;
    const int shift = bit_count(key);
    for (int64_t i = 0; i < count; ++i) shift_in(packed[i], column[i], shift);
  }
  for (int64_t i = 0; i < count; ++i) shift_in(packed[i], static_cast<uint64_t>(first + i), kIndexBits);
  return true;
}

}  // namespace

int packed_bits(std::span<const SortKey> keys) {
  int bits = kIndexBits;
  for (const SortKey& key : keys) bits += bit_count(key);
  return bits;
}

bool pack_keys(std::span<const SortKey> keys, const std::byte* const* lines, int64_t first, int64_t count,
               uint64_t* packed, uint64_t* column) {
  return pack(keys, lines, first, count, packed, column);
}
bool pack_keys(std::span<const SortKey> keys, const std::byte* const* lines, int64_t first, int64_t count,
               Wide128* packed, uint64_t* column) {
  return pack(keys, lines, first, count, packed, column);
}

template <typename T>
void permute_by(const T* packed, int64_t count, const std::byte* from, std::byte* to, int64_t elem_size) {
  with_element(elem_size, [&](auto element) {
    using Element = decltype(element);
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * static_cast<int64_t>(sizeof(Element)),
                  from + index_of(packed[i]) * static_cast<int64_t>(sizeof(Element)), sizeof(Element));
    }
  });
}

template void permute_by(const uint64_t*, int64_t, const std::byte*, std::byte*, int64_t);
template void permute_by(const Wide128*, int64_t, const std::byte*, std::byte*, int64_t);

}  // namespace meshd::kernels
