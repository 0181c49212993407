// Operations that have a faster form where their second operand has one value on all lanes: division. Whether it has
// is seen in the lanes, so it does not matter where the value comes from: a constant, a scalar that the program was
// given, an element that a row has in common.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/kernels/cpu.h"

namespace meshd::kernels {

/// Op::with_splat_second(b) makes a function of the first operand with the results of Op::apply, for every b for which
/// Op::has_splat_second(b).
template <class Op>
concept HasSplatSecond = requires {
  &Op::with_splat_second;
};

/// Shorter runs are not worth what making that function costs.
constexpr int64_t kLeastOfSplatSecond = 32;

/// The whole run where its second operand has one value; false: nothing is done.
template <class Op, class T>
[[gnu::always_inline]] inline bool splat_second(const std::byte* const* operands, std::byte* result, int64_t count) {
  const T* const second = reinterpret_cast<const T*>(operands[1]);
  if (count < kLeastOfSplatSecond || second[0] != second[count - 1]) return false;
  const T value = second[0];
  T difference = 0;
  for (int64_t j = 0; j < count; ++j) difference |= static_cast<T>(second[j] ^ value);
  if (difference != 0 || !Op::has_splat_second(value)) return false;
  const auto of_first = Op::with_splat_second(value);
  const T* const first = reinterpret_cast<const T*>(operands[0]);
  T* const out = reinterpret_cast<T*>(result);
  // The result may be an operand's own memory, lane for lane; that is no dependency between lanes.
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) out[j] = of_first(first[j]);
  return true;
}

template <class Op, class T>
bool splat_second_base(const std::byte* const* operands, std::byte* result, int64_t count) {
  return splat_second<Op, T>(operands, result, count);
}
#if defined(__x86_64__)
template <class Op, class T>
[[gnu::target("arch=x86-64-v3")]] bool splat_second_v3(const std::byte* const* operands, std::byte* result,
                                                       int64_t count) {
  return splat_second<Op, T>(operands, result, count);
}
template <class Op, class T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] bool splat_second_v4(const std::byte* const* operands,
                                                                               std::byte* result, int64_t count) {
  return splat_second<Op, T>(operands, result, count);
}
#endif

/// The same for this processor.
template <class Op, class T>
bool run_splat_second(const std::byte* const* operands, std::byte* result, int64_t count) {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return splat_second_v4<Op, T>(operands, result, count);
  if (cpu_level() == CpuLevel::kV3) return splat_second_v3<Op, T>(operands, result, count);
#endif
  return splat_second_base<Op, T>(operands, result, count);
}

}  // namespace meshd::kernels
