// How large and how deep a program may be, so that no text can exhaust the stack or memory out of proportion to its
// size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/mesh/positions.h"
#include "service/tensor/sizes.h"

namespace meshd::program {

inline constexpr int kMaxAttributeDepth = 64;
inline constexpr int kMaxRegionDepth = 256;
/// An alias costs its expansion each time it is used.
inline constexpr int64_t kMaxAliasBytes = int64_t{32} << 20;
/// An attribute takes some hundred bytes and may be two characters of text.
inline constexpr int64_t kMaxAttributes = 4'000'000;
inline constexpr int64_t kMaxRank = tensor::kMaxRank;
inline constexpr int64_t kMaxAxisSize = mesh::kMaxPositions;
/// Of a mesh, and of all axes that one sharding names.
inline constexpr size_t kMaxAxes = mesh::kMaxAxes;
inline constexpr size_t kMaxMeshes = 512;
inline constexpr int64_t kMaxTextBytes = int64_t{256} << 20;

}  // namespace meshd::program
