#include "service/kernels/movement/scatter_lines.h"

#include <algorithm>

namespace meshd::kernels {
namespace {

// Whether windows of all tuples have their line k at place k of the array's dims around runs. A dim in which windows
// begin at different starts has the stride of its component.
bool are_lines_apart(const IndexTable& table, const LineWindow& window) {
  for (size_t d = 0; d < window.dims.size(); ++d) {
    if (window.dims[d] == 1) continue;
    for (const IndexComponent& component : table.components) {
      if (component.last_start > 0 && component.stride == window.array_strides[d]) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<ScatterLines> ScatterLines::make(const IndexTable& table, const LineWindow& window, int64_t run,
                                               int64_t elem_size, ElementUpdate update) {
  if (update == nullptr || table.count() == 0 || run == 0 || tensor::element_count(window.dims) == 0) {
    return std::nullopt;
  }
  if (!has_narrow_offsets(table) || !are_lines_apart(table, window)) return std::nullopt;
  if (table.batch.size() + window.dims.size() >= TupleLines::kMostLoops) return std::nullopt;
  // Tuples in their order: the last dim of the batch is the row, whatever its length.
  const size_t row = table.batch.empty() ? 0 : table.batch.size() - 1;
  return ScatterLines(TupleLines(table, row, window, elem_size, kTuplesAtOnce), run, update);
}

void ScatterLines::run(const Call& call, int64_t first, int64_t last) const {
  lines_.visit_checked(call.indices, call.shifts, first, last, [&](const TupleLine& line) {
    core::pass(call.checkpoint);
    update_({.array = call.array + line.array_at,
             .updates = call.updates + line.slice_at,
             .update_stride = lines_.slice_stride_bytes(),
             .offsets = line.offsets,
             .count = line.count,
             .run = run_});
  });
}

}  // namespace meshd::kernels
