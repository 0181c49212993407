#include "service/ops/reduction/windows.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/ops/checks.h"

namespace meshd::ops {
namespace {

using kernels::WindowDim;

std::string labelled(std::string_view op, std::string_view label) { return std::string(op) + " " + std::string(label); }

}  // namespace

std::vector<int64_t> positive_ints(const OpView& view, std::string_view op, std::string_view name, size_t count,
                                   std::string_view size_label, std::string_view positive_label) {
  const std::vector<int64_t> values = ir::ints_or(attributes_of(view), name, std::vector<int64_t>(count, 1));
  if (values.size() != count) {
    reject(view,
           fmt::format("{}: '{}' must have {} entries, got {}", labelled(op, size_label), name, count, values.size()));
  }
  for (const int64_t value : values) {
    if (value >= 1) continue;
    reject(view, fmt::format("{}: '{}' must be positive, got {}", labelled(op, positive_label), name, value));
  }
  return values;
}

std::vector<int64_t> padding_pairs(const OpView& view, std::string_view op, size_t count, std::string_view label) {
  const ir::Attribute* attribute = ir::find(attributes_of(view), "padding");
  if (attribute == nullptr) return std::vector<int64_t>(2 * count, 0);
  const auto* dense = attribute->as<ir::DenseAttr>();
  const tensor::Dims expected = {static_cast<int64_t>(count), 2};
  const std::vector<int64_t> values = ir::ints(attributes_of(view), "padding");
  const bool fits = dense != nullptr ? dense->type.dims == expected : values.size() == 2 * count;
  if (!fits) {
    reject(view, fmt::format("{}: 'padding' must be a low and a high one for each of {} dims, got {} numbers",
                             labelled(op, label), count, values.size()));
  }
  return values;
}

HaloRead window_read(const WindowDim& dim, size_t along_dim) {
  HaloRead read;
  read.along_dim = along_dim;
  read.along_size = dim.output_size();
  read.start = core::checked_mul(dim.pad_low, -1);
  read.step = dim.stride;
  read.extent = dim.span();
  read.spread = dim.base_dilation;
  return read;
}

ir::AttributeList without_padding(const OpView& view, std::string_view base_name, size_t count,
                                  std::span<const size_t> which) {
  ir::AttributeList list = attributes_of(view);
  std::vector<int64_t> padding = ir::ints_or(list, "padding", std::vector<int64_t>(2 * count, 0));
  if (padding.size() == 1) padding.assign(2 * count, padding.front());
  std::vector<int64_t> bases = ir::ints_or(list, base_name, std::vector<int64_t>(count, 1));
  for (const size_t d : which) padding[2 * d] = padding[2 * d + 1] = 0, bases[d] = 1;
  std::erase_if(list,
                [&](const ir::NamedAttribute& entry) { return entry.name == "padding" || entry.name == base_name; });
  list.emplace_back(std::string(base_name), ir::Attribute{ir::IntArrayAttr{std::move(bases), "i64"}});
  list.emplace_back("padding", ir::Attribute{ir::dense_integers_attr(padding, {static_cast<int64_t>(count), 2})});
  return list;
}

std::vector<WindowDim> window_dims(const OpView& view, const WindowLabels& labels) {
  const tensor::Dims& shape = view.operands[0].dims();
  const size_t rank = shape.size();
  const auto ints_of = [&](std::string_view name, std::string_view size, std::string_view positive) {
    if (size.empty()) return std::vector<int64_t>(rank, 1);
    return positive_ints(view, labels.op, name, rank, size, positive);
  };
  const std::vector<int64_t> windows = ints_of("window_dimensions", labels.dimensions_size, labels.dimensions_positive);
  const std::vector<int64_t> strides = ints_of("window_strides", labels.strides_size, labels.strides_positive);
  const std::vector<int64_t> bases = ints_of("base_dilations", labels.base_size, labels.base_positive);
  const std::vector<int64_t> dilations = ints_of("window_dilations", labels.dilations_size, labels.dilations_positive);
  const std::vector<int64_t> padding = padding_pairs(view, labels.op, rank, labels.padding);
  std::vector<WindowDim> dims;
  for (size_t d = 0; d < rank; ++d) {
    dims.push_back({shape[d], windows[d], strides[d], dilations[d], bases[d], padding[2 * d], padding[2 * d + 1]});
  }
  return dims;
}

// checks: reduce_window C4: window_dimensions has an entry for each dimension
// checks: reduce_window C5: window_dimensions are positive
// checks: reduce_window C6: window_strides has an entry for each dimension
// checks: reduce_window C7: window_strides are positive
// checks: reduce_window C8: base_dilations has an entry for each dimension
// checks: reduce_window C9: base_dilations are positive
// checks: reduce_window C10: window_dilations has an entry for each dimension
// checks: reduce_window C11: window_dilations are positive
// checks: reduce_window C12: padding has a low and a high number for each dimension
std::vector<WindowDim> reduce_window_dims(const OpView& view) {
  return window_dims(view, {.op = "reduce_window",
                            .dimensions_size = "C4",
                            .dimensions_positive = "C5",
                            .strides_size = "C6",
                            .strides_positive = "C7",
                            .base_size = "C8",
                            .base_positive = "C9",
                            .dilations_size = "C10",
                            .dilations_positive = "C11",
                            .padding = "C12"});
}

// checks: select_and_scatter C4: window_dimensions has an entry for each dimension
// checks: select_and_scatter C5: window_dimensions are positive
// checks: select_and_scatter C6: window_strides has an entry for each dimension
// checks: select_and_scatter C7: window_strides are positive
// checks: select_and_scatter C8: padding has a low and a high number for each dimension
std::vector<WindowDim> select_and_scatter_dims(const OpView& view) {
  return window_dims(view, {.op = "select_and_scatter",
                            .dimensions_size = "C4",
                            .dimensions_positive = "C5",
                            .strides_size = "C6",
                            .strides_positive = "C7",
                            .padding = "C8"});
}

tensor::Dims window_counts(const OpView& view, const std::vector<WindowDim>& dims) {
  tensor::Dims counts;
  for (const WindowDim& dim : dims) {
    try {
      counts.push_back(dim.size == tensor::kDynamicDim ? tensor::kDynamicDim : dim.output_size());
    } catch (const core::Error&) {
      reject(view, "a window's size, dilation or padding does not fit in 63 bits");
    }
  }
  return counts;
}

}  // namespace meshd::ops
