// How large and how deep a program may be, so that no text can exhaust the stack or memory out of proportion to its
// size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::program {

inline constexpr int kMaxAttributeDepth = 64;
inline constexpr int kMaxRegionDepth = 256;
inline constexpr int64_t kMaxAliasUses = 1'000'000;
inline constexpr int64_t kMaxRank = 64;
inline constexpr int64_t kMaxAxisSize = int64_t{1} << 30;
/// Of a mesh, and of all axes that one sharding names.
inline constexpr size_t kMaxAxes = 256;
inline constexpr size_t kMaxMeshes = 4096;
inline constexpr int64_t kMaxTextBytes = int64_t{256} << 20;

}  // namespace meshd::program
