// Orders of devices as transposed iotas, and where axes may split them. Pure; private to the reading of GSPMD's
// notation.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace meshd::program {

/// The numbers 0..n-1 seen as `reshape`, row-major, and transposed by `transpose`.
struct Iota {
  std::vector<int64_t> reshape;
  std::vector<int> transpose;
};

/// The transposed iota that `order` (a permutation) is, or nothing.
/// Example: 0,4,1,5,2,6,3,7 -> reshape {2,4}, transpose {1,0}.
std::optional<Iota> as_iota(std::vector<int64_t> order);

/// The same order with fewer dimensions: sizes of one left out, neighbours that stay neighbours merged.
/// Example: <=[4,1,2,3]T(2,3,0,1) -> {4,6}, {1,0}.
Iota merged(const Iota& iota);

/// The numbers in the order of the iota.
std::vector<int64_t> written_out(const Iota& iota);

/// Adds the split points (as pre-sizes of the positions) that tiles over the iota need. False when a tile dimension
/// ends where no axis can. Example: tile {2,4} over <=[8] adds 2 and 8.
bool add_splits(const Iota& iota, const std::vector<int64_t>& tile, std::set<int64_t>& splits);

/// Each split point must divide the next for axes to be between them.
bool can_hold_axes(const std::set<int64_t>& splits);

}  // namespace meshd::program
