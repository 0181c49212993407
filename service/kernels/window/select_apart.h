// select_and_scatter of one window that shares no place with others, where the select body is one comparison of floats:
// the maximum's or minimum's gradient. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/kernels/tile/tile_program.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Rows of `lanes` elements, lane by lane a window of its own.
struct ApartWindow {
  const std::byte* const* elements = nullptr;  ///< by offset in the window; null: padding
  std::byte* const* places = nullptr;          ///< by offset; null: the result has none
  int64_t offsets = 0;
  const std::byte* arrived = nullptr;  ///< what the chosen place gets
  const std::byte* initial = nullptr;  ///< what the others get
  int64_t lanes = 0;
};

using SelectApart = void (*)(const ApartWindow& window);

/// The loop of a select body for this processor; null where it is anything but one comparison of its two arguments, of
/// f32 or f64, that returns its result. Choices are those of the body: what was kept stays where kept OP next is true.
/// Example: GE and elements 3, 5, 5, NaN, 4: the last, since 5 >= NaN is false, and NaN >= 4 is, too.
SelectApart select_apart(const TileProgram& select);

}  // namespace meshd::kernels
