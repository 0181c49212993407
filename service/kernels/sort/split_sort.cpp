#include "service/kernels/sort/split_sort.h"

#include <algorithm>
#include <span>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/sort/packed_keys.h"
#include "service/kernels/sort/sort_buckets.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kPiece = 64 << 10;
constexpr int64_t kShortest = 128 << 10;  // of lines that are split
constexpr int64_t kFew = 16;              // lines: more are shared among threads as they are
constexpr int64_t kMostBits = 128;

}  // namespace

struct SplitSort::Line {
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  std::byte* workspace = nullptr;

  template <typename T>
  [[nodiscard]] T* at(int64_t offset) const {
    return reinterpret_cast<T*>(workspace + offset);
  }
};

bool SplitSort::pays(int64_t lines, int64_t length) { return length >= kShortest && lines < kFew; }

bool SplitSort::takes(const std::vector<int64_t>& elem_sizes, const std::vector<SortKey>& keys, int64_t length) {
  if (std::ranges::any_of(keys, [](const SortKey& key) { return key.nan_is_unordered || !is_nan_like_nans(key); }))
    return false;
  if (elem_sizes.size() == 1 && keys.size() == 1) return elem_sizes[0] > 1;  // keys of a byte are counted
  return packed_bits(keys) <= kMostBits && length <= int64_t{UINT32_MAX};
}

SplitSort::SplitSort(int64_t lines, int64_t length, std::vector<int64_t> elem_sizes, std::vector<SortKey> keys)
    : lines_(lines),
      length_(length),
      elem_sizes_(std::move(elem_sizes)),
      keys_(std::move(keys)),
      pieces_(core::ceil_div(length, kPiece)),
      has_index_(elem_sizes_.size() > 1 || keys_.size() > 1) {
  if (has_index_) {
    key_bytes_ = packed_bits(keys_) <= 64 ? 8 : 16;
    scratch_bytes_ = kPiece * static_cast<int64_t>(sizeof(uint64_t));
  } else {
    key_bytes_ = std::max<int64_t>(4, elem_sizes_[0]);
  }
  keys_in_result_ = !has_index_ && key_bytes_ == elem_sizes_[0];
  const auto take = [&](int64_t& offset, int64_t bytes) {
    offset = line_bytes_;
    line_bytes_ += core::round_up(bytes, 64);
  };
  if (!keys_in_result_) take(keys_at_, core::checked_mul(length, key_bytes_));
  take(dealt_at_, core::checked_mul(length, key_bytes_));
  take(buckets_at_, length);
  take(bounds_at_, kSortBuckets * key_bytes_);
  take(counts_at_, pieces_ * kSortBuckets * static_cast<int64_t>(sizeof(int64_t)));
  take(exact_at_, pieces_);
  take(alike_at_, pieces_ * static_cast<int64_t>(sizeof(AlikeElements)));
  const std::array<int64_t, kPhases> items = {pieces_, 1, pieces_, pieces_, kSortBuckets, pieces_, pieces_};
  for (size_t phase = 0; phase < kPhases; ++phase)
    first_items_[phase + 1] = first_items_[phase] + lines_ * items[phase];
}

int64_t SplitSort::piece_length(int64_t piece) const { return std::min(kPiece, length_ - piece * kPiece); }

template <typename T>
T* SplitSort::keys_of(const Line& line) const {
  return keys_in_result_ ? reinterpret_cast<T*>(line.to[0]) : line.at<T>(keys_at_);
}

template <typename T>
void SplitSort::make_keys(int64_t piece, const Line& line, std::byte* scratch) const {
  const int64_t first = piece * kPiece;
  const int64_t count = piece_length(piece);
  T* const keys = keys_of<T>(line) + first;
  if constexpr (sizeof(T) > sizeof(uint32_t)) {
    if (has_index_) {
      pack_keys(keys_, line.from.data(), first, count, keys, reinterpret_cast<uint64_t*>(scratch));
      return;
    }
  }
  if constexpr (sizeof(T) <= sizeof(uint64_t)) {
    const KeyFacts facts = build_keys(keys_[0], line.from[0] + first * elem_sizes_[0], count, keys);
    line.at<uint8_t>(exact_at_)[piece] = facts.is_exact ? 1 : 0;
  }
}

template <typename T>
void SplitSort::sort_bucket(int64_t bucket, const Line& line, core::Checkpoint* checkpoint) const {
  std::array<int64_t, static_cast<size_t>(kSortBuckets) + 1> starts;
  bucket_starts({line.at<const int64_t>(counts_at_), static_cast<size_t>(pieces_ * kSortBuckets)}, starts.data());
  const int64_t start = starts[static_cast<size_t>(bucket)];
  const int64_t count = starts[static_cast<size_t>(bucket) + 1] - start;
  if (count == 0) return;
  T* const sorted = line.at<T>(dealt_at_) + start;
  vector_sort(sorted, keys_of<T>(line) + start, count, checkpoint);
  if constexpr (sizeof(T) > sizeof(uint32_t)) {
    if (has_index_) {
      for (size_t k = 0; k < elem_sizes_.size(); ++k) {
        for (int64_t at = 0; at < count; at += kPiece) {
          core::pass(checkpoint);
          permute_by(sorted + at, std::min(kPiece, count - at), line.from[k],
                     line.to[k] + (start + at) * elem_sizes_[k], elem_sizes_[k]);
        }
      }
      return;
    }
  }
  if constexpr (sizeof(T) <= sizeof(uint64_t))
    restore_elements(keys_[0], sorted, count, line.to[0] + start * elem_sizes_[0]);
}

bool SplitSort::is_exact(const Line& line) const {
  const auto* const exact = line.at<const uint8_t>(exact_at_);
  return has_index_ || std::all_of(exact, exact + pieces_, [](uint8_t is) { return is != 0; });
}

// Of every piece: one whose zeros all are those of the key has its places among the others.
void SplitSort::count_alike_elements(int64_t piece, const Line& line) const {
  if (is_exact(line)) return;
  line.at<AlikeElements>(alike_at_)[piece] =
      count_alike(keys_[0], line.from[0] + piece * kPiece * elem_sizes_[0], piece_length(piece));
}

// The keys are sorted in the workspace, so that each piece finds where its elements go.
template <typename T>
void SplitSort::place_alike_elements(int64_t piece, const Line& line) const {
  if constexpr (sizeof(T) <= sizeof(uint64_t)) {
    if (is_exact(line)) return;
    const std::span alike(line.at<const AlikeElements>(alike_at_), static_cast<size_t>(pieces_));
    const AlikeElements& mine = alike[static_cast<size_t>(piece)];
    if (mine.zeros == 0 && mine.nans == 0) return;
    AlikeElements places = first_alike(keys_[0], line.at<const T>(dealt_at_), length_);
    for (const AlikeElements& before : alike.first(static_cast<size_t>(piece))) {
      places.zeros += before.zeros;
      places.nans += before.nans;
    }
    place_alike(keys_[0], line.from[0] + piece * kPiece * elem_sizes_[0], piece_length(piece), places, line.to[0]);
  }
}

template <typename T>
void SplitSort::run_item(Phase phase, int64_t item, const Line& line, std::byte* scratch,
                         core::Checkpoint* checkpoint) const {
  T* const bounds = line.at<T>(bounds_at_);
  int64_t* const counts = line.at<int64_t>(counts_at_);
  const int64_t first = item * kPiece;
  uint8_t* const buckets = line.at<uint8_t>(buckets_at_) + first;
  switch (phase) {
    case kKeys:
      return make_keys<T>(item, line, scratch);
    case kBounds:
      return choose_bounds(keys_of<T>(line), length_, bounds);
    case kCount:
      return count_in_buckets(keys_of<T>(line) + first, piece_length(item), bounds, buckets,
                              counts + item * kSortBuckets);
    case kDeal:
      return deal_to_buckets(keys_of<T>(line) + first, buckets, piece_length(item),
                             {counts, static_cast<size_t>(pieces_ * kSortBuckets)}, item, line.at<T>(dealt_at_));
    case kSort:
      return sort_bucket<T>(item, line, checkpoint);
    case kCountAlike:
      return count_alike_elements(item, line);
    default:
      return place_alike_elements<T>(item, line);
  }
}

void SplitSort::run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch,
                    std::byte* workspace, int64_t begin, int64_t end, core::Checkpoint* checkpoint) const {
  size_t phase = 0;
  Line line{std::vector<const std::byte*>(elem_sizes_.size()), std::vector<std::byte*>(elem_sizes_.size())};
  for (int64_t work_item = begin; work_item < end; ++work_item) {
    core::pass(checkpoint);
    while (work_item >= first_items_[phase + 1]) ++phase;
    const int64_t items = (first_items_[phase + 1] - first_items_[phase]) / lines_;
    const int64_t in_phase = work_item - first_items_[phase];
    const int64_t number = in_phase / items;
    for (size_t k = 0; k < elem_sizes_.size(); ++k) {
      line.from[k] = operands[k] + number * length_ * elem_sizes_[k];
      line.to[k] = results[k] + number * length_ * elem_sizes_[k];
    }
    line.workspace = workspace + number * line_bytes_;
    const auto which = static_cast<Phase>(phase);
    const int64_t item = in_phase % items;
    if (key_bytes_ == 4)
      run_item<uint32_t>(which, item, line, scratch, checkpoint);
    else if (key_bytes_ == 8)
      run_item<uint64_t>(which, item, line, scratch, checkpoint);
    else
      run_item<Wide128>(which, item, line, scratch, checkpoint);
  }
}

}  // namespace meshd::kernels
