// Highway's vector sort compiled for AVX2 alone: the library takes the widest vectors that a processor has, and its
// sort with AVX-512 stores through masks, which some processors do many times slower (AMD's Zen 4: 37 ns a key, 5 with
// AVX2).
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::kernels {

#if defined(__x86_64__)
/// Sorts keys in ascending order. The processor has to have AVX2. Any thread.
void vector_sort_avx2(uint32_t* keys, size_t count);
#endif

}  // namespace meshd::kernels
