#include "service/kernels/window/window_scan.h"

#include <algorithm>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/kernels/movement/movement.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;

constexpr int64_t kTileRows = 64;    ///< of one segment
constexpr int64_t kBlockRows = 8;    ///< about the root of kTileRows
constexpr int64_t kTileLanes = 256;  ///< segments times lanes, where lanes are fewer

int64_t segment_count(int64_t lanes) { return std::max<int64_t>(1, kTileLanes / lanes); }

/// A tile: `count` rows in segments of `length`; where they do not fill the segments, the last ones to be scanned lack
/// rows.
struct Tile {
  int64_t row = 0;
  int64_t count = 0;
  int64_t segments = 1;
  int64_t length = 1;
  bool is_backwards = false;

  [[nodiscard]] int64_t full() const { return count / length; }
  [[nodiscard]] int64_t rest() const { return count % length; }

  /// Calls copy(first segment, first row in it, segments, rows in each, first row of the tile) for the parts that have
  /// rows.
  template <typename Copy>
  void for_parts(Copy&& copy) const {
    if (full() > 0) copy(is_backwards ? segments - full() : 0, 0, full(), length, is_backwards ? rest() : 0);
    if (rest() > 0) {
      copy(is_backwards ? segments - full() - 1 : full(), is_backwards ? length - rest() : 0, 1, rest(),
           is_backwards ? 0 : full() * length);
    }
  }
};

/// Accumulators of a tile: (length, segments, lanes), and the carries.
struct TileSums {
  const Monoid& monoid;
  Monoid::Worker& worker;
  Rows sums;
  Rows before;  ///< (segments, lanes): the carry of each segment
  Rows carry;   ///< (lanes): what came before the next tile
  int64_t lanes = 0;
  bool is_backwards = false;

  void put(const ConstRows& earlier, const ConstRows& later, const Rows& to, int64_t count) {
    is_backwards ? worker.combine(later, earlier, to, count) : worker.combine(earlier, later, to, count);
  }
  static void copy(const Monoid& monoid, const ConstRows& from, const Rows& to, int64_t lanes) {
    for (size_t k = 0; k < to.size(); ++k) {
      std::memcpy(to[k], from[k], static_cast<size_t>(lanes * monoid.sum_bytes(k)));
    }
  }

  void scan(const Tile& tile, bool has_carry) {
    const int64_t row_lanes = tile.segments * lanes;
    // Rows and segments counted in the order of the scan.
    const auto row = [&](int64_t r) {
      return advanced_to(monoid, sums, (is_backwards ? tile.length - 1 - r : r) * row_lanes);
    };
    const auto segment = [&](int64_t s) { return (is_backwards ? tile.segments - 1 - s : s) * lanes; };
    if (tile.segments == 1 && has_carry) put(advanced(monoid, carry, 0), advanced(monoid, row(0), 0), row(0), lanes);
    // Where each combination rounds, blocks of rows are scanned by themselves and then get what is before them: a row
    // is then as far from the exact sum as some blocks and some rows make it, not as all rows do.
    const int64_t block = monoid.rounds() ? kBlockRows : tile.length;
    for (int64_t r = 1; r < tile.length; ++r) {
      if (r % block != 0) put(advanced(monoid, row(r - 1), 0), advanced(monoid, row(r), 0), row(r), row_lanes);
    }
    for (int64_t r = block; r < tile.length; ++r) {
      put(advanced(monoid, row(r - r % block - 1), 0), advanced(monoid, row(r), 0), row(r), row_lanes);
    }
    const Rows totals = row(tile.length - 1);
    if (tile.segments == 1) return copy(monoid, advanced(monoid, totals, 0), carry, lanes);

    for (int64_t s = 0; s < tile.segments; ++s) {
      if (s > 0 || has_carry) {
        const ConstRows sum = advanced(monoid, carry, 0);
        copy(monoid, sum, advanced_to(monoid, before, segment(s)), lanes);
        put(sum, advanced(monoid, totals, segment(s)), carry, lanes);
      } else {
        copy(monoid, advanced(monoid, totals, segment(0)), carry, lanes);
      }
    }
    // The first segment has no carry; it is at one end.
    const int64_t skip = has_carry || is_backwards ? 0 : lanes;
    const int64_t some = has_carry ? row_lanes : row_lanes - lanes;
    for (int64_t r = 0; r < tile.length; ++r) {
      const Rows at = advanced_to(monoid, row(r), skip);
      put(advanced(monoid, before, skip), advanced(monoid, at, 0), at, some);
    }
  }
};

}  // namespace

int64_t WindowScan::scratch_bytes(const Monoid& monoid, int64_t lanes) {
  const int64_t row_lanes = core::round_up(segment_count(lanes) * lanes, 64);
  int64_t bytes = 0;
  for (size_t k = 0; k < monoid.value_count(); ++k) {
    bytes += row_lanes * (kTileRows + 2) * monoid.sum_bytes(k);
    bytes += row_lanes * kTileRows * std::max(monoid.element_bytes(k), monoid.result_bytes(k));
  }
  return bytes;
}

void WindowScan::run(const Monoid& monoid, Monoid::Worker& worker, const ConstRows& inputs, const ConstRows& init,
                     const Rows& results, std::byte* scratch) const {
  const size_t values = monoid.value_count();
  const int64_t lanes = lead_count * inner_count;
  const int64_t segments = segment_count(lanes);
  const int64_t row_lanes = core::round_up(segments * lanes, 64);
  TileSums tile_sums{monoid, worker, {}, {}, {}, lanes, is_backwards};
  Rows elements;
  for (size_t k = 0; k < values; ++k) {
    const int64_t bytes = row_lanes * monoid.sum_bytes(k);
    tile_sums.sums.push_back(scratch);
    tile_sums.before.push_back(scratch + kTileRows * bytes);
    tile_sums.carry.push_back(scratch + (kTileRows + 1) * bytes);
    elements.push_back(scratch + (kTileRows + 2) * bytes);
    scratch = elements[k] + row_lanes * kTileRows * std::max(monoid.element_bytes(k), monoid.result_bytes(k));
  }

  for (int64_t done = 0; done < rows;) {
    Tile tile;
    tile.count = std::min(segments * kTileRows, rows - done);
    tile.row = is_backwards ? rows - done - tile.count : done;
    tile.segments = segments;
    tile.length = core::ceil_div(tile.count, segments);
    tile.is_backwards = is_backwards;
    const int64_t tile_lanes = tile.length * segments * lanes;
    const auto extent = [&](int64_t parts, int64_t length) { return Dims{length, parts, lead_count, inner_count}; };
    const Dims dense = {segments * lanes, lanes, inner_count, 1};
    const Dims strides = {row_stride, tile.length * row_stride, lead_stride, 1};
    for (size_t k = 0; k < values; ++k) {
      const int64_t bytes = monoid.element_bytes(k);
      // Segments that lack rows are combined along with the others; their sums are not read.
      if (tile.count != tile.length * segments) std::memset(elements[k], 0, static_cast<size_t>(tile_lanes * bytes));
      tile.for_parts([&](int64_t part, int64_t skip, int64_t parts, int64_t length, int64_t row) {
        StridedCopy(extent(parts, length), dense, strides, bytes)
            .run(elements[k] + (skip * segments + part) * lanes * bytes,
                 inputs[k] + (tile.row + row) * row_stride * bytes);
      });
    }
    worker.load(ConstRows(elements.begin(), elements.end()), tile_sums.sums, tile_lanes);
    tile_sums.scan(tile, done > 0);
    // The carry outlives what finish() destroys.
    worker.finish(init, tile_sums.sums, elements, tile_lanes);
    for (size_t k = 0; k < values; ++k) {
      const int64_t bytes = monoid.result_bytes(k);
      tile.for_parts([&](int64_t part, int64_t skip, int64_t parts, int64_t length, int64_t row) {
        StridedCopy(extent(parts, length), strides, dense, bytes)
            .run(results[k] + (tile.row + row) * row_stride * bytes,
                 elements[k] + (skip * segments + part) * lanes * bytes);
      });
    }
    done += tile.count;
  }
}

}  // namespace meshd::kernels
