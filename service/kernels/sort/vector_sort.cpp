#include "service/kernels/sort/vector_sort.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

#include <hwy/contrib/sort/vqsort.h>

#include "service/kernels/cpu.h"
#include "service/kernels/sort/vector_sort_avx2.h"

namespace meshd::kernels {
namespace {

// Below this a sorter's own memory costs more than the sort.
constexpr int64_t kSmall = 24;
// Up to here a sort is one call: some hundred milliseconds.
constexpr int64_t kLong = int64_t{1} << 24;
constexpr int kDeepest = 3;  // equal keys are never separated
constexpr int64_t kBuckets = 256;
constexpr int64_t kSamplesPerBucket = 16;
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

void sort_keys(uint32_t* keys, int64_t count) {
  if (count <= kSmall) {
    std::sort(keys, keys + count);
    return;
  }
#if defined(__x86_64__)
  if (is_avx2_faster()) return vector_sort_avx2(keys, static_cast<size_t>(count));
#endif
  sort_by_library(keys, count);
}

void sort_keys(uint64_t* keys, int64_t count) {
  if (count <= kSmall) {
    std::sort(keys, keys + count);
    return;
  }
  sort_by_library(keys, count);
}

bool is_less(uint32_t a, uint32_t b) { return a < b; }
bool is_less(uint64_t a, uint64_t b) { return a < b; }
bool is_less(const Wide128& a, const Wide128& b) { return a.high != b.high ? a.high < b.high : a.low < b.low; }

// Sample sort: (1) a sorted sample gives the bounds of the buckets; (2) keys are counted and distributed to their
// buckets; (3) each bucket is sorted. Keys that are equal are the same, so the result is the only one there is.
template <typename T>
void sort_long(T* keys, T* spare, int64_t count, core::Checkpoint* checkpoint, int depth) {
  core::pass(checkpoint);
  if (count <= kLong || depth == kDeepest) return vector_sort(keys, count);
  std::vector<T> bounds;
  const int64_t sample_count = (kBuckets - 1) * kSamplesPerBucket;
  for (int64_t i = 0; i < sample_count; ++i) bounds.push_back(keys[i * (count / sample_count)]);
  std::sort(bounds.begin(), bounds.end(), [](const T& a, const T& b) { return is_less(a, b); });
  for (int64_t i = 0; i + 1 < kBuckets; ++i)
    bounds[static_cast<size_t>(i)] = bounds[static_cast<size_t>(i * kSamplesPerBucket + kSamplesPerBucket / 2)];
  bounds.resize(kBuckets - 1);
  // How many bounds are not above the key: its bucket.
  const auto bucket_of = [&](const T& key) {
    size_t at = 0;
    for (size_t step = kBuckets / 2; step > 0; step /= 2) at += is_less(key, bounds[at + step - 1]) ? 0 : step;
    return at;
  };
  std::array<int64_t, kBuckets + 1> starts{};
  std::vector<uint8_t> buckets(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    if (i % kKeysBetweenCheckpoints == 0) core::pass(checkpoint);
    const size_t bucket = bucket_of(keys[i]);
    buckets[static_cast<size_t>(i)] = static_cast<uint8_t>(bucket);
    ++starts[bucket + 1];
  }
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) starts[bucket + 1] += starts[bucket];
  std::array<int64_t, kBuckets + 1> places = starts;
  for (int64_t i = 0; i < count; ++i) {
    if (i % kKeysBetweenCheckpoints == 0) core::pass(checkpoint);
    spare[places[buckets[static_cast<size_t>(i)]]++] = keys[i];
  }
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
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

void vector_sort(Wide128* keys, int64_t count) {
  static_assert(sizeof(Wide128) == sizeof(hwy::uint128_t) && offsetof(Wide128, low) == offsetof(hwy::uint128_t, lo));
  if (count <= kSmall) {
    std::sort(keys, keys + count, [](const Wide128& a, const Wide128& b) { return is_less(a, b); });
    return;
  }
  hwy::Sorter()(reinterpret_cast<hwy::uint128_t*>(keys), static_cast<size_t>(count), hwy::SortAscending());
}

}  // namespace meshd::kernels
