// The monoid of a window or scan: combines rows of accumulators, two at a time, in the order of elements. It need not
// be commutative; it must be associative, as StableHLO requires of every reducer. Well-known ops of one value run in
// the fold's own loops and types (sums of floats in double), any other body through its tile program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/fold/fold_kernels.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

/// One place in memory for each value that is combined. A few need no heap: windows make one of these for every row.
template <typename Pointer>
class Places {
 public:
  Places() = default;
  Places(std::initializer_list<Pointer> places) { append(places.begin(), places.end()); }
  template <typename Iterator>
  Places(Iterator begin, Iterator end) {
    append(begin, end);
  }

  void push_back(Pointer place) {
    if (size_ < few_.size()) {
      few_[size_] = place;
    } else {
      if (size_ == few_.size()) many_.assign(few_.begin(), few_.end());
      many_.push_back(place);
    }
    ++size_;
  }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] Pointer* begin() { return many_.empty() ? few_.data() : many_.data(); }
  [[nodiscard]] const Pointer* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  [[nodiscard]] Pointer* end() { return begin() + size_; }
  [[nodiscard]] const Pointer* end() const { return begin() + size_; }
  Pointer& operator[](size_t value) { return begin()[value]; }
  const Pointer& operator[](size_t value) const { return begin()[value]; }

 private:
  template <typename Iterator>
  void append(Iterator begin, Iterator end) {
    for (; begin != end; ++begin) push_back(*begin);
  }

  size_t size_ = 0;
  std::array<Pointer, 4> few_{};
  std::vector<Pointer> many_;  ///< all of them, when they are more
};
using Rows = Places<std::byte*>;
using ConstRows = Places<const std::byte*>;

/// Immutable; any thread.
class Monoid {
 public:
  /// `body` takes accumulators, then values, and returns accumulators; `elements` are the types of the values in
  /// memory. Throws unsupported_dtype where the body's own types do not agree.
  Monoid(TileProgram body, std::vector<tensor::DType> elements);

  [[nodiscard]] size_t value_count() const { return elements_.size(); }
  [[nodiscard]] tensor::DType element(size_t value) const { return elements_[value]; }
  /// The op of a fold's own loops, of one value; kCopy where a program runs.
  [[nodiscard]] ScalarOp single_op() const { return fold_ ? as_single_binary(body_) : ScalarOp::kCopy; }
  [[nodiscard]] int64_t element_bytes(size_t value) const { return tensor::size_bytes(elements_[value]); }
  [[nodiscard]] int64_t result_bytes(size_t value) const { return tensor::size_bytes(results_[value]); }
  [[nodiscard]] int64_t sum_bytes(size_t value) const { return tensor::size_bytes(sums_[value]); }
  /// Bytes of one lane of accumulators, all values together.
  [[nodiscard]] int64_t lane_bytes() const;
  /// Elements in memory are accumulators already.
  [[nodiscard]] bool elements_are_sums() const { return elements_are_sums_; }
  /// Each combination rounds: long chains of them lose digits.
  [[nodiscard]] bool rounds() const { return !fold_ || fold_->rounds; }
  /// Fewer lanes than these cost as much as so many.
  static constexpr int64_t kCheapLanes = 64;
  /// Work of one combination, for estimates.
  [[nodiscard]] double flops() const { return static_cast<double>(body_.instructions.size()); }

  /// The loops, with memory of their own. One thread.
  class Worker {
   public:
    explicit Worker(const Monoid& monoid, core::Checkpoint* checkpoint = nullptr);
    /// Elements become accumulators.
    void load(const ConstRows& elements, const Rows& sums, int64_t count);
    /// to = earlier combined with later; `to` may be either of them.
    void combine(const ConstRows& earlier, const ConstRows& later, const Rows& to, int64_t count);
    /// init (one element of each value) combined with sums, as results; sums are destroyed.
    void finish(const ConstRows& init, const Rows& sums, const Rows& results, int64_t count);
    /// One element of each value as it would leave if nothing were combined with it, `count` times.
    void fill(const ConstRows& init, const Rows& results, int64_t count);

   private:
    void combine_by_program(const ConstRows& earlier, const ConstRows& later, const Rows& to, int64_t count);
    void load_init(const ConstRows& init, int64_t count);

    const Monoid& monoid_;
    core::Checkpoint* checkpoint_;  ///< passed by each combination of some lanes
    std::optional<TileScratch> scratch_;
    std::vector<std::byte> widened_;
    std::vector<std::vector<std::byte>> init_;
  };

 private:
  TileProgram body_;
  TileLayout layout_;
  std::optional<FoldKernels> fold_;
  std::vector<tensor::DType> elements_;
  std::vector<tensor::DType> sums_;
  std::vector<tensor::DType> results_;
  std::vector<ScalarKernel> load_;  ///< element -> accumulator; null where they are the same
  bool elements_are_sums_ = true;
};

/// The rows of each value moved on by `lanes` lanes of accumulators.
template <typename RowsIn>
ConstRows advanced(const Monoid& monoid, const RowsIn& rows, int64_t lanes) {
  ConstRows out;
  for (size_t k = 0; k < rows.size(); ++k) out.push_back(rows[k] + lanes * monoid.sum_bytes(k));
  return out;
}
inline Rows advanced_to(const Monoid& monoid, const Rows& rows, int64_t lanes) {
  Rows out;
  for (size_t k = 0; k < rows.size(); ++k) out.push_back(rows[k] + lanes * monoid.sum_bytes(k));
  return out;
}

}  // namespace meshd::kernels
