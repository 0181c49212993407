// The number of positions of a mesh, the product of its axes: the one place that multiplies them. Sizes come from
// requests and program texts, and what is listed by position afterwards (device ids, index maps, replica groups, shard
// tables) has this length, so nothing is listed before a mesh has passed here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "service/mesh/mesh.h"

namespace meshd::mesh {

/// The most positions of a mesh, abstract or with devices.
inline constexpr int64_t kMaxPositions = int64_t{1} << 20;
inline constexpr size_t kMaxAxes = 256;
inline constexpr size_t kLongestAxisName = 256;  ///< bytes: each array that is known keeps its mesh in memory

/// What sizes make. Example: 4, 2 -> 8 positions; 4, 0 -> none, the empty mesh (M13); 1024, 2048 -> fault at axis 1.
struct Positions {
  int64_t count = 0;
  std::optional<size_t> fault;  ///< the first axis with an invalid size; `count` is then undefined
  std::string problem;          ///< what is wrong with it: "the mesh has more than 1048576 positions ..."
};

/// The product of the sizes, 1 for none, 0 as soon as one is 0. A negative size is a fault, and so is one with which
/// those so far other than 0 multiply to more than kMaxPositions: strides within an empty mesh fit as well.
Positions count_positions(std::span<const int64_t> sizes);
Positions count_positions(std::span<const Axis> axes);

/// Throws empty_mesh, naming `pointer` where there is one, when an axis has size 0: nothing runs there.
void require_positions(const Mesh& mesh, std::string_view pointer = {});

}  // namespace meshd::mesh
