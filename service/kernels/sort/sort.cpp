#include "service/kernels/sort/sort.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/kernels/element_width.h"
#include "service/kernels/movement/movement_loops.h"
#include "service/kernels/sort/merge_sort.h"
#include "service/kernels/sort/packed_keys.h"
#include "service/kernels/sort/vector_sort.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kSortItemElements = 16 << 10;
constexpr int64_t kLinesAtOnce = 16;  // interleaved lines that are packed together: a cache line of four-byte elements
constexpr int64_t kPackedBytes = 4 << 20;  // at most, unless one line is larger

// Memory for the order of one line: what is sorted, and as much again for the sort, each of so many bytes an element.
// The second half has the keys before that, and the order behind it.
constexpr int64_t kNarrowBytes = 8;
constexpr int64_t kWideBytes = 16;

template <typename T>
T* second_half(std::byte* memory, int64_t length) {
  return reinterpret_cast<T*>(memory + static_cast<int64_t>(sizeof(T)) * length);
}

constexpr int64_t kElementsBetweenCheckpoints = int64_t{1} << 18;

template <typename T>
void permute_as(const std::byte* from, std::byte* to, const int64_t* order, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), from + order[i] * static_cast<int64_t>(sizeof(T)), sizeof(T));
}

void permute_some(const std::byte* from, std::byte* to, const int64_t* order, int64_t count, int64_t elem_size) {
  with_element(elem_size, [&](auto element) { permute_as<decltype(element)>(from, to, order, count); });
}

void permute(const std::byte* from, std::byte* to, const int64_t* order, int64_t count, int64_t elem_size,
             core::Checkpoint* checkpoint) {
  for (int64_t at = 0; at < count; at += kElementsBetweenCheckpoints) {
    core::pass(checkpoint);
    permute_some(from, to + at * elem_size, order + at, std::min(kElementsBetweenCheckpoints, count - at), elem_size);
  }
}

// Keys of a byte are counted.
void counting_sort(uint8_t* keys, int64_t count) {
  std::array<int64_t, 256> counts{};
  for (int64_t i = 0; i < count; ++i) ++counts[keys[i]];
  uint8_t* at = keys;
  for (size_t key = 0; key < counts.size(); ++key) at = std::fill_n(at, counts[key], static_cast<uint8_t>(key));
}

}  // namespace

// Sorts lines one after another. One thread, for one call.
class Sort::Lines {
 public:
  Lines(const Sort& sort, core::Checkpoint* checkpoint)
      : sort_(sort), checkpoint_(checkpoint), comparator_(sort.spec_.comparator, sort.elem_sizes_) {
    comparator_.set_checkpoint(checkpoint);
  }

  // `from` and `to`: a contiguous line of each operand.
  void sort_line(const std::byte* const* from, std::byte* const* to, std::byte* memory) {
    if (sort_.keys_ && sort_.elem_sizes_.size() == 1 && sort_.keys_->size() == 1) {
      const SortKey& key = sort_.keys_->front();
      const bool done = sort_.elem_sizes_[0] == 1   ? sort_elements<uint8_t>(key, from[0], to[0], memory)
                        : sort_.elem_sizes_[0] == 8 ? sort_elements<uint64_t>(key, from[0], to[0], memory)
                                                    : sort_elements<uint32_t>(key, from[0], to[0], memory);
      if (done) return;
    }
    const int64_t length = sort_.spec_.length;
    // Keys and the order have 8 bytes an element, in the second half whatever is sorted.
    auto* const order = reinterpret_cast<int64_t*>(memory + sort_.sorted_bytes() * length);
    if (!sort_.keys_ || !order_by_keys(from, memory, order)) {
      comparator_.set_lines(from);
      const auto count = static_cast<size_t>(length);
      merge_sort(comparator_, {order, count}, {reinterpret_cast<int64_t*>(memory), count});
    }
    for (size_t k = 0; k < sort_.elem_sizes_.size(); ++k)
      permute(from[k], to[k], order, length, sort_.elem_sizes_[k], checkpoint_);
  }

 private:
  void sort_integers(uint8_t* keys, uint8_t* /*spare*/, int64_t count) const { counting_sort(keys, count); }
  template <typename T>
  void sort_integers(T* keys, T* spare, int64_t count) const {
    vector_sort(keys, spare, count, checkpoint_);
  }

  // One operand: sorting its keys is sorting it, but for equal keys of elements with other bits, which are put in their
  // order. False: the comparator is no order of keys, because of a NaN, or NaNs are equal to numbers.
  template <typename T>
  bool sort_elements(const SortKey& key, const std::byte* from, std::byte* to, std::byte* memory) {
    const int64_t count = sort_.spec_.length;
    T* const keys = reinterpret_cast<T*>(memory);
    T* const spare = second_half<T>(memory, count);
    const KeyFacts facts = build_keys(key, from, count, keys);
    if (facts.has_nan && key.nan_is_unordered) return false;
    if (!facts.is_exact && !is_nan_like_nans(key)) return false;
    sort_integers(keys, spare, count);
    restore_elements(key, keys, count, to);
    if (!facts.is_exact) place_alike(key, from, count, first_alike(key, keys, count), to);
    return true;
  }

  // The order of a line by its keys, the index last: so equal keys keep their order. False where the comparator is no
  // order of keys.
  bool order_by_keys(const std::byte* const* from, std::byte* memory, int64_t* order) {
    const int64_t count = sort_.spec_.length;
    const int bits = packed_bits(*sort_.keys_);
    if (bits > 128 || count > int64_t{UINT32_MAX}) return order_by_columns(from, order);
    if (bits > 64) return order_by_packed<Wide128>(from, memory, order);
    return order_by_packed<uint64_t>(from, memory, order);
  }

  template <typename T>
  bool order_by_packed(const std::byte* const* from, std::byte* memory, int64_t* order) {
    const int64_t count = sort_.spec_.length;
    auto* const packed = reinterpret_cast<T*>(memory);
    if (!pack_keys(*sort_.keys_, from, 0, count, packed, reinterpret_cast<uint64_t*>(order))) return false;
    vector_sort(packed, second_half<T>(memory, count), count, checkpoint_);
    for (int64_t i = 0; i < count; ++i) order[i] = index_of(packed[i]);
    return true;
  }

  // More keys than fit beside an index.
  bool order_by_columns(const std::byte* const* from, int64_t* order) {
    const std::vector<SortKey>& keys = *sort_.keys_;
    const int64_t count = sort_.spec_.length;
    columns_.resize(keys.size());
    for (size_t k = 0; k < keys.size(); ++k) {
      columns_[k].resize(static_cast<size_t>(count));
      if (!build_column(keys[k], from, columns_[k].data())) return false;
    }
    for (int64_t i = 0; i < count; ++i) order[i] = i;
    int64_t comparisons = 0;
    std::stable_sort(order, order + count, [&](int64_t a, int64_t b) {
      if (++comparisons % kElementsBetweenCheckpoints == 0) core::pass(checkpoint_);
      for (const std::vector<uint64_t>& column : columns_) {
        const uint64_t left = column[static_cast<size_t>(a)];
        const uint64_t right = column[static_cast<size_t>(b)];
        if (left != right) return left < right;
      }
      return false;
    });
    return true;
  }

  bool build_column(const SortKey& key, const std::byte* const* from, uint64_t* keys) const {
    const KeyFacts facts = build_keys(key, from[key.operand], sort_.spec_.length, keys);
    return !(facts.has_nan && key.nan_is_unordered);
  }

  const Sort& sort_;
  core::Checkpoint* checkpoint_;
  LineComparator comparator_;
  std::vector<std::vector<uint64_t>> columns_;
};

Sort::Sort(SortSpec spec) : spec_(std::move(spec)) {
  if (spec_.comparator.outputs.size() != 1 ||
      spec_.comparator.input_count != static_cast<int>(2 * spec_.dtypes.size())) {
    throw core::Error("invalid_program", "a comparator takes two elements of each operand and gives one boolean");
  }
  keys_ = recognise_comparator(spec_.comparator);
  int64_t line_elem_bytes = 0;
  for (const tensor::DType dtype : spec_.dtypes) {
    elem_sizes_.push_back(tensor::size_bytes(dtype));
    line_elem_bytes += elem_sizes_.back();
  }
  if (spec_.outer == 0 || spec_.length == 0 || spec_.inner == 0) return;
  if (keys_ && spec_.inner == 1 && SplitSort::pays(spec_.outer, spec_.length) &&
      SplitSort::takes(elem_sizes_, *keys_, spec_.length)) {
    split_.emplace(spec_.outer, spec_.length, elem_sizes_, *keys_);
    work_count_ = split_->work_count();
    scratch_bytes_ = split_->scratch_bytes();
    return;
  }
  order_bytes_ = core::round_up(core::checked_mul(spec_.length, 2 * sorted_bytes()), 64);
  if (spec_.inner == 1) {
    lines_per_work_item_ = std::max<int64_t>(1, kSortItemElements / spec_.length);
    work_count_ = core::ceil_div(spec_.outer, lines_per_work_item_);
  } else {
    const int64_t line_bytes = spec_.length * line_elem_bytes;
    lines_per_work_item_ = std::min(spec_.inner, std::clamp<int64_t>(kPackedBytes / line_bytes, 1, kLinesAtOnce));
    work_items_per_outer_ = core::ceil_div(spec_.inner, lines_per_work_item_);
    work_count_ = spec_.outer * work_items_per_outer_;
    // Lines of each operand as they come and as they go.
    for (const int64_t size : elem_sizes_)
      packed_bytes_ += 2 * core::round_up(lines_per_work_item_ * spec_.length * size, 64);
  }
  scratch_bytes_ = order_bytes_ + packed_bytes_;
}

int64_t Sort::sorted_bytes() const { return keys_ && packed_bits(*keys_) > 64 ? kWideBytes : kNarrowBytes; }

std::vector<int64_t> Sort::barriers() const { return split_ ? split_->barriers() : std::vector<int64_t>(); }

int64_t Sort::workspace_bytes() const { return split_ ? split_->workspace_bytes() : 0; }

void Sort::run(const std::byte* const* operands, std::byte* const* results, const Memory& memory, int64_t begin,
               int64_t end, core::Checkpoint* checkpoint) const {
  if (split_) return split_->run(operands, results, memory.scratch, memory.workspace, begin, end, checkpoint);
  std::byte* const scratch = memory.scratch;
  Lines lines(*this, checkpoint);
  const size_t operand_count = elem_sizes_.size();
  std::vector<const std::byte*> from(operand_count);
  std::vector<std::byte*> to(operand_count);
  if (spec_.inner == 1) {
    const int64_t stop = std::min(spec_.outer, end * lines_per_work_item_);
    for (int64_t line = begin * lines_per_work_item_; line < stop; ++line) {
      for (size_t k = 0; k < operand_count; ++k) {
        from[k] = operands[k] + line * spec_.length * elem_sizes_[k];
        to[k] = results[k] + line * spec_.length * elem_sizes_[k];
      }
      lines.sort_line(from.data(), to.data(), scratch);
      core::pass(checkpoint);
    }
    return;
  }
  for (int64_t work_item = begin; work_item < end; ++work_item) {
    const int64_t outer = work_item / work_items_per_outer_;
    const int64_t first = work_item % work_items_per_outer_ * lines_per_work_item_;
    const int64_t count = std::min(lines_per_work_item_, spec_.inner - first);
    std::byte* packed = scratch + order_bytes_;
    std::vector<std::byte*> packed_from(operand_count);
    std::vector<std::byte*> packed_to(operand_count);
    for (size_t k = 0; k < operand_count; ++k) {
      const int64_t size = elem_sizes_[k];
      const int64_t bytes = core::round_up(lines_per_work_item_ * spec_.length * size, 64);
      packed_from[k] = packed;
      packed_to[k] = packed + bytes;
      packed += 2 * bytes;
      const std::byte* at = operands[k] + (outer * spec_.length * spec_.inner + first) * size;
      transpose_block({packed_from[k], spec_.length * size}, {at, spec_.inner * size}, count, spec_.length, size,
                      false);
    }
    for (int64_t line = 0; line < count; ++line) {
      for (size_t k = 0; k < operand_count; ++k) {
        from[k] = packed_from[k] + line * spec_.length * elem_sizes_[k];
        to[k] = packed_to[k] + line * spec_.length * elem_sizes_[k];
      }
      lines.sort_line(from.data(), to.data(), scratch);
      core::pass(checkpoint);
    }
    for (size_t k = 0; k < operand_count; ++k) {
      const int64_t size = elem_sizes_[k];
      std::byte* at = results[k] + (outer * spec_.length * spec_.inner + first) * size;
      transpose_block({at, spec_.inner * size}, {packed_to[k], spec_.length * size}, spec_.length, count, size, false);
    }
  }
}

}  // namespace meshd::kernels
