#include "service/kernels/sort/sort_buckets.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "service/kernels/cpu.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kSamplesPerBucket = 64;
constexpr int64_t kBounds = kSortBuckets - 1;
constexpr int64_t kVectorBytes = 64;

// Every bound is compared with every key of a vector, without a branch.
template <typename T>
[[gnu::always_inline]] inline int64_t find_loop(const T* keys, int64_t count, const T* bounds, uint8_t* buckets) {
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));
  using Vector [[gnu::vector_size(kVectorBytes)]] = T;
  Vector wide[kBounds];
  for (int64_t b = 0; b < kBounds; ++b) wide[b] = bounds[b] - Vector{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vector some;
    std::memcpy(&some, keys + i, sizeof(some));
    Vector found{};
    for (const Vector& bound : wide) found -= reinterpret_cast<Vector>(some >= bound);  // all ones are -1
    for (int64_t lane = 0; lane < kLanes; ++lane) buckets[i + lane] = static_cast<uint8_t>(found[lane]);
  }
  return i;
}

template <typename T>
int64_t find_base(const T* keys, int64_t count, const T* bounds, uint8_t* buckets) {
  return find_loop(keys, count, bounds, buckets);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("arch=x86-64-v3")]] int64_t find_v3(const T* keys, int64_t count, const T* bounds, uint8_t* buckets) {
  return find_loop(keys, count, bounds, buckets);
}
template <typename T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] int64_t find_v4(const T* keys, int64_t count, const T* bounds,
                                                                          uint8_t* buckets) {
  return find_loop(keys, count, bounds, buckets);
}
#endif

template <typename T>
int64_t find_many(const T* keys, int64_t count, const T* bounds, uint8_t* buckets) {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return find_v4(keys, count, bounds, buckets);
  if (cpu_level() == CpuLevel::kV3) return find_v3(keys, count, bounds, buckets);
#endif
  return find_base(keys, count, bounds, buckets);
}
int64_t find_many(const Wide128*, int64_t, const Wide128*, uint8_t*) { return 0; }

}  // namespace

template <typename T>
void choose_bounds(const T* keys, int64_t count, T* bounds) {
  constexpr int64_t kSamples = kSortBuckets * kSamplesPerBucket;
  std::array<T, static_cast<size_t>(kSamples)> sample;
  for (int64_t i = 0; i < kSamples; ++i) sample[static_cast<size_t>(i)] = keys[i * count / kSamples];
  std::sort(sample.begin(), sample.end());
  for (int64_t b = 0; b < kBounds; ++b) bounds[b] = sample[static_cast<size_t>((b + 1) * kSamplesPerBucket)];
}

template <typename T>
void count_in_buckets(const T* keys, int64_t count, const T* bounds, uint8_t* buckets, int64_t* counts) {
  for (int64_t i = find_many(keys, count, bounds, buckets); i < count; ++i) {
    int64_t at = 0;
    for (int64_t step = kSortBuckets / 2; step > 0; step /= 2) at += keys[i] < bounds[at + step - 1] ? 0 : step;
    buckets[i] = static_cast<uint8_t>(at);
  }
  // Two tables, so that equal neighbours do not wait for each other.
  std::array<std::array<int64_t, static_cast<size_t>(kSortBuckets)>, 2> tables{};
  for (int64_t i = 0; i < count; ++i) ++tables[static_cast<size_t>(i % 2)][buckets[i]];
  for (size_t b = 0; b < static_cast<size_t>(kSortBuckets); ++b) counts[b] = tables[0][b] + tables[1][b];
}

void bucket_starts(std::span<const int64_t> counts, int64_t* starts) {
  std::fill_n(starts, kSortBuckets + 1, int64_t{0});
  for (size_t i = 0; i < counts.size(); ++i) starts[static_cast<int64_t>(i) % kSortBuckets + 1] += counts[i];
  for (int64_t b = 0; b < kSortBuckets; ++b) starts[b + 1] += starts[b];
}

template <typename T>
void deal_to_buckets(const T* keys, const uint8_t* buckets, int64_t count, std::span<const int64_t> counts,
                     int64_t piece, T* to) {
  std::array<int64_t, static_cast<size_t>(kSortBuckets) + 1> places;
  bucket_starts(counts, places.data());
  for (int64_t i = 0; i < piece * kSortBuckets; ++i)
    places[static_cast<size_t>(i % kSortBuckets)] += counts[static_cast<size_t>(i)];
  for (int64_t i = 0; i < count; ++i) to[places[buckets[i]]++] = keys[i];
}

template void choose_bounds(const uint32_t*, int64_t, uint32_t*);
template void choose_bounds(const uint64_t*, int64_t, uint64_t*);
template void choose_bounds(const Wide128*, int64_t, Wide128*);
template void count_in_buckets(const uint32_t*, int64_t, const uint32_t*, uint8_t*, int64_t*);
template void count_in_buckets(const uint64_t*, int64_t, const uint64_t*, uint8_t*, int64_t*);
template void count_in_buckets(const Wide128*, int64_t, const Wide128*, uint8_t*, int64_t*);
template void deal_to_buckets(const uint32_t*, const uint8_t*, int64_t, std::span<const int64_t>, int64_t, uint32_t*);
template void deal_to_buckets(const uint64_t*, const uint8_t*, int64_t, std::span<const int64_t>, int64_t, uint64_t*);
template void deal_to_buckets(const Wide128*, const uint8_t*, int64_t, std::span<const int64_t>, int64_t, Wide128*);

}  // namespace meshd::kernels
