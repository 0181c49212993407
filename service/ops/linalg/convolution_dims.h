// What the attributes of a convolution say about dimensions and windows. Private to convolution*.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "service/kernels/window/window_dim.h"
#include "service/ops/op_def.h"

namespace meshd::ops {

/// The roles of an operand's dimensions (dimension_numbers).
struct SideDims {
  int64_t major = 0;  ///< batch; of rhs the output feature
  int64_t minor = 0;  ///< feature; of rhs the input feature
  std::vector<int64_t> spatial;
};

struct ConvolutionDims {
  SideDims lhs;
  SideDims rhs;
  SideDims out;
  int64_t feature_groups = 1;
  int64_t batch_groups = 1;
};

ConvolutionDims convolution_dims(const OpView& view);
/// Windows along the spatial dimensions; sizes of dynamic dimensions stay dynamic.
std::vector<kernels::WindowDim> convolution_windows(const OpView& view, const ConvolutionDims& dims);
/// By spatial dimension, whether the kernel is taken from its end. `count`: how many there are.
std::vector<int64_t> convolution_reversal(const OpView& view, size_t count);

}  // namespace meshd::ops
