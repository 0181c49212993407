// Shardings as pictures: which devices hold which block, as text and as SVG, of any rank. The last two dimensions are
// drawn as rows and columns, those before them as one panel for each of their blocks. Pure functions.
#pragma once

#include <string>

#include "service/sharding/layout.h"

namespace meshd::api {

/// The most positions of a mesh that are drawn; for larger ones the picture has their number.
inline constexpr int64_t kMaxDrawnPositions = 1024;

/// Boxes of characters, ASCII, a newline behind each line.
std::string picture_text(const sharding::Layout& layout);
/// An SVG document; blocks are drawn to scale where that can be read, else the legend says so.
std::string picture_svg(const sharding::Layout& layout);
/// The line in place of a picture of too many positions.
std::string undrawn_text(const sharding::Layout& layout, int64_t position_count);

}  // namespace meshd::api
