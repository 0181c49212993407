#include "service/kernels/sort/top_k.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "service/core/checked_math.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kTopKItemElements = 64 << 10;
constexpr int64_t kChunk = 1024;           // keys made at once
constexpr int64_t kLeastCandidates = 256;  // so that small k do not select all the time

template <typename T>
struct Candidate {
  T key;
  int32_t index;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  }
};

}  // namespace

TopK::TopK(const TopKSpec& spec) : spec_(spec) {
  key_.dtype = spec.dtype;
  key_.descending = spec.largest;
  if (spec.lines == 0 || spec.k == 0) return;
  lines_per_work_item_ = std::max<int64_t>(1, kTopKItemElements / spec.length);
  work_count_ = core::ceil_div(spec.lines, lines_per_work_item_);
}

// Smaller keys come first. Candidates are kept until there are 2 k, then the better half stays and its worst key is the
// threshold: a later element that is equal to it is behind it, so it is skipped.
template <typename T>
void TopK::run_lines(const std::byte* elements, std::byte* values, int32_t* indices, int64_t begin, int64_t end,
                     core::Checkpoint* checkpoint) const {
  const int64_t size = tensor::size_bytes(spec_.dtype);
  const auto k = static_cast<size_t>(spec_.k);
  const size_t most = 2 * std::max<size_t>(k, kLeastCandidates);
  std::vector<T> keys(static_cast<size_t>(std::min(kChunk, spec_.length)));
  std::vector<Candidate<T>> best;
  best.reserve(std::min(most, static_cast<size_t>(spec_.length)));
  const int64_t stop = std::min(spec_.lines, end * lines_per_work_item_);
  for (int64_t line = begin * lines_per_work_item_; line < stop; ++line) {
    const std::byte* from = elements + line * spec_.length * size;
    best.clear();
    bool has_bar = false;
    T bar{};
    for (int64_t at = 0; at < spec_.length; at += kChunk) {
      core::pass(checkpoint);
      const int64_t count = std::min(kChunk, spec_.length - at);
      build_keys(key_, from + at * size, count, keys.data());
      for (int64_t i = 0; i < count; ++i) {
        const T key = keys[static_cast<size_t>(i)];
        if (has_bar && key >= bar) continue;
        best.push_back({key, static_cast<int32_t>(at + i)});
        if (best.size() < most) continue;
        const auto last = best.begin() + static_cast<std::ptrdiff_t>(k) - 1;
        std::nth_element(best.begin(), last, best.end());
        bar = last->key;
        has_bar = true;
        best.resize(k);
      }
    }
    std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(k), best.end());
    for (size_t i = 0; i < k; ++i) {
      const int64_t to = line * spec_.k + static_cast<int64_t>(i);
      std::memcpy(values + to * size, from + best[i].index * size, static_cast<size_t>(size));
      indices[to] = best[i].index;
    }
  }
}

void TopK::run(const std::byte* elements, std::byte* values, int32_t* indices, int64_t begin, int64_t end,
               core::Checkpoint* checkpoint) const {
  if (tensor::size_bytes(spec_.dtype) <= 4) {
    run_lines<uint32_t>(elements, values, indices, begin, end, checkpoint);
  } else {
    run_lines<uint64_t>(elements, values, indices, begin, end, checkpoint);
  }
}

}  // namespace meshd::kernels
