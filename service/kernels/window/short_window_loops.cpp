#include "service/kernels/window/short_window_loops.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/functors/float_functors.h"
#include "service/kernels/elementwise/functors/integer_functors.h"
#include "service/tensor/half.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

// Windows whose elements are parted at once: they stay in the first level cache.
constexpr int64_t kPart = 256;
// Lanes that are combined in registers. The last ones of a run are combined again with some before them: what is left
// of a vector would take a branch for each element.
constexpr int64_t kLanes = 16;
// Channels, the lanes of one element of a window: so few of them are combined in the accumulators themselves, an
// element after the other, where they are whole vectors or less than four.
constexpr int64_t kMostChannels = 256;
constexpr int64_t kChannelVector = 8;

/// Elements as they are in memory, and the accumulators that they become.
template <typename Op, typename Acc, typename Element>
struct Reducer {
  using Accumulator = Acc;
  using Memory = Element;
  static Acc load(Element element) { return static_cast<Acc>(element); }
  static Element store(Acc accumulator) { return static_cast<Element>(accumulator); }
  static Acc combine(Acc earlier, Acc later) { return Op::apply(earlier, later); }
};
template <typename Op>
struct Bfloat16Reducer {
  using Accumulator = float;
  using Memory = uint16_t;
  static float load(uint16_t element) { return tensor::bfloat16_to_float(element); }
  static uint16_t store(float accumulator) { return tensor::float_to_bfloat16(accumulator); }
  static float combine(float earlier, float later) { return Op::apply(earlier, later); }
};

template <class R, typename T>
[[gnu::always_inline]] inline typename R::Accumulator accumulator_of(T value) {
  if constexpr (std::is_same_v<T, typename R::Accumulator>) {
    return value;
  } else {
    return R::load(value);
  }
}

/// Rows of elements or accumulators that become one, lane by lane, in their order.
template <typename Source>
using Sources = std::array<const Source*, static_cast<size_t>(kMostShortWindow)>;

/// Where accumulators go.
template <class R>
struct ToAccumulators {
  typename R::Accumulator* to;
  [[gnu::always_inline]] void put(int64_t lane, typename R::Accumulator sum) const { to[lane] = sum; }
  [[nodiscard]] ToAccumulators from(int64_t lane) const { return {to + lane}; }
};
/// Where results go, with the initial value before them.
template <class R>
struct ToResults {
  typename R::Memory* to;
  typename R::Accumulator init;
  [[gnu::always_inline]] void put(int64_t lane, typename R::Accumulator sum) const {
    to[lane] = R::store(R::combine(init, sum));
  }
  [[nodiscard]] ToResults from(int64_t lane) const { return {to + lane, init}; }
};

/// Some sources, of which the first may be accumulators. Sources and target are different memory.
template <class R, int64_t kWidth, class Target, typename First, typename... Source>
[[gnu::always_inline]] inline void combine_block(int64_t begin, const Target target, const First* first,
                                                 const Source*... others) {
#pragma GCC ivdep
  for (int64_t j = begin; j < begin + kWidth; ++j) {
    typename R::Accumulator sum = accumulator_of<R>(first[j]);
    ((sum = R::combine(sum, accumulator_of<R>(others[j]))), ...);
    target.put(j, sum);
  }
}

template <class R, class Target, typename... Source>
[[gnu::always_inline]] inline void combine_lanes(int64_t lanes, const Target target, const Source*... sources) {
  if (lanes < kLanes) {
    for (int64_t j = 0; j < lanes; ++j) combine_block<R, 1>(j, target, sources...);
    return;
  }
  int64_t begin = 0;
  for (; begin + kLanes <= lanes; begin += kLanes) combine_block<R, kLanes>(begin, target, sources...);
  if (begin < lanes) combine_block<R, kLanes>(lanes - kLanes, target, sources...);
}

/// Four sources or more, as far as the compiler knows: two more at a time, to accumulators that stay in the cache.
template <class R, typename Source, class Target>
[[gnu::always_inline]] inline void combine_many(const Sources<Source>& sources, int64_t count, int64_t lanes,
                                                const Target target) {
  using Acc = typename R::Accumulator;
  std::array<std::array<Acc, static_cast<size_t>(kPart)>, 2> sums;
  for (int64_t begin = 0; begin < lanes; begin += kPart) {
    const int64_t some = std::min(kPart, lanes - begin);
    const auto source = [&](int64_t number) { return sources[static_cast<size_t>(number)] + begin; };
    Acc* from = sums[0].data();
    Acc* to = sums[1].data();
    combine_lanes<R>(some, ToAccumulators<R>{from}, source(0), source(1), source(2));
    int64_t next = 3;
    for (; next + 2 < count; next += 2) {
      combine_lanes<R>(some, ToAccumulators<R>{to}, from, source(next), source(next + 1));
      std::swap(from, to);
    }
    if (next + 2 == count)
      combine_lanes<R>(some, target.from(begin), from, source(next), source(next + 1));
    else
      combine_lanes<R>(some, target.from(begin), from, source(next));
  }
}

template <class R, typename Source, class Target>
[[gnu::always_inline]] inline void combine_sources(const Sources<Source>& sources, int64_t count, int64_t lanes,
                                                   const Target target) {
  const Source* const first = sources[0];
  if (count == 1) return combine_lanes<R>(lanes, target, first);
  if (count == 2) return combine_lanes<R>(lanes, target, first, sources[1]);
  if (count == 3) return combine_lanes<R>(lanes, target, first, sources[1], sources[2]);
  combine_many<R>(sources, count, lanes, target);
}

/// combine_sources of elements, to accumulators, as a processor level has it: a function of its own, for many callers.
template <class R>
using CombineElements = void (*)(const Sources<typename R::Memory>& sources, int64_t count, int64_t lanes,
                                 typename R::Accumulator* to);

/// Windows of one lane that are whole, side by side: element k of window j is from[j * stride + k]. Where the stride is
/// not one, elements are parted by their place within a stride first, so that neighbours are loaded as vectors.
template <class R, int64_t kStride>
[[gnu::always_inline]] inline void combine_whole(const typename R::Memory* from, int64_t some_stride, int64_t window,
                                                 int64_t windows, typename R::Accumulator* to,
                                                 CombineElements<R> combine) {
  using Element = typename R::Memory;
  const int64_t stride = kStride != 0 ? kStride : some_stride;
  std::array<std::array<Element, static_cast<size_t>(kPart)>, static_cast<size_t>(kMostShortWindow)> parted;
  for (int64_t begin = 0; begin < windows; begin += kPart) {
    const int64_t some = std::min(kPart, windows - begin);
    const Element* const first = from + begin * stride;
    Sources<Element> sources{};
    for (int64_t k = 0; k < window; ++k) {
      if constexpr (kStride == 1) {
        sources[static_cast<size_t>(k)] = first + k;
      } else {
        Element* const part = parted[static_cast<size_t>(k)].data();
        sources[static_cast<size_t>(k)] = part;
#pragma GCC ivdep
        for (int64_t j = 0; j < some; ++j) part[j] = first[j * stride + k];
      }
    }
    combine(sources, window, some, to + begin);
  }
}

/// From so many elements on, windows that overlap share what they have in common: for the maximum and minimum of
/// floats, some instructions each, it pays sooner. Sums of doubles stay in order: in another one they might overflow.
template <class R>
constexpr int64_t few_neighbours() {
  using Element = typename R::Memory;
  if (std::is_same_v<typename R::Accumulator, double> && std::is_same_v<Element, double>) return kMostShortWindow + 1;
  return std::is_floating_point_v<Element> && std::is_same_v<typename R::Accumulator, Element> ? 4 : 8;
}

/// Windows that begin at each element, of few_neighbours() elements or more: combinations of two neighbours, of four,
/// of eight and so on are made once and belong to many windows. Window 25 is element 0, the eight from 1 on and the 16
/// from 9 on: six combinations in place of 24. `to` has room for `windows`.
template <class R>
[[gnu::always_inline]] inline void combine_neighbours(const typename R::Memory* from, int64_t window, int64_t windows,
                                                      typename R::Accumulator* to) {
  using Acc = typename R::Accumulator;
  std::array<std::array<Acc, static_cast<size_t>(kPart + kMostShortWindow)>, 2> combined;
  for (int64_t begin = 0; begin < windows; begin += kPart) {
    const int64_t some = std::min(kPart, windows - begin);
    Acc* of_reach = combined[0].data();  // from each element on
    Acc* of_twice = combined[1].data();
    Acc* const result = to + begin;
    int64_t lanes = some + window - 1;
    combine_lanes<R>(lanes, ToAccumulators<R>{of_reach}, from + begin);
    int64_t covered = 0;  // elements of each window, from its first on, that are in the result
    for (int64_t reach = 1; reach <= window; reach *= 2) {
      if ((window & reach) != 0) {
        if (covered == 0) {
          std::copy_n(of_reach, some, result);
        } else {
          const Acc* const rest = of_reach + covered;
#pragma GCC ivdep
          for (int64_t j = 0; j < some; ++j) result[j] = R::combine(result[j], rest[j]);
        }
        covered += reach;
      }
      lanes -= reach;
      if (2 * reach > window) break;
      combine_lanes<R>(lanes, ToAccumulators<R>{of_twice}, of_reach, of_reach + reach);
      std::swap(of_reach, of_twice);
    }
  }
}

/// Same for every second window of two elements or more: even and odd elements are parted in one pass.
template <class R>
[[gnu::always_inline]] inline void combine_every_second(const typename R::Memory* from, int64_t window, int64_t windows,
                                                        typename R::Accumulator* to, CombineElements<R> combine) {
  using Element = typename R::Memory;
  std::array<Element, static_cast<size_t>(kPart + kMostShortWindow / 2)> even;
  std::array<Element, static_cast<size_t>(kPart + kMostShortWindow / 2)> odd;
  Element* const evens = even.data();
  Element* const odds = odd.data();
  Sources<Element> sources{};
  for (int64_t k = 0; k < window; ++k) sources[static_cast<size_t>(k)] = (k % 2 != 0 ? odds : evens) + k / 2;
  for (int64_t begin = 0; begin < windows; begin += kPart) {
    const int64_t some = std::min(kPart, windows - begin);
    const Element* const first = from + begin * 2;
    const int64_t pairs = some + window / 2 - 1;
#pragma GCC ivdep
    for (int64_t j = 0; j < pairs; ++j) {
      evens[j] = first[2 * j];
      odds[j] = first[2 * j + 1];
    }
    if (window % 2 != 0) evens[pairs] = first[2 * pairs];
    combine(sources, window, some, to + begin);
  }
}

/// Window j, as far as the row has its elements.
template <class R>
[[gnu::always_inline]] inline void combine_one(const WindowsAcross& across, const typename R::Memory* row, int64_t j,
                                               typename R::Accumulator* to, CombineElements<R> combine) {
  const int64_t at = j * across.stride - across.pad_low;
  const int64_t begin = std::max<int64_t>(at, 0);
  const int64_t count = std::min(at + across.window, across.size) - begin;
  const bool are_vectors = across.inner <= kMostChannels && across.inner % kChannelVector == 0;
  if (are_vectors || across.inner < 4 * kChannelVector) {
    const typename R::Memory* from = row + begin * across.inner;
    typename R::Accumulator* const sums = to + j * across.inner;
    for (int64_t lane = 0; lane < across.inner; ++lane) sums[lane] = R::load(from[lane]);
    for (int64_t k = 1; k < count; ++k) {
      from += across.inner;
#pragma GCC ivdep
      for (int64_t lane = 0; lane < across.inner; ++lane) sums[lane] = R::combine(sums[lane], R::load(from[lane]));
    }
    return;
  }
  Sources<typename R::Memory> sources{};
  for (int64_t k = 0; k < count; ++k) sources[static_cast<size_t>(k)] = row + (begin + k) * across.inner;
  combine(sources, count, across.inner, to + j * across.inner);
}

template <class R>
[[gnu::always_inline]] inline void combine_clipped(const WindowsAcross& across, const typename R::Memory* row,
                                                   int64_t first, int64_t last, typename R::Accumulator* to) {
  for (int64_t j = first; j < last; ++j) {
    const int64_t at = j * across.stride - across.pad_low;
    const int64_t begin = std::max<int64_t>(at, 0);
    const int64_t end = std::min(at + across.window, across.size);
    auto sum = R::load(row[begin]);
    for (int64_t k = begin + 1; k < end; ++k) sum = R::combine(sum, R::load(row[k]));
    to[j] = sum;
  }
}

template <class R>
[[gnu::always_inline]] inline void across_row(const WindowsAcross& across, const std::byte* row_bytes,
                                              std::byte* to_bytes, CombineElements<R> combine) {
  const auto* const row = reinterpret_cast<const typename R::Memory*>(row_bytes);
  auto* const to = reinterpret_cast<typename R::Accumulator*>(to_bytes);
  if (across.inner > 1) {
    for (int64_t j = 0; j < across.windows; ++j) combine_one<R>(across, row, j, to, combine);
    return;
  }
  // Windows from `begin` to `end` are whole.
  const int64_t begin = std::min(across.windows, core::ceil_div(across.pad_low, across.stride));
  const int64_t last = across.size + across.pad_low - across.window;
  const int64_t end = last < 0 ? begin : std::clamp(last / across.stride + 1, begin, across.windows);
  const typename R::Memory* const from = row + begin * across.stride - across.pad_low;
  combine_clipped<R>(across, row, 0, begin, to);
  if (across.stride == 1 && across.window >= few_neighbours<R>()) {
    combine_neighbours<R>(from, across.window, end - begin, to + begin);
  } else if (across.stride == 1) {
    combine_whole<R, 1>(from, 1, across.window, end - begin, to + begin, combine);
  } else if (across.stride == 2 && across.window > 1) {
    combine_every_second<R>(from, across.window, end - begin, to + begin, combine);
  } else {
    combine_whole<R, 0>(from, across.stride, across.window, end - begin, to + begin, combine);
  }
  combine_clipped<R>(across, row, end, across.windows, to);
}

template <class R>
[[gnu::always_inline]] inline void down_rows(const RowsDown& down, std::byte* result) {
  using Acc = typename R::Accumulator;
  Sources<Acc> sources{};
  for (int64_t i = 0; i < down.count; ++i) sources[static_cast<size_t>(i)] = reinterpret_cast<const Acc*>(down.rows[i]);
  const Acc init = R::load(*reinterpret_cast<const typename R::Memory*>(down.init));
  combine_sources<R>(sources, down.count, down.lanes,
                     ToResults<R>{reinterpret_cast<typename R::Memory*>(result), init});
}

template <class R>
void combine_base(const Sources<typename R::Memory>& sources, int64_t count, int64_t lanes,
                  typename R::Accumulator* to) {
  combine_sources<R>(sources, count, lanes, ToAccumulators<R>{to});
}
template <class R>
void across_base(const WindowsAcross& across, const std::byte* row, std::byte* accumulators) {
  across_row<R>(across, row, accumulators, combine_base<R>);
}
template <class R>
void down_base(const RowsDown& down, std::byte* result) {
  down_rows<R>(down, result);
}

#if defined(__x86_64__)
template <class R>
[[gnu::target("arch=x86-64-v3")]] void combine_v3(const Sources<typename R::Memory>& sources, int64_t count,
                                                  int64_t lanes, typename R::Accumulator* to) {
  combine_sources<R>(sources, count, lanes, ToAccumulators<R>{to});
}
template <class R>
[[gnu::target("arch=x86-64-v3")]] void across_v3(const WindowsAcross& across, const std::byte* row,
                                                 std::byte* accumulators) {
  across_row<R>(across, row, accumulators, combine_v3<R>);
}
template <class R>
[[gnu::target("arch=x86-64-v3")]] void down_v3(const RowsDown& down, std::byte* result) {
  down_rows<R>(down, result);
}
template <class R>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void combine_v4(const Sources<typename R::Memory>& sources,
                                                                          int64_t count, int64_t lanes,
                                                                          typename R::Accumulator* to) {
  combine_sources<R>(sources, count, lanes, ToAccumulators<R>{to});
}
template <class R>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void across_v4(const WindowsAcross& across,
                                                                         const std::byte* row,
                                                                         std::byte* accumulators) {
  across_row<R>(across, row, accumulators, combine_v4<R>);
}
template <class R>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void down_v4(const RowsDown& down, std::byte* result) {
  down_rows<R>(down, result);
}
#endif

template <class R>
ShortWindowLoops loops_of() {
  ShortWindowLoops loops{.accumulator_bytes = sizeof(typename R::Accumulator),
                         .elements_are_accumulators = std::is_same_v<typename R::Accumulator, typename R::Memory>,
                         .across = across_base<R>,
                         .down = down_base<R>};
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) {
    loops.across = across_v4<R>;
    loops.down = down_v4<R>;
  } else if (cpu_level() == CpuLevel::kV3) {
    loops.across = across_v3<R>;
    loops.down = down_v3<R>;
  }
#endif
  return loops;
}

template <typename T>
ShortWindowLoops of_float(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
      return loops_of<Reducer<Add<double>, double, T>>();
    case ScalarOp::kMaximum:
      return loops_of<Reducer<Maximum<T>, T, T>>();
    case ScalarOp::kMinimum:
      return loops_of<Reducer<Minimum<T>, T, T>>();
    default:
      return {};
  }
}

template <typename T>
ShortWindowLoops of_integer(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
      return loops_of<Reducer<IntAdd<T>, T, T>>();
    case ScalarOp::kMaximum:
      return loops_of<Reducer<IntMaximum<T>, T, T>>();
    case ScalarOp::kMinimum:
      return loops_of<Reducer<IntMinimum<T>, T, T>>();
    default:
      return {};
  }
}

}  // namespace

ShortWindowLoops short_window_loops(ScalarOp op, DType dtype) {
  if (dtype == DType::kInt32) return of_integer<int32_t>(op);
  if (dtype == DType::kUint32) return of_integer<uint32_t>(op);
  if (dtype == DType::kInt64) return of_integer<int64_t>(op);
  if (dtype == DType::kUint8) return of_integer<uint8_t>(op);
  if (dtype == DType::kFloat32) return of_float<float>(op);
  if (dtype == DType::kFloat64) return of_float<double>(op);
  if (dtype == DType::kBfloat16 && op == ScalarOp::kMaximum) {
    return loops_of<Bfloat16Reducer<Maximum<float>>>();
  }
  if (dtype == DType::kBfloat16 && op == ScalarOp::kMinimum) {
    return loops_of<Bfloat16Reducer<Minimum<float>>>();
  }
  return {};
}

}  // namespace meshd::kernels
