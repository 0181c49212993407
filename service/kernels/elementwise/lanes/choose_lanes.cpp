#include "service/kernels/elementwise/lanes/choose_lanes.h"

#include "service/kernels/element_width.h"

namespace meshd::kernels {
namespace {

template <typename Word>
void choose_words(const bool* keeps, const std::byte* next, std::byte* kept, int32_t* choices, int32_t offset,
                  int64_t count) {
  const auto* from = reinterpret_cast<const Word*>(next);
  auto* to = reinterpret_cast<Word*>(kept);
  for (int64_t lane = 0; lane < count; ++lane) {
    const bool keep = keeps[lane];
    to[lane] = keep ? to[lane] : from[lane];
    choices[lane] = keep ? choices[lane] : offset;
  }
}

template <typename Word>
void keep_words(const bool* keeps, const std::byte* otherwise, std::byte* values, int64_t count) {
  const auto* from = reinterpret_cast<const Word*>(otherwise);
  auto* to = reinterpret_cast<Word*>(values);
  for (int64_t lane = 0; lane < count; ++lane) to[lane] = keeps[lane] ? to[lane] : from[lane];
}

template <typename Word>
void put_words(const bool* chosen, const std::byte* combined, const std::byte* first, std::byte* sums, bool* has_sum,
               int64_t count) {
  const auto* both = reinterpret_cast<const Word*>(combined);
  const auto* alone = reinterpret_cast<const Word*>(first);
  auto* to = reinterpret_cast<Word*>(sums);
  for (int64_t lane = 0; lane < count; ++lane) {
    const Word made = has_sum[lane] ? both[lane] : alone[lane];
    to[lane] = chosen[lane] ? made : to[lane];
  }
  for (int64_t lane = 0; lane < count; ++lane) has_sum[lane] = has_sum[lane] | chosen[lane];
}

}  // namespace

void choose_lanes(const bool* keeps, const std::byte* next, std::byte* kept, int64_t element_bytes, int32_t* choices,
                  int32_t offset, int64_t count) {
  with_element(element_bytes,
               [&](auto word) { choose_words<decltype(word)>(keeps, next, kept, choices, offset, count); });
}

void keep_lanes(const bool* keeps, const std::byte* otherwise, std::byte* values, int64_t element_bytes,
                int64_t count) {
  with_element(element_bytes, [&](auto word) { keep_words<decltype(word)>(keeps, otherwise, values, count); });
}

bool lanes_equal(const int32_t* choices, int32_t wanted, bool* equal, int64_t count) {
  int any = 0;
  for (int64_t lane = 0; lane < count; ++lane) {
    const bool is_equal = choices[lane] == wanted;
    equal[lane] = is_equal;
    any |= static_cast<int>(is_equal);
  }
  return any != 0;
}

void put_lanes(const bool* chosen, const std::byte* combined, const std::byte* first, std::byte* sums, bool* has_sum,
               int64_t element_bytes, int64_t count) {
  with_element(element_bytes,
               [&](auto word) { put_words<decltype(word)>(chosen, combined, first, sums, has_sum, count); });
}

}  // namespace meshd::kernels
