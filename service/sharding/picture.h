// Shardings as pictures: which devices hold which block, as text and as SVG, of any rank. The last two dimensions are
// drawn as rows and columns, those before them as one panel for each of their blocks. Pure functions.
#pragma once

#include <string>

#include "service/sharding/layout.h"

namespace meshd::sharding {

/// Boxes of characters, ASCII, a newline behind each line.
std::string picture_text(const Layout& layout);
/// An SVG document; blocks are drawn to scale where that can be read.
std::string picture_svg(const Layout& layout);

}  // namespace meshd::sharding
