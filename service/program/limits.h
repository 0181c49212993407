// How large and how deep a program may be, so that no text can exhaust the stack or memory out of proportion to its
// size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "service/mesh/positions.h"
#include "service/tensor/sizes.h"

namespace meshd::program {

inline constexpr int kMaxAttributeDepth = 64;
inline constexpr int kMaxRegionDepth = 256;
/// An alias costs its expansion each time it is used: what all uses in a text may expand to. Expanded text takes eight
/// times its bytes, so that a short text with aliases of aliases must not get far.
constexpr int64_t max_alias_bytes(size_t text_bytes) {
  return std::clamp(4 * static_cast<int64_t>(text_bytes), int64_t{4} << 20, int64_t{32} << 20);
}
/// An attribute takes some hundred bytes and may be two characters of text.
inline constexpr int64_t kMaxAttributes = 4'000'000;
inline constexpr int64_t kMaxRank = tensor::kMaxRank;
inline constexpr int64_t kMaxAxisSize = mesh::kMaxPositions;
/// Of a mesh, and of all axes that one sharding names.
inline constexpr size_t kMaxAxes = mesh::kMaxAxes;
inline constexpr size_t kMaxMeshes = 512;
inline constexpr int64_t kMaxTextBytes = int64_t{256} << 20;

}  // namespace meshd::program
