// How matrices become panels for AMX (amx.h). Private to product/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "service/kernels/product/amx.h"

namespace meshd::kernels {

/// Groups of `count` elements of as many lines as a group has elements (4 / elem_bytes), 16 to each panel of columns
/// and the last one's rest zeros. Panels are `panel_pitch` groups apart. A line that is null is zeros. Lines may be
/// anywhere in memory. Any thread.
void group_lines(const std::array<const std::byte*, kAmxGroupBytes>& lines, int64_t elem_bytes, int64_t count,
                 uint32_t* to, int64_t panel_pitch);

/// A panel of rows: `bytes` of each of `rows` rows, which are `row_bytes` apart; what is missing to 16 rows and to
/// whole steps is zeros. Any thread.
void copy_rows(const std::byte* from, int64_t row_bytes, int64_t rows, int64_t bytes, uint32_t* panel);

}  // namespace meshd::kernels
