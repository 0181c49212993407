#include "service/kernels/sort/vector_sort.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

#include <hwy/contrib/sort/vqsort.h>

#include "service/core/checked_math.h"
#include "service/kernels/cpu.h"
#include "service/kernels/sort/sort_buckets.h"
#include "service/kernels/sort/vector_sort_avx2.h"

namespace meshd::kernels {
namespace {

// Below this a sorter's own memory costs more than the sort.
constexpr int64_t kSmall = 24;
// Up to here a sort is one call: some hundred milliseconds.
constexpr int64_t kLong = int64_t{1} << 24;
constexpr int kDeepest = 3;  // equal keys are never separated
constexpr int64_t kKeysBetweenCheckpoints = int64_t{1} << 20;

template <typename T>
void sort_by_library(T* keys, int64_t count) {
  hwy::Sorter()(keys, static_cast<size_t>(count), hwy::SortAscending());
}

#if defined(__x86_64__)
// Seconds of a sort of some keys: the least of three.
template <typename Sort>
double seconds_of(const Sort& sort) {
  constexpr size_t kCount = 4096;
  double least = 1;
  for (int round = 0; round < 3; ++round) {
    std::array<uint32_t, kCount> keys;
    for (size_t i = 0; i < kCount; ++i) keys[i] = static_cast<uint32_t>(i + 1) * 2654435761U;
    const auto start = std::chrono::steady_clock::now();
    sort(keys.data(), kCount);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

// Both give the same keys, so this may be measured in each process anew.
bool is_avx2_faster() {
  if (cpu_level() != CpuLevel::kV4) return cpu_level() == CpuLevel::kV3;
  static const bool is_faster = seconds_of(vector_sort_avx2) < seconds_of([](uint32_t* keys, size_t count) {
                                  sort_by_library(keys, static_cast<int64_t>(count));
                                });
  return is_faster;
}
#endif

void sort_many(uint32_t* keys, int64_t count) {
#if defined(__x86_64__)
  if (is_avx2_faster()) return vector_sort_avx2(keys, static_cast<size_t>(count));
#endif
  sort_by_library(keys, count);
}
void sort_many(uint64_t* keys, int64_t count) { sort_by_library(keys, count); }
void sort_many(Wide128* keys, int64_t count) {
  static_assert(sizeof(Wide128) == sizeof(hwy::uint128_t) && offsetof(Wide128, low) == offsetof(hwy::uint128_t, lo));
  sort_by_library(reinterpret_cast<hwy::uint128_t*>(keys), count);
}

template <typename T>
void sort_keys(T* keys, int64_t count) {
  if (count <= kSmall) {
    std::sort(keys, keys + count);
  } else {
    sort_many(keys, count);
  }
}

// A sample sort (sort_buckets.h) on one thread. Keys that are equal are the same, so the result is the only one there
// is.
template <typename T>
void sort_long(T* keys, T* spare, int64_t count, core::Checkpoint* checkpoint, int depth) {
  core::pass(checkpoint);
  if (count <= kLong || depth == kDeepest) return vector_sort(keys, count);
  std::array<T, static_cast<size_t>(kSortBuckets) - 1> bounds;
  choose_bounds(keys, count, bounds.data());
  std::vector<uint8_t> buckets(static_cast<size_t>(count));
  const int64_t pieces = core::ceil_div(count, kKeysBetweenCheckpoints);
  std::vector<int64_t> counts(static_cast<size_t>(pieces * kSortBuckets));
  const auto for_each_piece = [&](const auto& run) {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      core::pass(checkpoint);
      const int64_t first = piece * kKeysBetweenCheckpoints;
      run(piece, keys + first, buckets.data() + first, std::min(kKeysBetweenCheckpoints, count - first));
    }
  };
  for_each_piece([&](int64_t piece, const T* some, uint8_t* of_some, int64_t size) {
    count_in_buckets(some, size, bounds.data(), of_some, counts.data() + piece * kSortBuckets);
  });
  for_each_piece([&](int64_t piece, const T* some, const uint8_t* of_some, int64_t size) {
    deal_to_buckets(some, of_some, size, counts, piece, spare);
  });
  std::array<int64_t, static_cast<size_t>(kSortBuckets) + 1> starts;
  bucket_starts(counts, starts.data());
  for (size_t bucket = 0; bucket < static_cast<size_t>(kSortBuckets); ++bucket) {
    const int64_t size = starts[bucket + 1] - starts[bucket];
    T* const home = keys + starts[bucket];
    std::copy_n(spare + starts[bucket], size, home);
    sort_long(home, spare, size, checkpoint, depth + 1);
  }
}

}  // namespace

void vector_sort(uint32_t* keys, uint32_t* spare, int64_t count, core::Checkpoint* checkpoint) {
  sort_long(keys, spare, count, checkpoint, 0);
}
void vector_sort(uint64_t* keys, uint64_t* spare, int64_t count, core::Checkpoint* checkpoint) {
  sort_long(keys, spare, count, checkpoint, 0);
}
void vector_sort(Wide128* keys, Wide128* spare, int64_t count, core::Checkpoint* checkpoint) {
  sort_long(keys, spare, count, checkpoint, 0);
}

void vector_sort(uint32_t* keys, int64_t count) { sort_keys(keys, count); }
void vector_sort(uint64_t* keys, int64_t count) { sort_keys(keys, count); }
void vector_sort(Wide128* keys, int64_t count) { sort_keys(keys, count); }

}  // namespace meshd::kernels
