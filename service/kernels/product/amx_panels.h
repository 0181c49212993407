// How bfloat16 matrices become panels for AMX (amx.h). Private to product/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::kernels {

/// Pairs of `count` elements of two lines, 16 to each panel of columns and the last one's rest zeros. Panels are
/// `panel_pitch` pairs apart. A line that is null is zeros. Lines may be anywhere in memory. Any thread.
void pair_lines(const std::byte* first, const std::byte* second, int64_t count, uint32_t* to, int64_t panel_pitch);

/// A panel of rows: `terms` elements of each of `rows` rows, which are `row_bytes` apart; what is missing to 16 rows
/// and to whole steps is zeros. Any thread.
void copy_rows(const std::byte* from, int64_t row_bytes, int64_t rows, int64_t terms, uint32_t* panel);

}  // namespace meshd::kernels
