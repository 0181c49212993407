// Result types of gather and scatter. Labels are those of the StableHLO specification.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/ops/checks.h"
#include "service/ops/movement/gather_scatter.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using tensor::kDynamicDim;

/// The labels of one op's constraints, and what it calls things.
struct Words {
  std::string op;
  const char* operand;
  const char* indices;
  const char* collapsed;
  const char* operand_batching;
  const char* indices_batching;
  const char* index_map;
  // Constraint numbers.
  const char* rank;
  const char* distinct_collapsed;
  const char* collapsed_range;
  const char* operand_batching_range;
  const char* indices_batching_distinct;
  const char* indices_batching_range;
  const char* vector_not_batching;
  const char* batching_counts;
  const char* batching_sizes;
  const char* map_count;
  const char* map_distinct;
  const char* map_range;
  const char* vector_range;
};

// checks: gather C1: the rank of operand is the number of offset_dims, collapsed_slice_dims and batching dims
// checks: gather C2: index_vector_dim is between 0 and the rank of start_indices
// checks: gather C3: start_index_map has a number for each number of an index
// checks: gather C4: offset_dims are distinct and sorted
// checks: gather C5: offset_dims are dimensions of the slices
// checks: gather C6: collapsed_slice_dims and operand_batching_dims are distinct, collapsed_slice_dims sorted
// checks: gather C8: collapsed_slice_dims are dimensions of operand
// checks: gather C11: operand_batching_dims are dimensions of operand
// checks: gather C13: start_indices_batching_dims are distinct
// checks: gather C14: start_indices_batching_dims are dimensions of start_indices
// checks: gather C15: index_vector_dim is not in start_indices_batching_dims
// checks: gather C16: operand_batching_dims and start_indices_batching_dims are as many
// checks: gather C17: batching dims have the same sizes
// checks: gather C18: start_index_map and operand_batching_dims are distinct
// checks: gather C19: start_index_map are dimensions of operand
const Words& gather_words() {
  static const Words kWords{"gather",
                            "operand",
                            "start_indices",
                            "collapsed_slice_dims",
                            "operand_batching_dims",
                            "start_indices_batching_dims",
                            "start_index_map",
                            "C1",
                            "C6",
                            "C8",
                            "C11",
                            "C13",
                            "C14",
                            "C15",
                            "C16",
                            "C17",
                            "C3",
                            "C18",
                            "C19",
                            "C2"};
  return kWords;
}
// checks: scatter C2: the rank of inputs is the number of update_window_dims, inserted_window_dims and batching dims
// checks: scatter C7: update_window_dims are distinct and sorted
// checks: scatter C8: update_window_dims are dimensions of the slices
// checks: scatter C9: inserted_window_dims and input_batching_dims are distinct, inserted_window_dims sorted
// checks: scatter C11: inserted_window_dims are dimensions of inputs
// checks: scatter C13: input_batching_dims are dimensions of inputs
// checks: scatter C14: scatter_indices_batching_dims are distinct
// checks: scatter C15: scatter_indices_batching_dims are dimensions of scatter_indices
// checks: scatter C16: index_vector_dim is not in scatter_indices_batching_dims
// checks: scatter C17: input_batching_dims and scatter_indices_batching_dims are as many
// checks: scatter C18: batching dims have the same sizes
// checks: scatter C19: scatter_dims_to_operand_dims has a number for each number of an index
// checks: scatter C20: scatter_dims_to_operand_dims and input_batching_dims are distinct
// checks: scatter C21: scatter_dims_to_operand_dims are dimensions of inputs
// checks: scatter C22: index_vector_dim is between 0 and the rank of scatter_indices
const Words& scatter_words() {
  static const Words kWords{"scatter",
                            "inputs",
                            "scatter_indices",
                            "inserted_window_dims",
                            "input_batching_dims",
                            "scatter_indices_batching_dims",
                            "scatter_dims_to_operand_dims",
                            "C2",
                            "C9",
                            "C11",
                            "C13",
                            "C14",
                            "C15",
                            "C16",
                            "C17",
                            "C18",
                            "C19",
                            "C20",
                            "C21",
                            "C22"};
  return kWords;
}

std::string list_text(const std::vector<int64_t>& list) { return tensor::to_string(list); }

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void expect_below(const OpView& view, const Words& words, const char* label, const char* what,
                  const std::vector<int64_t>& list, int64_t bound) {
  for (const int64_t d : list) {
    if (d >= 0 && d < bound) continue;
    reject(view,
           fmt::format("{} {}: {} must be dimensions below {}, got {}", words.op, label, what, bound, list_text(list)));
  }
}

void expect_distinct(const OpView& view, const Words& words, const char* label, const std::string& what,
                     std::vector<int64_t> list) {
  const std::string text = list_text(list);
  std::sort(list.begin(), list.end());
  if (std::adjacent_find(list.begin(), list.end()) == list.end()) return;
  reject(view, words.op + " " + label + ": " + what + " must be distinct, got " + text);
}

void expect_sorted(const OpView& view, const Words& words, const char* label, const char* what,
                   const std::vector<int64_t>& list) {
  if (std::is_sorted(list.begin(), list.end())) return;
  reject(view, words.op + " " + label + ": " + what + " must be sorted, got " + list_text(list));
}

/// What gather and scatter have in common: operand (or inputs[0]), indices and dimension numbers fit together.
void expect_windows(const OpView& view, const Words& words, const WindowDims& dims, const ir::Type& operand,
                    const ir::Type& indices) {
  if (!tensor::is_integer(indices.dtype())) {
    reject(view, fmt::format("{}: {} must be integers, got {}", words.op, words.indices, ir::to_string(indices)));
  }
  const int64_t rank = operand.rank();
  const auto accounted =
      static_cast<int64_t>(dims.offset.size() + dims.collapsed.size() + dims.operand_batching.size());
  if (rank != accounted) {
    reject(view, fmt::format("{} {}: rank of {} must be the number of window, {} and batching dims ({}), got {}",
                             words.op, words.rank, words.operand, words.collapsed, accounted, rank));
  }
  if (dims.index_vector_dim < 0 || dims.index_vector_dim > indices.rank()) {
    reject(view, fmt::format("{} {}: index_vector_dim must be between 0 and {}, got {}", words.op, words.vector_range,
                             indices.rank(), dims.index_vector_dim));
  }
  expect_below(view, words, words.collapsed_range, words.collapsed, dims.collapsed, rank);
  expect_below(view, words, words.operand_batching_range, words.operand_batching, dims.operand_batching, rank);
  expect_below(view, words, words.indices_batching_range, words.indices_batching, dims.indices_batching,
               indices.rank());
  expect_below(view, words, words.map_range, words.index_map, dims.index_map, rank);
  expect_distinct(view, words, words.distinct_collapsed,
                  std::string(words.collapsed) + " and " + words.operand_batching,
                  joined(dims.collapsed, dims.operand_batching));
  expect_distinct(view, words, words.indices_batching_distinct, words.indices_batching, dims.indices_batching);
  expect_distinct(view, words, words.map_distinct, std::string(words.index_map) + " and " + words.operand_batching,
                  joined(dims.index_map, dims.operand_batching));
  expect_sorted(view, words, words.distinct_collapsed, words.collapsed, dims.collapsed);
  if (std::count(dims.indices_batching.begin(), dims.indices_batching.end(), dims.index_vector_dim) != 0) {
    reject(view, fmt::format("{} {}: index_vector_dim must not be in {}, got {}", words.op, words.vector_not_batching,
                             words.indices_batching, dims.index_vector_dim));
  }
  if (dims.operand_batching.size() != dims.indices_batching.size()) {
    reject(view, fmt::format("{} {}: {} and {} must be as many, got {} and {}", words.op, words.batching_counts,
                             words.operand_batching, words.indices_batching, dims.operand_batching.size(),
                             dims.indices_batching.size()));
  }
  for (size_t i = 0; i < dims.operand_batching.size(); ++i) {
    const int64_t a = operand.dims()[static_cast<size_t>(dims.operand_batching[i])];
    const int64_t b = indices.dims()[static_cast<size_t>(dims.indices_batching[i])];
    if (a == b || a == kDynamicDim || b == kDynamicDim) continue;
    reject(view, fmt::format("{} {}: batching dims differ in size ({} dim {} is {}, {} dim {} is {})", words.op,
                             words.batching_sizes, words.operand, dims.operand_batching[i], a, words.indices,
                             dims.indices_batching[i], b));
  }
  const int64_t tuple =
      dims.index_vector_dim < indices.rank() ? indices.dims()[static_cast<size_t>(dims.index_vector_dim)] : 1;
  if (tuple != kDynamicDim && tuple != static_cast<int64_t>(dims.index_map.size())) {
    reject(view, fmt::format("{} {}: {} must have a dim for each of the {} numbers of a tuple, got {}", words.op,
                             words.map_count, words.index_map, tuple, list_text(dims.index_map)));
  }
}

void expect_offset_dims(const OpView& view, const Words& words, const char* order_label, const char* range_label,
                        const char* what, const std::vector<int64_t>& offset, int64_t slices_rank) {
  expect_distinct(view, words, order_label, what, offset);
  expect_sorted(view, words, order_label, what, offset);
  expect_below(view, words, range_label, what, offset, slices_rank);
}

}  // namespace

int64_t expect_gather_dims(const OpView& view, const WindowDims& dims) {
  const ir::Type& indices = view.operands[1];
  expect_windows(view, gather_words(), dims, view.operands[0], indices);
  const auto rank = static_cast<int64_t>(tuple_dims(dims, indices.rank()).size() + dims.offset.size());
  expect_offset_dims(view, gather_words(), "C4", "C5", "offset_dims", dims.offset, rank);
  return rank;
}

std::vector<ir::Type> infer_gather(const OpView& view) {
  expect_tensor_operands(view, "gather", 2);
  const WindowDims dims = gather_dims(view);
  const ir::Type& operand = view.operands[0];
  const ir::Type& indices = view.operands[1];
  const int64_t slices_rank = expect_gather_dims(view, dims);
  const std::vector<int64_t> tuples = tuple_dims(dims, indices.rank());
  const std::vector<int64_t> sizes = ir::ints(attributes_of(view), "slice_sizes");
  if (static_cast<int64_t>(sizes.size()) != operand.rank()) {
    reject(view,
           fmt::format("gather C20: slice_sizes must have a number for each of the operand's {} dimensions, got {}",
                       operand.rank(), sizes.size()));
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t size = operand.dims()[d];
    if (sizes[d] < 0 || (size != kDynamicDim && sizes[d] > size)) {
      reject(view, fmt::format("gather C21: slice size of dim {} must be between 0 and {}, got {}", d, size, sizes[d]));
    }
  }
  for (const int64_t d : joined(dims.collapsed, dims.operand_batching)) {
    if (sizes[static_cast<size_t>(d)] <= 1) continue;
    reject(view, fmt::format("gather C9: slice size of collapsed or batching dim {} must be at most 1, got {}", d,
                             sizes[static_cast<size_t>(d)]));
  }
  Dims out(static_cast<size_t>(slices_rank));
  const std::vector<int64_t> windows = window_dims(dims, operand.rank());
  const std::vector<int64_t> batch = batch_dims(dims, slices_rank);
  for (size_t i = 0; i < dims.offset.size(); ++i)
    out[static_cast<size_t>(dims.offset[i])] = sizes[static_cast<size_t>(windows[i])];
  for (size_t i = 0; i < batch.size(); ++i)
    out[static_cast<size_t>(batch[i])] = indices.dims()[static_cast<size_t>(tuples[i])];
  return agree(view, "gather C22", {ir::Type::of({operand.dtype(), std::move(out)})});
}

std::vector<ir::Type> infer_scatter(const OpView& view) {
  const Words& words = scatter_words();
  if (view.operands.size() < 3 || view.operands.size() % 2 == 0) {
    reject(view, fmt::format("scatter C5: expects N inputs, the indices and N updates, got {} operands",
                             view.operands.size()));
  }
  for (size_t i = 0; i < view.operands.size(); ++i) expect_tensor(view, "scatter", i);
  const size_t count = scatter_count(view);
  const ir::Type& operand = view.operands[0];
  const ir::Type& indices = view.operands[count];
  const ir::Type& updates = view.operands[count + 1];
  for (size_t i = 0; i < count; ++i) {
    if (!compatible_shapes(view.operands[i].dims(), operand.dims())) {
      reject(view, fmt::format("scatter C1: inputs must have one shape (input 0 is {}, input {} is {})",
                               operand_text(view, 0), i, operand_text(view, i)));
    }
    if (!compatible_shapes(view.operands[count + 1 + i].dims(), updates.dims())) {
      reject(view, fmt::format("scatter C3: updates must have one shape (update 0 is {}, update {} is {})",
                               operand_text(view, count + 1), i, operand_text(view, count + 1 + i)));
    }
    if (view.operands[i].dtype() != view.operands[count + 1 + i].dtype()) {
      reject(view, fmt::format("scatter C6: element types differ (input {} is {}, its updates are {})", i,
                               operand_text(view, i), operand_text(view, count + 1 + i)));
    }
  }
  const WindowDims dims = scatter_dims(view);
  expect_windows(view, words, dims, operand, indices);
  expect_offset_dims(view, words, "C7", "C8", "update_window_dims", dims.offset, updates.rank());
  const std::vector<int64_t> tuples = tuple_dims(dims, indices.rank());
  const std::vector<int64_t> windows = window_dims(dims, operand.rank());
  const std::vector<int64_t> batch = batch_dims(dims, updates.rank());
  bool fits = batch.size() == tuples.size() && windows.size() == dims.offset.size();
  for (size_t i = 0; fits && i < batch.size(); ++i) {
    const int64_t a = updates.dims()[static_cast<size_t>(batch[i])];
    const int64_t b = indices.dims()[static_cast<size_t>(tuples[i])];
    fits = a == b || a == kDynamicDim || b == kDynamicDim;
  }
  for (size_t i = 0; fits && i < windows.size(); ++i) {
    const int64_t a = updates.dims()[static_cast<size_t>(dims.offset[i])];
    const int64_t b = operand.dims()[static_cast<size_t>(windows[i])];
    fits = a <= b || a == kDynamicDim || b == kDynamicDim;
  }
  if (!fits) {
    reject(view,
           "scatter C4: updates must have the sizes of the indices and windows that fit into the inputs (inputs " +
               operand_text(view, 0) + ", scatter_indices " + operand_text(view, count) + ", updates " +
               operand_text(view, count + 1) + ")");
  }
  if (view.regions.size() == 1 && view.function != nullptr) {
    const std::vector<ir::Type> arguments = argument_types(view, view.regions[0]);
    const std::vector<ir::Type> returned = returned_types(view, view.regions[0]);
    if (arguments.size() != 2 * count || returned.size() != count || !are_scalars(arguments) ||
        !are_scalars(returned)) {
      reject(view, fmt::format("scatter C23: the body must take {} scalars and return {}, got {} -> {}", 2 * count,
                               count, types_text(arguments), types_text(returned)));
    }
  }
  std::vector<ir::Type> results(view.operands.begin(), view.operands.begin() + static_cast<std::ptrdiff_t>(count));
  return agree(view, "scatter C24", std::move(results));
}

}  // namespace meshd::ops
