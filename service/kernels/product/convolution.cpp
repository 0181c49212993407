#include "service/kernels/product/convolution.h"

#include <algorithm>
#include <utility>

#include "service/kernels/product/gemm.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

/// Crops rows that negative padding removes and rows that no window reads, where the lhs has no holes.
ConvolutionSpec normalised(ConvolutionSpec spec, int64_t& lhs_offset) {
  for (size_t d = 0; d < spec.dims.size(); ++d) {
    ConvolutionDim& dim = spec.dims[d];
    // A kernel of one element is the same from both ends, and has no distances.
    if (dim.kernel == 1) dim.is_reversed = false;
    if (dim.kernel == 1) dim.rhs_dilation = 1;
    if (dim.out == 1) dim.stride = 1;
    if (dim.in == 1) dim.lhs_dilation = 1;
    if (dim.lhs_dilation != 1) continue;
    if (dim.pad_low < 0) {
      const int64_t cut = std::min(-dim.pad_low, dim.in);
      lhs_offset += cut * spec.lhs.spatial[d];
      dim.in -= cut;
      dim.pad_low += cut;
    }
    const int64_t reached = (dim.out - 1) * dim.stride + (dim.kernel - 1) * dim.rhs_dilation + 1 - dim.pad_low;
    if (reached < dim.in) dim.in = std::max<int64_t>(reached, 0);
  }
  return spec;
}

// One image of large patches: a product of them is cut for all threads, where a library has a call for each image. Not
// for patches so small that copies of them cost more, nor where each thread would bring the kernel into another order.
bool is_product_of_patches(const ConvolutionSpec& spec) {
  constexpr int64_t kLeastTerms = 256;
  constexpr int64_t kFewestWindows = 16;
  int64_t windows = 1;
  int64_t terms = spec.in_features;
  for (size_t d = spec.dims.size(); d-- > 0;) {
    if (spec.rhs.spatial[d] != spec.out_features * terms || spec.dims[d].is_reversed) return false;
    windows *= spec.dims[d].out;
    terms *= spec.dims[d].kernel;
  }
  const bool is_in_place = spec.rhs.major == 1 && spec.rhs.minor == spec.out_features && spec.lhs.minor == 1;
  return has_disjoint_windows(spec) && is_in_place && spec.groups == 1 && spec.batch == 1 && terms > spec.in_features &&
         terms >= kLeastTerms && windows >= kFewestWindows;
}

}  // namespace

DType convolution_type(DType lhs, DType rhs, DType out) {
  if (tensor::is_complex(lhs) || tensor::is_complex(rhs) || tensor::is_complex(out)) {
    const bool is_wide = lhs == DType::kComplex128 || rhs == DType::kComplex128 || out == DType::kComplex128;
    return is_wide ? DType::kComplex128 : DType::kComplex64;
  }
  if (tensor::is_float(lhs) || tensor::is_float(rhs) || tensor::is_float(out)) {
    const bool is_wide = lhs == DType::kFloat64 || rhs == DType::kFloat64 || out == DType::kFloat64;
    return is_wide ? DType::kFloat64 : DType::kFloat32;
  }
  // Integers wrap around modulo the result's width whatever they are widened to. Sums of booleans count, and become
  // true.
  if (out == DType::kBool) return DType::kInt32;
  return gemm_takes(out, out) ? out : DType::kInt32;
}

bool has_disjoint_windows(const ConvolutionSpec& spec) {
  return std::all_of(spec.dims.begin(), spec.dims.end(), [](const ConvolutionDim& dim) {
    const bool is_next = dim.stride == dim.kernel || dim.out == 1;
    return is_next && dim.pad_low == 0 && dim.lhs_dilation == 1 && dim.rhs_dilation == 1 &&
           dim.in >= dim.out * dim.kernel;
  });
}

Convolution::Convolution(const ConvolutionSpec& spec) {
  double positions = static_cast<double>(spec.groups) * static_cast<double>(spec.batch);
  double taps = static_cast<double>(spec.in_features);
  for (const ConvolutionDim& dim : spec.dims) {
    positions *= static_cast<double>(dim.out);
    taps *= static_cast<double>(dim.kernel);
  }
  const DType type = convolution_type(spec.lhs_dtype, spec.rhs_dtype, spec.out_dtype);
  flops_ = (tensor::is_complex(type) ? 8 : 2) * positions * taps * static_cast<double>(spec.out_features);
  if (positions * static_cast<double>(spec.out_features) == 0) return;
  int64_t lhs_offset = 0;
  const ConvolutionSpec plain = normalised(spec, lhs_offset);
  // oneDNN splits the sums of a gradient by weights between the threads that it sees when the primitive is made.
  prepare_thread();
  plan_ = plan_convolution_taps(plain);
  if (plan_ == nullptr && !is_product_of_patches(plain)) plan_ = plan_convolution_onednn(plain);
  if (plan_ == nullptr) plan_ = plan_convolution_columns(plain);
  lhs_offset_bytes_ = lhs_offset * tensor::size_bytes(spec.lhs_dtype);
}

const char* Convolution::way() const { return plan_ == nullptr ? "nothing" : plan_->way; }

void Convolution::run(const Call& call) const {
  if (plan_ == nullptr) return;
  prepare_thread();
  Call moved = call;
  moved.lhs += lhs_offset_bytes_;
  plan_->run(moved);
}

}  // namespace meshd::kernels
