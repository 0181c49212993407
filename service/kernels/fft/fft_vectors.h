// Vectors of the transforms' loops, and pairs of real and imaginary parts in them. Inlined into loops of any
// instruction level; private to the transforms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

// Vectors wider than the processor's are passed by reference only; nothing depends on how they would be passed.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace meshd::kernels {

/// Vectors of kBytes, which a processor's registers hold: of scratch, which is aligned, and of any place.
template <class T, int64_t kBytes>
struct Vectors {
  static constexpr int64_t kCount = kBytes / static_cast<int64_t>(sizeof(T));
  typedef T Type __attribute__((vector_size(kBytes)));
  typedef T Loose __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
};

/// How pairs of values become a vector of each part, and pairs again; `reversed`: the last pair is the first lane.
template <class T, int64_t kBytes>
struct Pairs {
  static constexpr int64_t kCount = Vectors<T, kBytes>::kCount;
  static constexpr auto kLanes = std::make_index_sequence<kCount>();
  using V = typename Vectors<T, kBytes>::Type;
  using Loose = typename Vectors<T, kBytes>::Loose;

  template <size_t... kLane>
  [[gnu::always_inline]] static void load(const T* from, V& first, V& second, std::index_sequence<kLane...>) {
    const V a = *reinterpret_cast<const Loose*>(from);
    const V b = *reinterpret_cast<const Loose*>(from + kCount);
    first = __builtin_shufflevector(a, b, (2 * kLane)...);
    second = __builtin_shufflevector(a, b, (2 * kLane + 1)...);
  }
  template <size_t... kLane>
  [[gnu::always_inline]] static void load_reversed(const T* from, V& first, V& second, std::index_sequence<kLane...>) {
    const V a = *reinterpret_cast<const Loose*>(from);
    const V b = *reinterpret_cast<const Loose*>(from + kCount);
    first = __builtin_shufflevector(a, b, (2 * (kCount - 1 - kLane))...);
    second = __builtin_shufflevector(a, b, (2 * (kCount - 1 - kLane) + 1)...);
  }
  template <size_t... kLane>
  [[gnu::always_inline]] static void store(const V& first, const V& second, T* to, std::index_sequence<kLane...>) {
    *reinterpret_cast<Loose*>(to) = __builtin_shufflevector(first, second, (kLane / 2 + kLane % 2 * kCount)...);
    *reinterpret_cast<Loose*>(to + kCount) =
        __builtin_shufflevector(first, second, (kCount / 2 + kLane / 2 + kLane % 2 * kCount)...);
  }
  template <size_t... kLane>
  [[gnu::always_inline]] static void store_reversed(const V& first, const V& second, T* to,
                                                    std::index_sequence<kLane...>) {
    *reinterpret_cast<Loose*>(to) =
        __builtin_shufflevector(first, second, (kCount - 1 - kLane / 2 + kLane % 2 * kCount)...);
    *reinterpret_cast<Loose*>(to + kCount) =
        __builtin_shufflevector(first, second, (kCount / 2 - 1 - kLane / 2 + kLane % 2 * kCount)...);
  }
};

}  // namespace meshd::kernels
