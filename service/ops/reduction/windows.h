// Window attributes of reduce_window, select_and_scatter and convolution, checked in one place.
#pragma once

#include <string_view>
#include <vector>

#include "service/kernels/window/window_dim.h"
#include "service/ops/op_def.h"

namespace meshd::ops {

/// Labels of the specification under which an op's window attributes are refused. Empty: the op has no such attribute.
struct WindowLabels {
  std::string_view op;
  std::string_view dimensions_size;
  std::string_view dimensions_positive;
  std::string_view strides_size;
  std::string_view strides_positive;
  std::string_view base_size = {};
  std::string_view base_positive = {};
  std::string_view dilations_size = {};
  std::string_view dilations_positive = {};
  std::string_view padding;
};

/// One entry for each dimension of operand 0, whose sizes may be dynamic. Throws invalid_program with the label.
std::vector<kernels::WindowDim> window_dims(const OpView& view, const WindowLabels& labels);
std::vector<kernels::WindowDim> reduce_window_dims(const OpView& view);
std::vector<kernels::WindowDim> select_and_scatter_dims(const OpView& view);

/// Numbers of windows; dynamic where the operand's dimension is. Throws where sizes overflow.
tensor::Dims window_counts(const OpView& view, const std::vector<kernels::WindowDim>& dims);

/// Places from the first of `count` elements to behind the last where they stand `apart`.
inline int64_t dilated_size(int64_t count, int64_t apart) { return count == 0 ? 0 : (count - 1) * apart + 1; }

/// The halo read of a window along dimension `along_dim` of the result; the caller fills in the operand, its dimension
/// and `beyond`.
HaloRead window_read(const kernels::WindowDim& dim, size_t along_dim);
/// The op's attributes when windows `which` of `count` are given their rows with all padding and holes: "padding" 0 and
/// `base_name` 1 there.
ir::AttributeList without_padding(const OpView& view, std::string_view base_name, size_t count,
                                  std::span<const size_t> which);

/// `count` integers of attribute `name`, all at least 1; ones where it is absent.
std::vector<int64_t> positive_ints(const OpView& view, std::string_view op, std::string_view name, size_t count,
                                   std::string_view size_label, std::string_view positive_label);
/// Pairs low, high of attribute "padding" for `count` dimensions; zeros where it is absent.
std::vector<int64_t> padding_pairs(const OpView& view, std::string_view op, size_t count, std::string_view label);

}  // namespace meshd::ops
