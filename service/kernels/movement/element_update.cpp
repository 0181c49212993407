#include "service/kernels/movement/element_update.h"

#include <algorithm>
#include <type_traits>

#include "service/kernels/cpu.h"
#include "service/kernels/element_width.h"
#include "service/kernels/elementwise/functors/bfloat16_functors.h"
#include "service/kernels/elementwise/functors/float_functors.h"
#include "service/kernels/elementwise/functors/integer_functors.h"
#include "service/kernels/movement/tuple_offsets.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

template <typename Word>
struct Replace {
  static Word apply(const Word& /*element*/, const Word& update) { return update; }
};

/// Elements of a run that a loop without end conditions takes.
constexpr int64_t kRunBlock = 16;

template <typename Op, typename T, bool kIsLong>
[[gnu::always_inline]] inline void update_run(T* __restrict elements, const T* __restrict updates, int64_t run) {
  int64_t j = 0;
  for (; kIsLong && j + kRunBlock <= run; j += kRunBlock) {
#pragma GCC ivdep
    for (int64_t k = 0; k < kRunBlock; ++k) elements[j + k] = Op::apply(elements[j + k], updates[j + k]);
  }
#pragma GCC ivdep
  for (; j < run; ++j) elements[j] = Op::apply(elements[j], updates[j]);
}

template <typename Op, typename T, bool kIsLong>
[[gnu::always_inline]] inline void update_runs(const ElementUpdates& line) {
  const int64_t run = line.run;
  T* const array = reinterpret_cast<T*>(line.array);
  if (line.runs != nullptr) {
    const T* const updates = reinterpret_cast<const T*>(line.updates);
    const int64_t ahead_bytes = std::min<int64_t>(kPrefetchBytes, run * static_cast<int64_t>(sizeof(T)));
    for (int64_t i = 0; i < line.count; ++i) {
      const auto* const ahead = reinterpret_cast<const std::byte*>(
          updates + line.runs[std::min(i + kPrefetchRuns, line.count - 1)].update_at);
      for (int64_t at = 0; at < ahead_bytes; at += kLineBytes) __builtin_prefetch(ahead + at);
      update_run<Op, T, kIsLong>(array + line.runs[i].array_at, updates + line.runs[i].update_at, run);
    }
    return;
  }
  const std::byte* from = line.updates;
  for (int64_t i = 0; i < line.count; ++i, from += line.update_stride) {
    if (line.offsets[i] == kOutside) continue;
    update_run<Op, T, kIsLong>(array + line.offsets[i], reinterpret_cast<const T*>(from), run);
  }
}

template <typename Op, typename T, bool kIsLong>
void update_runs_base(const ElementUpdates& line) {
  update_runs<Op, T, kIsLong>(line);
}

#if defined(__x86_64__)
template <typename Op, typename T, bool kIsLong>
[[gnu::target("arch=x86-64-v3")]] void update_runs_v3(const ElementUpdates& line) {
  update_runs<Op, T, kIsLong>(line);
}
#endif

/// Op of one lane. Maximum and minimum take the steps of their functors in a vector register, without branches: those
/// would be mispredicted at every other update.
template <typename Op, typename T>
T update_one(T element, T update) {
  constexpr bool kIsMaximum = std::is_same_v<Op, Maximum<T>>;
  if constexpr (std::is_floating_point_v<T> && (kIsMaximum || std::is_same_v<Op, Minimum<T>>)) {
    using Vector [[gnu::vector_size(16)]] = T;
    using Bits [[gnu::vector_size(16)]] = std::make_signed_t<FloatBits<T>>;
    const Vector a = {element};
    const Vector b = {update};
    const Vector chosen = kIsMaximum ? (a > b ? a : b) : (a < b ? a : b);  // b where b is NaN
    const auto a_bits = reinterpret_cast<Bits>(a);
    const auto b_bits = reinterpret_cast<Bits>(b);
    const auto equal = reinterpret_cast<Vector>(kIsMaximum ? a_bits & b_bits : a_bits | b_bits);
    const Vector ordered = a == b ? equal : chosen;
    const Vector result = a != a ? a : ordered;
    return result[0];
  } else {
    return Op::apply(element, update);
  }
}

template <typename Op, typename T>
void update_elements(const ElementUpdates& line) {
  const std::byte* from = line.updates;
  T* const elements = reinterpret_cast<T*>(line.array);
  const uint32_t* const offsets = line.offsets;
  const int64_t count = line.count;
  const int64_t stride = line.update_stride;
  for (int64_t i = 0; i < count; ++i, from += stride) {
    const uint32_t at = offsets[i];
    if (at == kOutside) continue;
    elements[at] = update_one<Op, T>(elements[at], *reinterpret_cast<const T*>(from));
  }
}

template <typename Op, typename T>
ElementUpdate loop_of(int64_t run) {
  if (run == 1) return update_elements<Op, T>;
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::kV3) return run < kRunBlock ? update_runs_v3<Op, T, false> : update_runs_v3<Op, T, true>;
#endif
  return run < kRunBlock ? update_runs_base<Op, T, false> : update_runs_base<Op, T, true>;
}

ElementUpdate of_bfloat16(ScalarOp op, int64_t run) {
  switch (op) {
    case ScalarOp::kAdd:
      return loop_of<InBfloat16<Add<float>>, uint16_t>(run);
    case ScalarOp::kMultiply:
      return loop_of<InBfloat16<Multiply<float>>, uint16_t>(run);
    case ScalarOp::kMaximum:
      return loop_of<InBfloat16<Maximum<float>>, uint16_t>(run);
    case ScalarOp::kMinimum:
      return loop_of<InBfloat16<Minimum<float>>, uint16_t>(run);
    default:
      return nullptr;
  }
}

template <typename T>
ElementUpdate of_float(ScalarOp op, int64_t run) {
  switch (op) {
    case ScalarOp::kAdd:
      return loop_of<Add<T>, T>(run);
    case ScalarOp::kMultiply:
      return loop_of<Multiply<T>, T>(run);
    case ScalarOp::kMaximum:
      return loop_of<Maximum<T>, T>(run);
    case ScalarOp::kMinimum:
      return loop_of<Minimum<T>, T>(run);
    default:
      return nullptr;
  }
}

template <typename T>
ElementUpdate of_integer(ScalarOp op, int64_t run) {
  switch (op) {
    case ScalarOp::kAdd:
      return loop_of<IntAdd<T>, T>(run);
    case ScalarOp::kMultiply:
      return loop_of<IntMultiply<T>, T>(run);
    case ScalarOp::kMaximum:
      return loop_of<IntMaximum<T>, T>(run);
    case ScalarOp::kMinimum:
      return loop_of<IntMinimum<T>, T>(run);
    case ScalarOp::kAnd:
      return loop_of<IntAnd<T>, T>(run);
    case ScalarOp::kOr:
      return loop_of<IntOr<T>, T>(run);
    default:
      return nullptr;
  }
}

}  // namespace

ElementUpdate combining_update(ScalarOp op, DType dtype, int64_t run) {
  switch (dtype) {
    case DType::kFloat32:
      return of_float<float>(op, run);
    case DType::kFloat64:
      return of_float<double>(op, run);
    case DType::kBfloat16:
      return of_bfloat16(op, run);
    case DType::kInt8:
      return of_integer<int8_t>(op, run);
    case DType::kInt16:
      return of_integer<int16_t>(op, run);
    case DType::kInt32:
      return of_integer<int32_t>(op, run);
    case DType::kInt64:
      return of_integer<int64_t>(op, run);
    case DType::kUint8:
      return of_integer<uint8_t>(op, run);
    case DType::kUint16:
      return of_integer<uint16_t>(op, run);
    case DType::kUint32:
      return of_integer<uint32_t>(op, run);
    case DType::kUint64:
      return of_integer<uint64_t>(op, run);
    default:
      return nullptr;
  }
}

ElementUpdate replacing_update(int64_t elem_size, int64_t run) {
  ElementUpdate update = nullptr;
  visit_element(elem_size, [&](auto word) { update = loop_of<Replace<decltype(word)>, decltype(word)>(run); });
  return update;
}

}  // namespace meshd::kernels
