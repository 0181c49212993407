#include <algorithm>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/fold/accumulator.h"
#include "service/kernels/tile/tile_code.h"

namespace meshd::kernels {
namespace {

using Bytes = std::vector<std::byte>;

/// Lanes that the reducer's program works on at once.
constexpr int64_t kReducerLanes = 512;
/// Whether groups, each a lane of the program, fill at least three quarters of its blocks.
bool fill_blocks(int64_t groups) { return 4 * groups >= 3 * core::round_up(groups, kBlockLanes); }

class ReducerAccumulator final : public Accumulator {
 public:
  ReducerAccumulator(const TileProgram& reducer, const TileLayout& layout, const LazyTileCode* code, int64_t lanes)
      : reducer_(reducer), code_(code), scratch_(reducer, layout, kReducerLanes) {
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
    if (!is_empty_) combine(rows_of(sums_, lane), values, sums_, lane, count);
  }

  void add_segments(const ValueRows& values, int64_t groups, int64_t items, int64_t lanes, int64_t lane) override {
    if (lanes == 1 && fill_blocks(groups)) return add_groups(values, groups, items, lane);
    const int64_t total = groups * items * lanes;
    for (size_t k = 0; k < bytes_.size(); ++k) {
      const auto needed = static_cast<size_t>(total * bytes_[k]);
      if (partial_[k].size() < needed) partial_[k].resize(needed);
      std::memcpy(partial_[k].data(), values[k], needed);
    }
    for (int64_t left = items; left > 1; left = (left + 1) / 2) fold_pairs(groups, left, lanes);
    add_values(rows_of(partial_, 0), lane, groups * lanes);
  }

  void add_all_of(Accumulator& other, int64_t lane) override {
    auto& rest = static_cast<ReducerAccumulator&>(other);
    add_values(rows_of(rest.sums_, 0), lane, rest.lanes_);
    rest.is_empty_ = true;
  }

  void end_step() override { is_empty_ = false; }

  void store(std::byte* to) override {
    for (size_t k = 0; k < bytes_.size(); ++k) {
      std::memcpy(to, sums_[k].data(), static_cast<size_t>(lanes_ * bytes_[k]));
      to += lanes_ * bytes_[k];
    }
    is_empty_ = true;
  }

  void add_stored(const std::byte* from) override {
    ValueRows rows;
    for (const int64_t bytes : bytes_) {
      rows.push_back(from);
      from += lanes_ * bytes;
    }
    add_values(rows, 0, lanes_);
  }

  void finish(const ValueRows& init, std::byte* const* results, int64_t start) override {
    for (size_t k = 0; k < bytes_.size(); ++k) {
      partial_[k].resize(std::max(partial_[k].size(), static_cast<size_t>(lanes_ * bytes_[k])));
      repeat_element(init[k], bytes_[k], partial_[k].data(), lanes_);
    }
    if (!is_empty_) combine(rows_of(partial_, 0), rows_of(sums_, 0), sums_, 0, lanes_);
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

  void run_reducer(int64_t count) {
    const TileCode* const code = code_ != nullptr ? code_->get(reducer_, {}, count) : nullptr;
    run_tile(reducer_, code, scratch_, count);
  }

  /// `into` from `lane` on = reducer(earlier, later).
  void combine(const ValueRows& earlier, const ValueRows& later, std::vector<Bytes>& into, int64_t lane,
               int64_t count) {
    const size_t values = bytes_.size();
    for (int64_t begin = 0; begin < count; begin += kReducerLanes) {
      const int64_t some = std::min(kReducerLanes, count - begin);
      for (size_t k = 0; k < values; ++k) {
        // Registers are only read, so lending them memory of others is safe.
        scratch_.bind(static_cast<uint16_t>(k), const_cast<std::byte*>(earlier[k]) + begin * bytes_[k]);
        scratch_.bind(static_cast<uint16_t>(values + k), const_cast<std::byte*>(later[k]) + begin * bytes_[k]);
      }
      run_reducer(some);
      // A result that is an argument is still in the memory that was lent, where another result may be stored first.
      for (size_t k = 0; k < values; ++k) {
        const uint16_t reg = reducer_.outputs[k];
        if (reg >= homes_.size() || scratch_.reg(reg) == homes_[reg]) continue;
        std::memcpy(homes_[reg], scratch_.reg(reg), static_cast<size_t>(some * bytes_[k]));
        scratch_.bind(reg, homes_[reg]);
      }
      for (size_t k = 0; k < values; ++k) {
        std::memmove(into[k].data() + (lane + begin) * bytes_[k], scratch_.reg(reducer_.outputs[k]),
                     static_cast<size_t>(some * bytes_[k]));
      }
    }
  }

  /// add_segments() of single lanes, with a lane for each group: their items are brought next to each other once, not
  /// at each level of the tree.
  void add_groups(const ValueRows& values, int64_t groups, int64_t items, int64_t lane) {
    // Whole blocks, so that the program runs without padding of its own.
    const int64_t row = core::round_up(groups, kBlockLanes);
    for (size_t k = 0; k < bytes_.size(); ++k) {
      const auto needed = static_cast<size_t>(items * row * bytes_[k]);
      if (partial_[k].size() < needed) partial_[k].resize(needed);
      const bool is_integer = with_integer(bytes_[k], [&]<class T>(T) {
        const T* from = reinterpret_cast<const T*>(values[k]);
        T* const to = reinterpret_cast<T*>(partial_[k].data());
        for (int64_t group = 0; group < groups; ++group) {
          for (int64_t item = 0; item < items; ++item) to[item * row + group] = *from++;
        }
      });
      for (int64_t group = 0; !is_integer && group < groups; ++group) {
        for (int64_t item = 0; item < items; ++item) {
          std::memcpy(partial_[k].data() + (item * row + group) * bytes_[k],
                      values[k] + (group * items + item) * bytes_[k], static_cast<size_t>(bytes_[k]));
        }
      }
    }
    for (int64_t left = items; left > 1; left = (left + 1) / 2) {
      for (int64_t pair = 0; pair < left / 2; ++pair) {
        const int64_t first = 2 * pair * row;
        combine(rows_of(partial_, first), rows_of(partial_, first + row), partial_, pair * row, row);
      }
      for (size_t k = 0; left % 2 != 0 && k < bytes_.size(); ++k) {
        std::memmove(partial_[k].data() + left / 2 * row * bytes_[k], partial_[k].data() + (left - 1) * row * bytes_[k],
                     static_cast<size_t>(row * bytes_[k]));
      }
    }
    add_values(rows_of(partial_, 0), lane, groups);
  }

  /// One level of a tree over the items in partial_: neighbours are combined, an odd last one stays. Short groups share
  /// a run of the reducer's program.
  void fold_pairs(int64_t groups, int64_t items, int64_t lanes) {
    const int64_t pairs = items / 2;
    const int64_t kept = items - pairs;
    const int64_t pairs_at_once = std::max<int64_t>(1, kReducerLanes / lanes);
    const int64_t groups_at_once = std::max<int64_t>(1, pairs_at_once / pairs);
    for (int64_t group = 0; group < groups; group += groups_at_once) {
      const int64_t some_groups = std::min(groups_at_once, groups - group);
      for (int64_t begin = 0; begin < pairs; begin += pairs_at_once) {
        const int64_t some = std::min(pairs_at_once, pairs - begin);
        const Pairs of{.groups = some_groups, .pairs = some, .lanes = lanes, .stride = items, .kept = kept};
        combine_pairs(of, group * items + 2 * begin);
        // Before sums overwrite what later groups keep.
        if (begin + some == pairs && kept != pairs) keep_last(of, group);
        store_pairs(of, group * kept + begin);
      }
    }
  }

  /// `pairs` neighbours of each of `groups` groups, which are `stride` items apart before and `kept` items after.
  struct Pairs {
    int64_t groups;
    int64_t pairs;
    int64_t lanes;
    int64_t stride;
    int64_t kept;
  };

  /// Runs the reducer's program on pairs of items from item `from` on.
  void combine_pairs(const Pairs& of, int64_t from) {
    const size_t values = bytes_.size();
    for (size_t k = 0; k < values; ++k) {
      scratch_.bind(static_cast<uint16_t>(k), homes_[k]);
      scratch_.bind(static_cast<uint16_t>(values + k), homes_[values + k]);
      const int64_t item_bytes = of.lanes * bytes_[k];
      const std::byte* const items = partial_[k].data() + from * item_bytes;
      const bool is_integer = with_integer(item_bytes, [&]<class T>(T) {
        part_pairs(of, reinterpret_cast<const T*>(items), reinterpret_cast<T*>(homes_[k]),
                   reinterpret_cast<T*>(homes_[values + k]));
      });
      if (!is_integer) part_pairs(of, items, item_bytes, homes_[k], homes_[values + k]);
    }
    run_reducer(of.groups * of.pairs * of.lanes);
  }

  /// Calls f(T{}) with the unsigned type of so many bytes, for loops of moves in place of calls; false where there is
  /// none.
  template <class F>
  static bool with_integer(int64_t bytes, const F& f) {
    switch (bytes) {
      case 1:
        f(uint8_t{});
        return true;
      case 4:
        f(uint32_t{});
        return true;
      case 8:
        f(uint64_t{});
        return true;
      default:
        return false;
    }
  }

  /// What the program has made becomes the items from `to` on.
  void store_pairs(const Pairs& of, int64_t to) {
    for (size_t k = 0; k < bytes_.size(); ++k) {
      const int64_t item_bytes = of.lanes * bytes_[k];
      const std::byte* const made = scratch_.reg(reducer_.outputs[k]);
      std::byte* const base = partial_[k].data() + to * item_bytes;
      constexpr int64_t kFewPairs = 16;
      const bool is_integer = of.pairs < kFewPairs && with_integer(item_bytes, [&]<class T>(T) {
                                const auto* from = reinterpret_cast<const T*>(made);
                                for (int64_t group = 0; group < of.groups; ++group) {
                                  T* const items = reinterpret_cast<T*>(base) + group * of.kept;
                                  for (int64_t pair = 0; pair < of.pairs; ++pair) items[pair] = *from++;
                                }
                              });
      for (int64_t group = 0; !is_integer && group < of.groups; ++group) {
        std::memcpy(base + group * of.kept * item_bytes, made + group * of.pairs * item_bytes,
                    static_cast<size_t>(of.pairs * item_bytes));
      }
    }
  }

  /// The odd last items of groups from `first` on.
  void keep_last(const Pairs& of, int64_t first) {
    for (size_t k = 0; k < bytes_.size(); ++k) {
      const int64_t item_bytes = of.lanes * bytes_[k];
      std::byte* const base = partial_[k].data();
      const bool is_integer = with_integer(item_bytes, [&]<class T>(T) {
        T* const items = reinterpret_cast<T*>(base);
        for (int64_t group = first; group < first + of.groups; ++group)
          items[group * of.kept + of.kept - 1] = items[group * of.stride + of.stride - 1];
      });
      for (int64_t group = first; !is_integer && group < first + of.groups; ++group) {
        std::memmove(base + (group * of.kept + of.kept - 1) * item_bytes,
                     base + (group * of.stride + of.stride - 1) * item_bytes, static_cast<size_t>(item_bytes));
      }
    }
  }

  /// First and second item of each pair, apart.
  static void part_pairs(const Pairs& of, const std::byte* items, int64_t item_bytes, std::byte* first,
                         std::byte* second) {
    const auto bytes = static_cast<size_t>(item_bytes);
    for (int64_t group = 0; group < of.groups; ++group) {
      const std::byte* item = items + group * of.stride * item_bytes;
      for (int64_t pair = 0; pair < of.pairs; ++pair) {
        std::memcpy(first, item, bytes);
        std::memcpy(second, item + item_bytes, bytes);
        item += 2 * item_bytes;
        first += item_bytes;
        second += item_bytes;
      }
    }
  }

  /// The same with items that are one integer.
  template <class T>
  static void part_pairs(const Pairs& of, const T* from, T* first, T* second) {
    for (int64_t group = 0; group < of.groups; ++group) {
      for (int64_t pair = 0; pair < of.pairs; ++pair) {
        first[group * of.pairs + pair] = from[group * of.stride + 2 * pair];
        second[group * of.pairs + pair] = from[group * of.stride + 2 * pair + 1];
      }
    }
  }

  const TileProgram& reducer_;
  const LazyTileCode* const code_;
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
                                                      const LazyTileCode* code, int64_t lanes) {
  return std::make_unique<ReducerAccumulator>(reducer, layout, code, lanes);
}

}  // namespace meshd::kernels
