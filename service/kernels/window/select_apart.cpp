#include "service/kernels/window/select_apart.h"

#include <algorithm>
#include <array>

#include "service/kernels/cpu.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kLanes = 64;

struct Ge {
  template <typename T>
  static bool keeps(T kept, T next) {
    return kept >= next;
  }
};
struct Gt {
  template <typename T>
  static bool keeps(T kept, T next) {
    return kept > next;
  }
};
struct Le {
  template <typename T>
  static bool keeps(T kept, T next) {
    return kept <= next;
  }
};
struct Lt {
  template <typename T>
  static bool keeps(T kept, T next) {
    return kept < next;
  }
};

// Choices as wide as elements: one mask for both.
template <typename Order, typename T, typename Choice>
[[gnu::always_inline]] inline void select_lanes(const ApartWindow& window, int64_t begin, int64_t count) {
  std::array<T, kLanes> kept;
  std::array<Choice, kLanes> choices;
  int64_t offset = 0;
  while (offset < window.offsets && window.elements[offset] == nullptr) ++offset;
  const auto first = static_cast<Choice>(offset);
  if (offset < window.offsets) {
    const T* const from = reinterpret_cast<const T*>(window.elements[offset]) + begin;
    for (int64_t j = 0; j < count; ++j) kept[static_cast<size_t>(j)] = from[j];
  }
  for (int64_t j = 0; j < count; ++j) choices[static_cast<size_t>(j)] = first;
  for (++offset; offset < window.offsets; ++offset) {
    if (window.elements[offset] == nullptr) continue;
    const T* const next = reinterpret_cast<const T*>(window.elements[offset]) + begin;
    const auto choice = static_cast<Choice>(offset);
    T* const to = kept.data();
    Choice* const chosen = choices.data();
    for (int64_t j = 0; j < count; ++j) {
      const bool keeps = Order::keeps(to[j], next[j]);
      to[j] = keeps ? to[j] : next[j];
      chosen[j] = keeps ? chosen[j] : choice;
    }
  }
  const T* const arrived = reinterpret_cast<const T*>(window.arrived) + begin;
  const T* const initial = reinterpret_cast<const T*>(window.initial) + begin;
  for (offset = 0; offset < window.offsets; ++offset) {
    if (window.places[offset] == nullptr) continue;
    T* const place = reinterpret_cast<T*>(window.places[offset]) + begin;
    const Choice* const chosen = choices.data();
    const auto choice = static_cast<Choice>(offset);
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) place[j] = chosen[j] == choice ? arrived[j] : initial[j];
  }
}

template <typename Order, typename T, typename Choice>
[[gnu::always_inline]] inline void select_all(const ApartWindow& window) {
  int64_t begin = 0;
  for (; begin + kLanes <= window.lanes; begin += kLanes) select_lanes<Order, T, Choice>(window, begin, kLanes);
  if (begin < window.lanes) select_lanes<Order, T, Choice>(window, begin, window.lanes - begin);
}

template <typename Order, typename T, typename Choice>
void select_base(const ApartWindow& window) {
  select_all<Order, T, Choice>(window);
}

#if defined(__x86_64__)
template <typename Order, typename T, typename Choice>
[[gnu::target("arch=x86-64-v3")]] void select_v3(const ApartWindow& window) {
  select_all<Order, T, Choice>(window);
}

template <typename Order, typename T, typename Choice>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void select_v4(const ApartWindow& window) {
  select_all<Order, T, Choice>(window);
}
#endif

template <typename Order, typename T, typename Choice>
SelectApart of_level() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return select_v4<Order, T, Choice>;
  if (cpu_level() == CpuLevel::kV3) return select_v3<Order, T, Choice>;
#endif
  return select_base<Order, T, Choice>;
}

template <typename Order>
SelectApart of_dtype(tensor::DType dtype) {
  if (dtype == tensor::DType::kFloat32) return of_level<Order, float, int32_t>();
  if (dtype == tensor::DType::kFloat64) return of_level<Order, double, int64_t>();
  return nullptr;
}

}  // namespace

SelectApart select_apart(const TileProgram& select) {
  if (select.input_count != 2 || select.instructions.size() != 1 || select.outputs.size() != 1) return nullptr;
  const TileInstruction& compare = select.instructions[0];
  if (select.outputs[0] != compare.result || compare.operands[0] > 1 || compare.operands[1] > 1 ||
      compare.operands[0] == compare.operands[1]) {
    return nullptr;
  }
  const tensor::DType dtype = select.registers[0];
  const bool is_turned = compare.operands[0] == 1;  // next OP kept
  switch (compare.op) {
    case ScalarOp::kCompareGe:
      return is_turned ? of_dtype<Le>(dtype) : of_dtype<Ge>(dtype);
    case ScalarOp::kCompareGt:
      return is_turned ? of_dtype<Lt>(dtype) : of_dtype<Gt>(dtype);
    case ScalarOp::kCompareLe:
      return is_turned ? of_dtype<Ge>(dtype) : of_dtype<Le>(dtype);
    case ScalarOp::kCompareLt:
      return is_turned ? of_dtype<Gt>(dtype) : of_dtype<Lt>(dtype);
    default:
      return nullptr;
  }
}

}  // namespace meshd::kernels
