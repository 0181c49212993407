// Loops over lanes, compiled once for each instruction level and chosen at run time by plain function pointers (no
// ifunc, which breaks sanitizers and old linkers). Full blocks of 64 lanes run directly; the rest is padded to a block,
// so an element gets the same bits at every index of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::kernels {

/// Lanes of one block: a multiple of every vector width in use.
inline constexpr int64_t kBlockLanes = 64;

/// Op::apply, or Op::apply_fma where the op has it and the level has FMA.
template <class Op, bool kFma, class... A>
[[gnu::always_inline]] inline auto apply_at_level(A... values) {
  if constexpr (kFma && requires { Op::apply_fma(values...); }) {
    return Op::apply_fma(values...);
  } else {
    return Op::apply(values...);
  }
}

/// Whether an op's recipe with FMA, of one lane (apply_fma) or of a block in several loops (block_fma), leaves some
/// lanes, those it answers NaN for, to Op::apply_library.
template <class Op, class... A>
concept LeavesLanes = requires(A... values) {
  Op::apply_library(values...);
};

/// The operands' addresses as parameters: read from the array in the loop, a result of bytes (bool, int8) could
/// overwrite them, and the loop would stay scalar.
template <class Op, bool kFma, class R, class... A>
[[gnu::always_inline]] inline void block_of(R* out, const A*... operands) {
  if constexpr (kFma && LeavesLanes<Op, A...>) {
    // The result may be an operand's memory, which the lanes that are left need.
    alignas(64) R lanes[kBlockLanes];
    uint64_t left = 0;
    if constexpr (requires { Op::template block_fma<kBlockLanes>(operands..., lanes); }) {
      Op::template block_fma<kBlockLanes>(operands..., lanes);
      for (int64_t j = 0; j < kBlockLanes; ++j) left |= lanes[j] != lanes[j] ? ~uint64_t{0} : uint64_t{0};
    } else {
      for (int64_t j = 0; j < kBlockLanes; ++j) {
        const R value = Op::apply_fma(operands[j]...);
        lanes[j] = value;
        left |= value != value ? ~uint64_t{0} : uint64_t{0};
      }
    }
    if (left != 0) {
      for (int64_t j = 0; j < kBlockLanes; ++j) {
        if (lanes[j] != lanes[j]) lanes[j] = Op::apply_library(operands[j]...);
      }
    }
    for (int64_t j = 0; j < kBlockLanes; ++j) out[j] = lanes[j];
    return;
  }
  // The result may be an operand's own memory, lane for lane; that is no dependency between lanes.
#pragma GCC ivdep
  for (int64_t j = 0; j < kBlockLanes; ++j) out[j] = apply_at_level<Op, kFma>(operands[j]...);
}

/// One block: result[j] = Op::apply(operands[j]...). Op has a static apply without side effects, and may have an
/// apply_fma for levels with FMA.
template <class Op, bool kFma, class R, class... A, size_t... I>
[[gnu::always_inline]] inline void lane_block(const std::byte* const* operands, std::byte* result, int64_t begin,
                                              std::index_sequence<I...>) {
  block_of<Op, kFma, R, A...>(reinterpret_cast<R*>(result) + begin,
                              (reinterpret_cast<const A*>(operands[I]) + begin)...);
}

/// Runs `kernel` on lanes [begin, begin + rest) through a block of memory padded with copies of the last lane, rest <
/// kBlockLanes. The bytes of one element of each operand and of the result are given.
void run_padded_block(ScalarKernel kernel, std::initializer_list<size_t> operand_bytes, size_t result_bytes,
                      const std::byte* const* operands, std::byte* result, int64_t begin, int64_t rest);

/// All full blocks of a run; returns where the rest begins.
template <class Op, bool kFma, class R, class... A>
[[gnu::always_inline]] inline int64_t lane_blocks(const std::byte* const* operands, std::byte* result, int64_t count) {
  const int64_t whole = count - count % kBlockLanes;
  for (int64_t begin = 0; begin < whole; begin += kBlockLanes) {
    lane_block<Op, kFma, R, A...>(operands, result, begin, std::index_sequence_for<A...>{});
  }
  return whole;
}

template <class Op, class R, class... A>
void lane_run_base(const std::byte* const* operands, std::byte* result, int64_t count) {
  const int64_t whole = lane_blocks<Op, false, R, A...>(operands, result, count);
  if (whole == count) return;
  run_padded_block(lane_run_base<Op, R, A...>, {sizeof(A)...}, sizeof(R), operands, result, whole, count - whole);
}

#if defined(__x86_64__)
template <class Op, class R, class... A>
[[gnu::target("arch=x86-64-v3")]] void lane_run_v3(const std::byte* const* operands, std::byte* result, int64_t count) {
  const int64_t whole = lane_blocks<Op, true, R, A...>(operands, result, count);
  if (whole == count) return;
  run_padded_block(lane_run_v3<Op, R, A...>, {sizeof(A)...}, sizeof(R), operands, result, whole, count - whole);
}

template <class Op, class R, class... A>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void lane_run_v4(const std::byte* const* operands,
                                                                           std::byte* result, int64_t count) {
  const int64_t whole = lane_blocks<Op, true, R, A...>(operands, result, count);
  if (whole == count) return;
  run_padded_block(lane_run_v4<Op, R, A...>, {sizeof(A)...}, sizeof(R), operands, result, whole, count - whole);
}
#endif

/// The kernel of an op whose loop the compiler can vectorise, for this processor.
template <class Op, class R, class... A>
ScalarKernel vector_kernel() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return lane_run_v4<Op, R, A...>;
  if (cpu_level() == CpuLevel::kV3) return lane_run_v3<Op, R, A...>;
#endif
  return lane_run_base<Op, R, A...>;
}

template <class Op, class R, class... A, size_t... I>
void scalar_run(const std::byte* const* operands, std::byte* result, int64_t count, std::index_sequence<I...>) {
  R* const out = reinterpret_cast<R*>(result);
  for (int64_t j = 0; j < count; ++j) out[j] = Op::apply(reinterpret_cast<const A*>(operands[I])[j]...);
}

template <class Op, class R, class... A>
void scalar_loop(const std::byte* const* operands, std::byte* result, int64_t count) {
  scalar_run<Op, R, A...>(operands, result, count, std::index_sequence_for<A...>{});
}

/// The kernel of an op that calls a scalar function for each element: no padding, since it would cost calls.
template <class Op, class R, class... A>
ScalarKernel call_kernel() {
  return scalar_loop<Op, R, A...>;
}

}  // namespace meshd::kernels
