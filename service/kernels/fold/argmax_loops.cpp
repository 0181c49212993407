// 1. Lanes, and groups of few lanes, are folded side by side.
// 2. Short segments of one lane as well, kBeside of them.
// 3. Long ones are folded block by block: the best value of a block is found first, by one comparison a value, and its
//    place is looked for only where it is better than those before.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/fold/argmax_fold.h"

namespace meshd::kernels {
namespace {

constexpr int kWidth = 8;
template <class T>
using Vector [[gnu::vector_size(kWidth * sizeof(T))]] = T;
using Places = Vector<int32_t>;

/// Segments that are folded side by side.
constexpr int kBeside = kWidth;
/// The fewest values of a segment that is folded by itself in vectors.
constexpr int64_t kShortSegment = 2 * kWidth;
/// The fewest for which that is faster than kBeside segments side by side.
constexpr int64_t kLongSegment = 96;
/// Values of which the best is found before its place.
constexpr int64_t kBestOf = 256;

template <class T>
bool is_nan(T value) {
  return value != value;
}
/// Zeros are equal and have two signs, and of NaNs the first one counts: both need the order of values.
template <class T>
bool needs_order(T best) {
  return std::is_floating_point_v<T> && (is_nan(best) || best == 0);
}

/// A later pair is folded into one.
template <bool kGreatest, class T>
[[gnu::always_inline]] inline void fold_pair(T value, int32_t index, T& best, int32_t& place) {
  const T was = best;
  const int32_t place_was = place;
  const bool keeps = (kGreatest ? was > value : was < value) | (was != was);
  const bool keeps_place = keeps | ((was == value) & (place_was < index));
  best = keeps ? was : value;
  place = keeps_place ? place_was : index;
}

/// kWidth pairs at once. With loops of fold_pair g++ stores under a mask, which takes many times as long.
template <bool kGreatest, class T>
[[gnu::always_inline]] inline void fold_vector(const T* from, const Places& indices, T* best, int32_t* places) {
  Vector<T> values;
  Vector<T> was;
  Places place;
  std::memcpy(&values, from, sizeof(values));
  std::memcpy(&was, best, sizeof(was));
  std::memcpy(&place, places, sizeof(place));
  const Places keeps = (kGreatest ? was > values : was < values) | (was != was);
  const Places keeps_place = keeps | ((was == values) & (place < indices));
  was = keeps ? was : values;
  place = keeps_place ? place : indices;
  std::memcpy(best, &was, sizeof(was));
  std::memcpy(places, &place, sizeof(place));
}

template <bool kGreatest, class T>
[[gnu::always_inline]] inline void add_to_lanes(const T* values, int32_t index, int64_t count, T* best,
                                                int32_t* places) {
  int64_t j = 0;
  for (; j + kWidth <= count; j += kWidth) fold_vector<kGreatest>(values + j, Places{} + index, best + j, places + j);
  for (; j < count; ++j) fold_pair<kGreatest>(values[j], index, best[j], places[j]);
}

template <bool kGreatest, class T>
[[gnu::always_inline]] inline void combine_lanes(const T* values, const int32_t* indices, int64_t count, T* best,
                                                 int32_t* places) {
  int64_t j = 0;
  for (; j + kWidth <= count; j += kWidth) {
    Places of;
    std::memcpy(&of, indices + j, sizeof(of));
    fold_vector<kGreatest>(values + j, of, best + j, places + j);
  }
  for (; j < count; ++j) fold_pair<kGreatest>(values[j], indices[j], best[j], places[j]);
}

/// One segment of some lanes, item by item.
template <bool kGreatest, class T>
[[gnu::always_inline]] inline void fold_in_order(const T* values, int32_t first, int64_t items, int64_t lanes, T* best,
                                                 int32_t* places) {
  std::copy_n(values, lanes, best);
  std::fill_n(places, lanes, first);
  for (int64_t item = 1; item < items; ++item)
    add_to_lanes<kGreatest>(values + item * lanes, first + static_cast<int32_t>(item), lanes, best, places);
}

/// The same with several items side by side, so that vectors are full.
template <bool kGreatest, class T>
[[gnu::always_inline]] inline void fold_few(const T* values, int32_t first, int64_t items, int64_t lanes, T* best,
                                            int32_t* places) {
  const int64_t side_by_side = std::min(items, kBlockLanes / lanes);
  const int64_t wide = side_by_side * lanes;
  alignas(64) std::array<T, kBlockLanes> wide_best;
  alignas(64) std::array<int32_t, kBlockLanes> steps{};
  std::copy_n(values, wide, wide_best.data());
  const int64_t total = items * lanes;
  int32_t step = 1;
  for (int64_t i = wide; i < total; i += wide, ++step)
    add_to_lanes<kGreatest>(values + i, step, std::min(wide, total - i), wide_best.data(), steps.data());
  const auto place_of = [&](int64_t item, int64_t j) {
    return first + steps[static_cast<size_t>(item * lanes + j)] * static_cast<int32_t>(side_by_side) +
           static_cast<int32_t>(item);
  };
  for (int64_t j = 0; j < lanes; ++j) {
    best[j] = wide_best[static_cast<size_t>(j)];
    places[j] = place_of(0, j);
  }
  bool in_order = false;
  for (int64_t item = 0; item < side_by_side; ++item) {
    for (int64_t j = 0; j < lanes; ++j) {
      const T value = wide_best[static_cast<size_t>(item * lanes + j)];
      in_order = in_order || needs_order(value);
      if (item > 0) fold_pair<kGreatest>(value, place_of(item, j), best[j], places[j]);
    }
  }
  if (in_order) fold_in_order<kGreatest>(values, first, items, lanes, best, places);
}

/// kBeside segments of one lane.
template <bool kGreatest, class T>
[[gnu::always_inline]] inline void fold_beside(const T* from, int32_t first, int64_t items, T* best, int32_t* places) {
  using Values = Vector<T>;
  Values most = {};
  Places place = {};
  for (int64_t item = 0; item < items; ++item) {
    const T* const at = from + item;
    const Values values = {at[0],         at[items],     at[2 * items], at[3 * items],
                           at[4 * items], at[5 * items], at[6 * items], at[7 * items]};
    const auto index = static_cast<int32_t>(item);
    if (item == 0) most = values;
    const Places keeps = (kGreatest ? most > values : most < values) | (most != most);
    // The place that was is always the lesser one.
    const Places keeps_place = keeps | (most == values);
    most = keeps ? most : values;
    place = keeps_place ? place : Places{} + index;
  }
  place += first;
  std::memcpy(best, &most, sizeof(most));
  std::memcpy(places, &place, sizeof(place));
}

/// The best of `count` >= kShortSegment values, NaNs left out, and whether there is one among them.
template <bool kGreatest, class T>
[[gnu::always_inline]] inline T best_of(const T* from, int64_t count, bool& has_nan) {
  using Values = Vector<T>;
  constexpr int kVectors = kShortSegment / kWidth;
  Values best[kVectors];
  Places nans[kVectors] = {};
  std::memcpy(best, from, sizeof(best));
  const auto step = [&](const T* at) __attribute__((always_inline)) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Values values;
      std::memcpy(&values, at + v * kWidth, sizeof(values));
      nans[v] |= values != values;
      best[v] = (kGreatest ? best[v] > values : best[v] < values) ? best[v] : values;
    }
  };
  int64_t i = 0;
#pragma GCC unroll 2
  for (; i + kShortSegment <= count; i += kShortSegment) step(from + i);
  if (i < count) step(from + count - kShortSegment);
  const Values one = (kGreatest ? best[0] > best[1] : best[0] < best[1]) ? best[0] : best[1];
  const Places any = nans[0] | nans[1];
  T chosen = one[0];
  int32_t is_any = any[0];
#pragma GCC unroll 8
  for (int lane = 1; lane < kWidth; ++lane) {
    chosen = (kGreatest ? chosen > one[lane] : chosen < one[lane]) ? chosen : one[lane];
    is_any |= any[lane];
  }
  has_nan = is_any != 0;
  return chosen;
}

/// The place of the first of `count` >= kWidth values that equals one of them.
template <class T>
[[gnu::always_inline]] inline int32_t first_place(const T* from, int64_t count, T value) {
  constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  const Places counted = {0, 1, 2, 3, 4, 5, 6, 7};
  Places first = Places{} + kNone;
  const auto step = [&](int64_t i) __attribute__((always_inline)) {
    const Places places = counted + static_cast<int32_t>(i);
    Vector<T> values;
    std::memcpy(&values, from + i, sizeof(values));
    const Places here = values == value ? places : Places{} + kNone;
    first = first < here ? first : here;
  };
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) step(i);
  if (i < count) step(count - kWidth);
  int32_t least = first[0];
#pragma GCC unroll 8
  for (int lane = 1; lane < kWidth; ++lane) least = std::min(least, first[lane]);
  return least;
}

/// One segment of at least kShortSegment values.
template <bool kGreatest, class T>
[[gnu::always_inline]] inline void fold_long(const T* from, int32_t first, int64_t items, T& best, int32_t& place) {
  best = from[0];
  place = first;
  for (int64_t begin = 0; begin < items;) {
    // No block is shorter than a short segment.
    const int64_t rest = items - begin;
    const int64_t count = rest < kBestOf + kShortSegment ? rest : kBestOf;
    const T* const block = from + begin;
    bool has_nan = false;
    const T value = best_of<kGreatest>(block, count, has_nan);
    if (has_nan) {
      const T* const nan = std::find_if(block, block + count, is_nan<T>);
      best = *nan;
      place = first + static_cast<int32_t>(nan - from);
      return;
    }
    if ((kGreatest ? value > best : value < best) || begin == 0) {
      best = value;
      place = first + static_cast<int32_t>(begin) + first_place(block, count, value);
    }
    if (needs_order(value) && value == best) {
      int64_t last = count - 1;
      while (block[last] != value) --last;
      best = block[last];
    }
    begin += count;
  }
}

template <bool kGreatest, class T>
[[gnu::always_inline]] inline void fold_segments(const T* values, int32_t first, int64_t groups, int64_t items,
                                                 int64_t lanes, T* best, int32_t* places) {
  int64_t group = 0;
  if (lanes == 1 && items < kLongSegment) {
    for (; group + kBeside <= groups; group += kBeside)
      fold_beside<kGreatest>(values + group * items, first, items, best + group, places + group);
    values += group * items;
    best += group;
    places += group;
  }
  for (; group < groups; ++group, values += items * lanes, best += lanes, places += lanes) {
    if (lanes == 1 && items < kShortSegment)
      fold_in_order<kGreatest>(values, first, items, 1, best, places);
    else if (lanes == 1)
      fold_long<kGreatest>(values, first, items, *best, *places);
    else if (lanes > kBlockLanes)
      fold_in_order<kGreatest>(values, first, items, lanes, best, places);
    else
      fold_few<kGreatest>(values, first, items, lanes, best, places);
  }
}

template <class T>
const T* values_at(const std::byte* memory) {
  return reinterpret_cast<const T*>(memory);
}
template <class T>
T* values_at(std::byte* memory) {
  return reinterpret_cast<T*>(memory);
}

template <bool kGreatest, class T>
struct Base {
  static void add_lanes(const std::byte* values, int32_t index, int64_t count, std::byte* best, int32_t* places) {
    add_to_lanes<kGreatest>(values_at<T>(values), index, count, values_at<T>(best), places);
  }
  static void combine(const std::byte* values, const int32_t* indices, int64_t count, std::byte* best,
                      int32_t* places) {
    combine_lanes<kGreatest>(values_at<T>(values), indices, count, values_at<T>(best), places);
  }
  static void segments(const std::byte* values, int32_t first, int64_t groups, int64_t items, int64_t lanes,
                       std::byte* best, int32_t* places) {
    fold_segments<kGreatest>(values_at<T>(values), first, groups, items, lanes, values_at<T>(best), places);
  }
};
#if defined(__x86_64__)
template <bool kGreatest, class T>
struct V3 {
  [[gnu::target("arch=x86-64-v3")]] static void add_lanes(const std::byte* values, int32_t index, int64_t count,
                                                          std::byte* best, int32_t* places) {
    add_to_lanes<kGreatest>(values_at<T>(values), index, count, values_at<T>(best), places);
  }
  [[gnu::target("arch=x86-64-v3")]] static void combine(const std::byte* values, const int32_t* indices, int64_t count,
                                                        std::byte* best, int32_t* places) {
    combine_lanes<kGreatest>(values_at<T>(values), indices, count, values_at<T>(best), places);
  }
  [[gnu::target("arch=x86-64-v3")]] static void segments(const std::byte* values, int32_t first, int64_t groups,
                                                         int64_t items, int64_t lanes, std::byte* best,
                                                         int32_t* places) {
    fold_segments<kGreatest>(values_at<T>(values), first, groups, items, lanes, values_at<T>(best), places);
  }
};
#endif

template <template <bool, class> class Level, bool kGreatest, class T>
void set_level(ArgmaxFold& fold) {
  fold.add_lanes = Level<kGreatest, T>::add_lanes;
  fold.combine = Level<kGreatest, T>::combine;
  fold.segments = Level<kGreatest, T>::segments;
}

template <bool kGreatest, class T>
void set_loops(ArgmaxFold& fold) {
  set_level<Base, kGreatest, T>(fold);
#if defined(__x86_64__)
  // Vectors of eight are those of AVX2, and the few instructions that AVX-512 would save are no gain.
  if (cpu_level() != CpuLevel::kBase) set_level<V3, kGreatest, T>(fold);
#endif
}

template <class T>
void set_loops(ArgmaxFold& fold, ArgmaxOrder order) {
  if (order == ArgmaxOrder::kGreatest)
    set_loops<true, T>(fold);
  else
    set_loops<false, T>(fold);
}

/// The type that values are compared in; nothing where there are no loops for it.
std::optional<tensor::DType> compared_type(tensor::DType element) {
  using tensor::DType;
  if (element == DType::kUint32) return DType::kUint32;
  if (tensor::size_bytes(element) > 4) return std::nullopt;
  if (tensor::is_float(element)) return DType::kFloat32;
  if (tensor::is_integer(element) || element == DType::kBool) return DType::kInt32;
  return std::nullopt;
}

}  // namespace

std::optional<ArgmaxFold> find_argmax_fold(ArgmaxOrder order, tensor::DType element) {
  const std::optional<tensor::DType> value = compared_type(element);
  if (!value) return std::nullopt;
  ArgmaxFold fold;
  fold.value = *value;
  if (*value != element) {
    fold.widen = find_scalar_kernel(ScalarOp::kConvert, element, *value);
    fold.narrow = find_scalar_kernel(ScalarOp::kConvert, *value, element);
    if (fold.widen == nullptr || fold.narrow == nullptr) return std::nullopt;
  }
  if (*value == tensor::DType::kFloat32) set_loops<float>(fold, order);
  if (*value == tensor::DType::kInt32) set_loops<int32_t>(fold, order);
  if (*value == tensor::DType::kUint32) set_loops<uint32_t>(fold, order);
  return fold;
}

}  // namespace meshd::kernels
