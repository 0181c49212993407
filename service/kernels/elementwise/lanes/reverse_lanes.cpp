#include "service/kernels/elementwise/lanes/reverse_lanes.h"

#include "service/kernels/cpu.h"
#include "service/kernels/element_width.h"

namespace meshd::kernels {
namespace {

template <class T>
[[gnu::always_inline]] inline void reverse(const T* from, T* to, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) to[i] = from[-i];
}

template <class T>
void reverse_base(const T* from, T* to, int64_t count) {
  reverse(from, to, count);
}
#if defined(__x86_64__)
template <class T>
[[gnu::target("arch=x86-64-v3")]] void reverse_v3(const T* from, T* to, int64_t count) {
  reverse(from, to, count);
}
template <class T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void reverse_v4(const T* from, T* to, int64_t count) {
  reverse(from, to, count);
}
#endif

template <class T>
void reverse_by_level(const T* from, T* to, int64_t count) {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return reverse_v4(from, to, count);
  if (cpu_level() == CpuLevel::kV3) return reverse_v3(from, to, count);
#endif
  reverse_base(from, to, count);
}

}  // namespace

void reverse_lanes(const std::byte* from, int64_t element_bytes, std::byte* to, int64_t count) {
  with_element(element_bytes, [&]<class T>(T) {
    reverse_by_level(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), count);
  });
}

}  // namespace meshd::kernels
