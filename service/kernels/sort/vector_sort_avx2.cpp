#if defined(__x86_64__)
// Highway compiles this file once for each of its targets; without this for all that it knows.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_AVX3 | HWY_SSE4 | HWY_SSSE3)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "service/kernels/sort/vector_sort_avx2.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/sort/traits-inl.h>
#include <hwy/contrib/sort/vqsort-inl.h>

#include "service/kernels/sort/vector_sort_avx2.h"

HWY_BEFORE_NAMESPACE();
namespace meshd::kernels::HWY_NAMESPACE {

void sort_u32(uint32_t* keys, size_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::detail::SharedTraits<hn::detail::TraitsLane<hn::detail::OrderAscending<uint32_t>>> order;
  hn::Sort(hn::SortTag<uint32_t>(), order, keys, count, static_cast<uint32_t*>(nullptr));
}

}  // namespace meshd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace meshd::kernels {

void vector_sort_avx2(uint32_t* keys, size_t count) { N_AVX2::sort_u32(keys, count); }

}  // namespace meshd::kernels
#endif
#endif
