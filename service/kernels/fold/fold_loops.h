// The loops behind find_fold, instantiated by its source files. Private to this folder.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/functors/float_functors.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/fold/fold_kernels.h"
#include "service/kernels/fold/fold_segment.h"

namespace meshd::kernels {

/// Op on accumulators where the second operand is a value that still has to be widened.
template <class Op, class Acc, class Value>
struct FoldInto {
  static Acc apply(Acc accumulator, Value value) { return Op::apply(accumulator, static_cast<Acc>(value)); }
};
template <class Acc, class Value>
struct FoldStart {
  static Acc apply(Value value) { return static_cast<Acc>(value); }
};

/// One segment of a few lanes: several items side by side, so that vectors are full, folded together at the end.
template <class Op, class Acc, class Value>
[[gnu::always_inline]] inline void fold_few(const Value* from, int64_t count, int64_t lanes, Acc* to) {
  const int64_t side_by_side = std::min(count, kBlockLanes / lanes);
  const int64_t wide = side_by_side * lanes;
  alignas(64) FoldLanes<Acc> sums;
  for (int64_t j = 0; j < wide; ++j) sums[static_cast<size_t>(j)] = static_cast<Acc>(from[j]);
  const int64_t total = count * lanes;
  for (int64_t i = wide; i < total; i += wide) {
    const int64_t some = std::min(wide, total - i);
    for (int64_t j = 0; j < some; ++j) {
      Acc& sum = sums[static_cast<size_t>(j)];
      sum = Op::apply(sum, static_cast<Acc>(from[i + j]));
    }
  }
  for (int64_t item = 1; item < side_by_side; ++item) {
    for (int64_t j = 0; j < lanes; ++j) {
      Acc& sum = sums[static_cast<size_t>(j)];
      sum = Op::apply(sum, sums[static_cast<size_t>(item * lanes + j)]);
    }
  }
  std::copy_n(sums.begin(), lanes, to);
}

/// Segments of one lane and of kCount values, from left to right as fold_one does, many side by side in vectors.
template <class Op, class Acc, class Value, int kCount>
[[gnu::always_inline]] inline void fold_short(const Value* __restrict from, int64_t groups, Acc* __restrict to) {
#pragma GCC ivdep
  for (int64_t group = 0; group < groups; ++group) {
    Acc sum = static_cast<Acc>(from[group * kCount]);
    for (int i = 1; i < kCount; ++i) sum = Op::apply(sum, static_cast<Acc>(from[group * kCount + i]));
    to[group] = sum;
  }
}

template <class Op, class Acc, class Value>
[[gnu::always_inline]] inline void fold_segments(const std::byte* values, int64_t groups, int64_t count, int64_t lanes,
                                                 std::byte* accumulators) {
  const Value* from = reinterpret_cast<const Value*>(values);
  Acc* to = reinterpret_cast<Acc*>(accumulators);
  if (lanes == 1) {
    switch (count) {  // such as the coordinates of points
      case 2:
        return fold_short<Op, Acc, Value, 2>(from, groups, to);
      case 3:
        return fold_short<Op, Acc, Value, 3>(from, groups, to);
      case 4:
        return fold_short<Op, Acc, Value, 4>(from, groups, to);
      default:
        break;
    }
  }
  // Choosing one by one takes as long as a few comparisons of all.
  constexpr int64_t kOneByOne = kChoosesFloats<Op, Acc, Value> ? 3 * kShortSegment : kShortSegment;
  int64_t group = 0;
  if (lanes == 1 && count < kOneByOne) {
    for (; group + kBeside <= groups; group += kBeside)
      fold_beside<Op, Acc, Value, kBeside>(from + group * count, count, to + group);
    for (; group < groups; ++group) fold_beside<Op, Acc, Value, 1>(from + group * count, count, to + group);
    return;
  }
  for (; group < groups; ++group, from += count * lanes, to += lanes) {
    if (lanes == 1)
      *to = fold_one<Op, Acc, Value>(from, count);
    else
      fold_few<Op, Acc, Value>(from, count, lanes, to);
  }
}

/// Lanes [begin, end) of some rows, in a tree; floats that are added in double are added in fours before they are
/// widened.
template <class Op, class Acc, class Value, bool kWhole>
[[gnu::always_inline]] inline void fold_row_lanes(const std::byte* values, int64_t row_bytes, int64_t rows, bool starts,
                                                  Acc* to, int64_t begin, int64_t end) {
  const auto row = [&](int64_t r) { return reinterpret_cast<const Value*>(values + r * row_bytes) + begin; };
  const int64_t count = kWhole ? kBlockLanes : end - begin;
  to += begin;
  const auto four = [](Value a, Value b, Value c, Value d) __attribute__((always_inline)) {
    if constexpr (kSumsFloatsInDouble<Op, Acc, Value>) {
      return static_cast<Acc>((a + b) + (c + d));
    } else {
      return Op::apply(Op::apply(static_cast<Acc>(a), static_cast<Acc>(b)),
                       Op::apply(static_cast<Acc>(c), static_cast<Acc>(d)));
    }
  };
  if (rows == kFoldRows) {
    // Pointers of their own: g++ loads those of an array in every iteration, and the loop stays scalar.
    const Value* const a = row(0);
    const Value* const b = row(1);
    const Value* const c = row(2);
    const Value* const d = row(3);
    const Value* const e = row(4);
    const Value* const f = row(5);
    const Value* const g = row(6);
    const Value* const h = row(7);
    const auto eight = [&](int64_t j) __attribute__((always_inline)) {
      return Op::apply(four(a[j], b[j], c[j], d[j]), four(e[j], f[j], g[j], h[j]));
    };
    if (starts) {
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) to[j] = eight(j);
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) to[j] = Op::apply(to[j], eight(j));
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const Value* const from = row(r);
    for (int64_t j = 0; j < count; ++j) {
      const Acc value = static_cast<Acc>(from[j]);
      to[j] = starts && r == 0 ? value : Op::apply(to[j], value);
    }
  }
}

template <class Op, class Acc, class Value>
[[gnu::always_inline]] inline void fold_rows(const std::byte* values, int64_t row_bytes, int64_t rows, bool starts,
                                             int64_t lanes, std::byte* accumulators) {
  constexpr auto kBlockBytes = static_cast<int64_t>(sizeof(Value)) * kBlockLanes;
  Acc* const to = reinterpret_cast<Acc*>(accumulators);
  int64_t begin = 0;
  for (; begin + kBlockLanes <= lanes; begin += kBlockLanes) {
    // The rows that come after these.
    const std::byte* const soon = values + kFoldRows * row_bytes + begin * static_cast<int64_t>(sizeof(Value));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t line = 0; line < kBlockBytes; line += kLineBytes)
        __builtin_prefetch(soon + r * row_bytes + line, 0, kSecondLevel);
    }
    fold_row_lanes<Op, Acc, Value, true>(values, row_bytes, rows, starts, to, begin, begin + kBlockLanes);
  }
  if (begin < lanes) fold_row_lanes<Op, Acc, Value, false>(values, row_bytes, rows, starts, to, begin, lanes);
}

template <class Op, class Acc, class Value>
void fold_rows_base(const std::byte* values, int64_t row_bytes, int64_t rows, bool starts, int64_t lanes,
                    std::byte* accumulators) {
  fold_rows<Op, Acc, Value>(values, row_bytes, rows, starts, lanes, accumulators);
}
#if defined(__x86_64__)
template <class Op, class Acc, class Value>
[[gnu::target("arch=x86-64-v3")]] void fold_rows_v3(const std::byte* values, int64_t row_bytes, int64_t rows,
                                                    bool starts, int64_t lanes, std::byte* accumulators) {
  fold_rows<Op, Acc, Value>(values, row_bytes, rows, starts, lanes, accumulators);
}
template <class Op, class Acc, class Value>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void fold_rows_v4(const std::byte* values, int64_t row_bytes,
                                                                            int64_t rows, bool starts, int64_t lanes,
                                                                            std::byte* accumulators) {
  fold_rows<Op, Acc, Value>(values, row_bytes, rows, starts, lanes, accumulators);
}
#endif

template <class Op, class Acc, class Value>
void fold_segments_base(const std::byte* values, int64_t groups, int64_t count, int64_t lanes,
                        std::byte* accumulators) {
  fold_segments<Op, Acc, Value>(values, groups, count, lanes, accumulators);
}
#if defined(__x86_64__)
template <class Op, class Acc, class Value>
[[gnu::target("arch=x86-64-v3")]] void fold_segments_v3(const std::byte* values, int64_t groups, int64_t count,
                                                        int64_t lanes, std::byte* accumulators) {
  fold_segments<Op, Acc, Value>(values, groups, count, lanes, accumulators);
}
template <class Op, class Acc, class Value>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void fold_segments_v4(const std::byte* values, int64_t groups,
                                                                                int64_t count, int64_t lanes,
                                                                                std::byte* accumulators) {
  fold_segments<Op, Acc, Value>(values, groups, count, lanes, accumulators);
}
#endif

/// Loops of Op in Acc over values of type Value; element conversions are the caller's.
template <class Op, class Acc, class Value>
FoldKernels fold_loops() {
  FoldKernels kernels;
  kernels.start = vector_kernel<FoldStart<Acc, Value>, Acc, Value>();
  kernels.fold = vector_kernel<FoldInto<Op, Acc, Value>, Acc, Acc, Value>();
  kernels.combine = vector_kernel<Op, Acc, Acc, Acc>();
  kernels.combine_few = call_kernel<Op, Acc, Acc, Acc>();
  kernels.segments = fold_segments_base<Op, Acc, Value>;
  kernels.rows = fold_rows_base<Op, Acc, Value>;
  kernels.sums_floats = kSumsFloatsInDouble<Op, Acc, Value>;
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV3) {
    kernels.segments = fold_segments_v3<Op, Acc, Value>;
    kernels.rows = fold_rows_v3<Op, Acc, Value>;
  }
  if (cpu_level() == CpuLevel::kV4) {
    kernels.segments = fold_segments_v4<Op, Acc, Value>;
    kernels.rows = fold_rows_v4<Op, Acc, Value>;
  }
#endif
  return kernels;
}

/// By kind of value type; `start` null when the op has no such fold.
FoldKernels find_float_fold(ScalarOp op, tensor::DType value);
FoldKernels find_integer_fold(ScalarOp op, tensor::DType value);

}  // namespace meshd::kernels
