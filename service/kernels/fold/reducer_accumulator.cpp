#include <algorithm>
#include <cstring>

#include "service/kernels/elementwise/lane_loop.h"
#include "service/kernels/fold/accumulator.h"

namespace meshd::kernels {
namespace {

using Bytes = std::vector<std::byte>;

/// Lanes that the reducer's program works on at once.
constexpr int64_t kReducerLanes = 512;

class ReducerAccumulator final : public Accumulator {
 public:
  ReducerAccumulator(const TileProgram& reducer, const TileLayout& layout, int64_t lanes)
      : reducer_(reducer), scratch_(reducer, layout, kReducerLanes) {
    for (const uint16_t reg : reducer.outputs) bytes_.push_back(tensor::size_bytes(reducer.registers[reg]));
    for (int reg = 0; reg < reducer.input_count; ++reg) homes_.push_back(scratch_.reg(static_cast<uint16_t>(reg)));
    sums_.resize(bytes_.size());
    partial_.resize(bytes_.size());
    for (size_t k = 0; k < bytes_.size(); ++k) sums_[k].resize(static_cast<size_t>(lanes * bytes_[k]));
  }

  void reset(int64_t lanes) override {
    lanes_ = lanes;
    is_empty_ = true;
  }

  void add_values(const ValueRows& values, int64_t lane, int64_t count) override {
    for (size_t k = 0; is_empty_ && k < bytes_.size(); ++k) {
      std::memcpy(sums_[k].data() + lane * bytes_[k], values[k], static_cast<size_t>(count * bytes_[k]));
    }
    if (!is_empty_) combine(rows_of(sums_, lane), values, lane, count);
  }

  void add_segments(const ValueRows& values, int64_t groups, int64_t items, int64_t lanes, int64_t lane) override {
    const int64_t total = groups * items * lanes;
    for (size_t k = 0; k < bytes_.size(); ++k) {
      const auto needed = static_cast<size_t>(total * bytes_[k]);
      if (partial_[k].size() < needed) partial_[k].resize(needed);
      std::memcpy(partial_[k].data(), values[k], needed);
    }
    for (int64_t left = items; left > 1; left = (left + 1) / 2) fold_pairs(groups, left, lanes);
    add_values(rows_of(partial_, 0), lane, groups * lanes);
  }

  void add_rows(const std::byte*, int64_t, int64_t, int64_t) override {}
  [[nodiscard]] bool adds_rows() const override { return false; }

  void add_all_of(Accumulator& other, int64_t lane) override {
    auto& rest = static_cast<ReducerAccumulator&>(other);
    add_values(rows_of(rest.sums_, 0), lane, rest.lanes_);
    rest.is_empty_ = true;
  }

  void end_step() override { is_empty_ = false; }

  void finish(const ValueRows& init, std::byte* const* results, int64_t start) override {
    for (size_t k = 0; k < bytes_.size(); ++k) {
      partial_[k].resize(std::max(partial_[k].size(), static_cast<size_t>(lanes_ * bytes_[k])));
      repeat_element(init[k], bytes_[k], partial_[k].data(), lanes_);
    }
    if (!is_empty_) combine(rows_of(partial_, 0), rows_of(sums_, 0), 0, lanes_);
    const std::vector<Bytes>& from = is_empty_ ? partial_ : sums_;
    for (size_t k = 0; k < bytes_.size(); ++k) {
      std::memcpy(results[k] + start * bytes_[k], from[k].data(), static_cast<size_t>(lanes_ * bytes_[k]));
    }
  }

 private:
  [[nodiscard]] ValueRows rows_of(const std::vector<Bytes>& arrays, int64_t lane) const {
    ValueRows rows;
    for (size_t k = 0; k < arrays.size(); ++k) rows.push_back(arrays[k].data() + lane * bytes_[k]);
    return rows;
  }

  /// sums_ from `lane` on = reducer(earlier, later).
  void combine(const ValueRows& earlier, const ValueRows& later, int64_t lane, int64_t count) {
    const size_t values = bytes_.size();
    for (int64_t begin = 0; begin < count; begin += kReducerLanes) {
      const int64_t some = std::min(kReducerLanes, count - begin);
      for (size_t k = 0; k < values; ++k) {
        // Registers are only read, so lending them memory of others is safe.
        scratch_.bind(static_cast<uint16_t>(k), const_cast<std::byte*>(earlier[k]) + begin * bytes_[k]);
        scratch_.bind(static_cast<uint16_t>(values + k), const_cast<std::byte*>(later[k]) + begin * bytes_[k]);
      }
      run_tile(reducer_, scratch_, some);
      for (size_t k = 0; k < values; ++k) {
        std::memmove(sums_[k].data() + (lane + begin) * bytes_[k], scratch_.reg(reducer_.outputs[k]),
                     static_cast<size_t>(some * bytes_[k]));
      }
    }
  }

  /// One level of a tree over the items in partial_: neighbours are combined, an odd last one stays.
  void fold_pairs(int64_t groups, int64_t items, int64_t lanes) {
    const int64_t pairs = items / 2;
    const int64_t kept = items - pairs;
    const int64_t at_once = std::max<int64_t>(1, kReducerLanes / lanes);
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t begin = 0; begin < pairs; begin += at_once) {
        const int64_t some = std::min(at_once, pairs - begin);
        fold_some_pairs(group * items + 2 * begin, group * kept + begin, some, lanes);
      }
      if (kept == pairs) continue;
      for (size_t k = 0; k < bytes_.size(); ++k) {
        const int64_t item_bytes = lanes * bytes_[k];
        std::byte* const base = partial_[k].data();
        std::memmove(base + (group * kept + pairs) * item_bytes, base + (group * items + items - 1) * item_bytes,
                     static_cast<size_t>(item_bytes));
      }
    }
  }

  /// Items [from, from + 2 * pairs) become items [to, to + pairs); to <= from.
  void fold_some_pairs(int64_t from, int64_t to, int64_t pairs, int64_t lanes) {
    const size_t values = bytes_.size();
    for (size_t k = 0; k < values; ++k) {
      const int64_t item_bytes = lanes * bytes_[k];
      const std::byte* const items = partial_[k].data() + from * item_bytes;
      scratch_.bind(static_cast<uint16_t>(k), homes_[k]);
      scratch_.bind(static_cast<uint16_t>(values + k), homes_[values + k]);
      for (int64_t pair = 0; pair < pairs; ++pair) {
        const auto bytes = static_cast<size_t>(item_bytes);
        std::memcpy(homes_[k] + pair * item_bytes, items + 2 * pair * item_bytes, bytes);
        std::memcpy(homes_[values + k] + pair * item_bytes, items + (2 * pair + 1) * item_bytes, bytes);
      }
    }
    run_tile(reducer_, scratch_, pairs * lanes);
    for (size_t k = 0; k < values; ++k) {
      std::memcpy(partial_[k].data() + to * lanes * bytes_[k], scratch_.reg(reducer_.outputs[k]),
                  static_cast<size_t>(pairs * lanes * bytes_[k]));
    }
  }

  const TileProgram& reducer_;
  TileScratch scratch_;
  std::vector<int64_t> bytes_;  ///< of an element of each value
  std::vector<std::byte*> homes_;
  int64_t lanes_ = 0;
  bool is_empty_ = true;
  std::vector<Bytes> sums_;
  std::vector<Bytes> partial_;
};

}  // namespace

std::unique_ptr<Accumulator> make_reducer_accumulator(const TileProgram& reducer, const TileLayout& layout,
                                                      int64_t lanes) {
  return std::make_unique<ReducerAccumulator>(reducer, layout, lanes);
}

}  // namespace meshd::kernels
