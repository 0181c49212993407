// The reverse-mode derivative of convolution: two convolutions, in which operands and result change places.
#include <algorithm>

#include "service/ops/checks.h"
#include "service/ops/linalg/convolution_dims.h"
#include "service/ops/linalg/linalg_vjp.h"
#include "service/ops/reduction/windows.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using Ints = std::vector<int64_t>;

struct Window {
  Ints strides, padding, lhs_dilation, rhs_dilation;
};

SideDims swapped(SideDims side) {
  std::swap(side.major, side.minor);
  return side;
}

Term convolved(Term lhs, Term rhs, const ConvolutionDims& dims, const Window& window, const ir::Attribute* precision) {
  const auto pairs = static_cast<int64_t>(window.strides.size());
  ir::DictAttr numbers{"stablehlo.conv",
                       {{"input_batch_dimension", ir::integer_attr(dims.lhs.major)},
                        {"input_feature_dimension", ir::integer_attr(dims.lhs.minor)},
                        {"input_spatial_dimensions", ir::int_array_attr(dims.lhs.spatial)},
                        {"kernel_input_feature_dimension", ir::integer_attr(dims.rhs.minor)},
                        {"kernel_output_feature_dimension", ir::integer_attr(dims.rhs.major)},
                        {"kernel_spatial_dimensions", ir::int_array_attr(dims.rhs.spatial)},
                        {"output_batch_dimension", ir::integer_attr(dims.out.major)},
                        {"output_feature_dimension", ir::integer_attr(dims.out.minor)},
                        {"output_spatial_dimensions", ir::int_array_attr(dims.out.spatial)}}};
  ir::AttributeList attributes = {{"dimension_numbers", ir::Attribute{std::move(numbers)}},
                                  {"window_strides", ir::int_array_attr(window.strides)},
                                  {"padding", ir::Attribute{ir::dense_integers_attr(window.padding, {pairs, 2})}},
                                  {"lhs_dilation", ir::int_array_attr(window.lhs_dilation)},
                                  {"rhs_dilation", ir::int_array_attr(window.rhs_dilation)},
                                  {"feature_group_count", ir::integer_attr(dims.feature_groups)},
                                  {"batch_group_count", ir::integer_attr(dims.batch_groups)}};
  if (precision != nullptr) attributes.push_back({"precision_config", *precision});
  return {lhs.writer, lhs.writer->add("stablehlo.convolution", {lhs.id, rhs.id}, std::move(attributes))};
}

// Groups, the slow part of dimension `from`, become the slow part of dimension `to`.
Term groups_moved(Term value, int64_t from, int64_t to, int64_t groups) {
  if (groups == 1) return value;
  Dims split = value.dims();
  split[static_cast<size_t>(from)] /= groups;
  Dims merged = split;
  split.insert(split.begin() + from, groups);
  merged[static_cast<size_t>(to)] *= groups;
  Ints permutation;
  for (int64_t d = 0; d < static_cast<int64_t>(split.size()); ++d) {
    if (d != from) permutation.push_back(d);
  }
  permutation.insert(permutation.begin() + to, from);
  Writer& writer = *value.writer;
  return {&writer, writer.reshape(writer.transpose(writer.reshape(value.id, split), permutation), merged)};
}

Term reversed(Term value, const Ints& dims) {
  if (dims.empty()) return value;
  return {value.writer, value.writer->add("stablehlo.reverse", {value.id}, {{"dimensions", ir::int_array_attr(dims)}})};
}

class ConvolutionVjp {
 public:
  explicit ConvolutionVjp(const Vjp& v)
      : v_(v),
        dims_(convolution_dims(v.view)),
        windows_(convolution_windows(v.view, dims_)),
        precision_(ir::find(attributes_of(v.view), "precision_config")) {
    const Ints reversal = convolution_reversal(v.view, windows_.size());
    for (size_t d = 0; d < windows_.size(); ++d) {
      if (reversal[d] != 0) backwards_.push_back(dims_.rhs.spatial[d]);
    }
  }

  // ct convolved with the kernel from its end. Groups of either kind are groups of the result's features.
  Term lhs() const {
    const int64_t groups = std::max(dims_.feature_groups, dims_.batch_groups);
    Term kernel = reversed(rhs_value(), dims_.rhs.spatial);
    kernel = groups_moved(kernel, dims_.rhs.major, dims_.rhs.minor, groups);
    Window window;
    for (size_t d = 0; d < windows_.size(); ++d) {
      const kernels::WindowDim& dim = windows_[d];
      const int64_t low = dim.span() - dim.pad_low - 1;
      const int64_t high = dilated_size(dim.size, dim.base_dilation) + dim.span() - 1 - out_places(d) - low;
      add(window, dim.base_dilation, low, high, dim.stride, dim.window_dilation);
    }
    const Term made =
        convolved(v_.ct(), kernel, {dims_.out, swapped(dims_.rhs), dims_.lhs, groups, 1}, window, precision_);
    return groups_moved(made, dims_.lhs.minor, dims_.lhs.major, dims_.batch_groups);
  }

  // lhs convolved with ct as its kernel: batches are summed, so they take the place of features.
  Term rhs() const {
    Window window;
    for (size_t d = 0; d < windows_.size(); ++d) {
      const kernels::WindowDim& dim = windows_[d];
      const int64_t high = out_places(d) - dilated_size(dim.size, dim.base_dilation) + dim.span() - dim.pad_low - 1;
      add(window, dim.window_dilation, dim.pad_low, high, dim.base_dilation, dim.stride);
    }
    const Term lhs = converted(v_.x(0), v_.ct().dtype());
    const Term made = convolved(
        lhs, v_.ct(),
        {swapped(dims_.lhs), swapped(dims_.out), swapped(dims_.rhs), dims_.batch_groups, dims_.feature_groups}, window,
        precision_);
    return reversed(made, backwards_);
  }

 private:
  [[nodiscard]] Term rhs_value() const { return reversed(converted(v_.x(1), v_.ct().dtype()), backwards_); }
  [[nodiscard]] int64_t out_places(size_t d) const {
    return dilated_size(windows_[d].output_size(), windows_[d].stride);
  }
  static void add(Window& window, int64_t stride, int64_t low, int64_t high, int64_t lhs_dilation,
                  int64_t rhs_dilation) {
    window.strides.push_back(stride);
    window.padding.insert(window.padding.end(), {low, high});
    window.lhs_dilation.push_back(lhs_dilation);
    window.rhs_dilation.push_back(rhs_dilation);
  }

  const Vjp& v_;
  ConvolutionDims dims_;
  std::vector<kernels::WindowDim> windows_;
  const ir::Attribute* precision_;
  Ints backwards_;  ///< dimensions of the kernel that window_reversal names
};

}  // namespace

Contributions vjp_convolution(const Vjp& v) {
  const ConvolutionVjp vjp(v);
  Contributions out(2);
  if (v.wanted[0]) out[0] = converted(vjp.lhs(), v.x(0).dtype());
  if (v.wanted[1]) out[1] = converted(vjp.rhs(), v.x(1).dtype());
  return out;
}

}  // namespace meshd::ops
