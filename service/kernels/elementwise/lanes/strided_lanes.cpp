#include "service/kernels/elementwise/lanes/strided_lanes.h"

#include "service/kernels/cpu.h"
#include "service/kernels/element_width.h"

namespace meshd::kernels {
namespace {

template <class T>
using Loose [[gnu::aligned(1)]] = T;

/// The stride is a constant where the compiler has shuffles for it.
template <int kStride, class T>
[[gnu::always_inline]] inline void read(const Loose<T>* from, Loose<T>* to, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) to[i] = from[i * kStride];
}

template <int kStride, class T>
void read_base(const Loose<T>* from, Loose<T>* to, int64_t count) {
  read<kStride, T>(from, to, count);
}
#if defined(__x86_64__)
template <int kStride, class T>
[[gnu::target("arch=x86-64-v3")]] void read_v3(const Loose<T>* from, Loose<T>* to, int64_t count) {
  read<kStride, T>(from, to, count);
}
template <int kStride, class T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void read_v4(const Loose<T>* from, Loose<T>* to,
                                                                       int64_t count) {
  read<kStride, T>(from, to, count);
}
#endif

template <int kStride, class T>
void read_by_level(const Loose<T>* from, Loose<T>* to, int64_t count) {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return read_v4<kStride, T>(from, to, count);
  if (cpu_level() == CpuLevel::kV3) return read_v3<kStride, T>(from, to, count);
#endif
  read_base<kStride, T>(from, to, count);
}

template <class T>
void read_strided(const Loose<T>* from, int64_t stride, Loose<T>* to, int64_t count) {
  switch (stride) {
    case -1:
      return read_by_level<-1, T>(from, to, count);
    case 2:
      return read_by_level<2, T>(from, to, count);
    case 3:
      return read_by_level<3, T>(from, to, count);
    case 4:
      return read_by_level<4, T>(from, to, count);
    default:
      for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

}  // namespace

void strided_lanes(const std::byte* from, int64_t stride, int64_t element_bytes, std::byte* to, int64_t count) {
  with_element(element_bytes, [&]<class T>(T) {
    read_strided<T>(reinterpret_cast<const Loose<T>*>(from), stride, reinterpret_cast<Loose<T>*>(to), count);
  });
}

}  // namespace meshd::kernels
