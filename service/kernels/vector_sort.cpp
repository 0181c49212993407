#include "service/kernels/vector_sort.h"

#include <algorithm>
#include <cstddef>

#include <hwy/contrib/sort/vqsort.h>

namespace meshd::kernels {
namespace {

// Below this a sorter's own memory costs more than the sort.
constexpr int64_t kSmall = 24;

template <typename T>
void sort_keys(T* keys, int64_t count) {
  if (count <= kSmall) {
    std::sort(keys, keys + count);
    return;
  }
  hwy::Sorter()(keys, static_cast<size_t>(count), hwy::SortAscending());
}

}  // namespace

void vector_sort(uint32_t* keys, int64_t count) { sort_keys(keys, count); }
void vector_sort(uint64_t* keys, int64_t count) { sort_keys(keys, count); }

void vector_sort(Wide128* keys, int64_t count) {
  static_assert(sizeof(Wide128) == sizeof(hwy::uint128_t) && offsetof(Wide128, low) == offsetof(hwy::uint128_t, lo));
  if (count <= kSmall) {
    std::sort(keys, keys + count,
              [](const Wide128& a, const Wide128& b) { return a.high != b.high ? a.high < b.high : a.low < b.low; });
    return;
  }
  hwy::Sorter()(reinterpret_cast<hwy::uint128_t*>(keys), static_cast<size_t>(count), hwy::SortAscending());
}

}  // namespace meshd::kernels
