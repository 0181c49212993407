#include "service/kernels/product/term_pairs.h"

#include <cstring>

#include "service/kernels/cpu.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

template <typename Term>
[[gnu::always_inline]] inline uint32_t half_of(const std::byte* line, int64_t at) {
  Term term;
  std::memcpy(&term, line + at * static_cast<int64_t>(sizeof(Term)), sizeof(Term));
  return static_cast<uint16_t>(static_cast<int16_t>(term));
}

template <typename Term>
[[gnu::always_inline]] inline void pair_neighbours(const std::byte* line, int64_t count, uint32_t* to) {
  const int64_t whole = count / 2;
  for (int64_t i = 0; i < whole; ++i) to[i] = half_of<Term>(line, 2 * i) | half_of<Term>(line, 2 * i + 1) << 16;
  if (count % 2 != 0) to[whole] = half_of<Term>(line, count - 1);
}

template <typename Term>
[[gnu::always_inline]] inline void pair_lines(const std::byte* first, const std::byte* second, int64_t count,
                                              uint32_t* to) {
  if (second == nullptr) {
    for (int64_t i = 0; i < count; ++i) to[i] = half_of<Term>(first, i);
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = half_of<Term>(first, i) | half_of<Term>(second, i) << 16;
}

template <typename Term>
void neighbours_base(const std::byte* line, int64_t count, uint32_t* to) {
  pair_neighbours<Term>(line, count, to);
}
template <typename Term>
void lines_base(const std::byte* first, const std::byte* second, int64_t count, uint32_t* to) {
  pair_lines<Term>(first, second, count, to);
}

#if defined(__x86_64__)
template <typename Term>
[[gnu::target("arch=x86-64-v3")]] void neighbours_v3(const std::byte* line, int64_t count, uint32_t* to) {
  pair_neighbours<Term>(line, count, to);
}
template <typename Term>
[[gnu::target("arch=x86-64-v3")]] void lines_v3(const std::byte* first, const std::byte* second, int64_t count,
                                                uint32_t* to) {
  pair_lines<Term>(first, second, count, to);
}
#endif

template <typename Term>
TermPairs for_this_cpu() {
#if defined(__x86_64__)
  if (cpu_level() != CpuLevel::kBase) return {neighbours_v3<Term>, lines_v3<Term>};
#endif
  return {neighbours_base<Term>, lines_base<Term>};
}

template <typename Term>
const TermPairs* of() {
  static const TermPairs pairs = for_this_cpu<Term>();
  return &pairs;
}

}  // namespace

const TermPairs* find_term_pairs(DType dtype) {
  if (dtype == DType::kInt8) return of<int8_t>();
  if (dtype == DType::kUint8) return of<uint8_t>();
  if (dtype == DType::kInt16) return of<int16_t>();
  return nullptr;
}

}  // namespace meshd::kernels
