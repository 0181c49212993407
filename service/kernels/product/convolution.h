// Convolutions of any rank, layout and element type. Those of one input feature have loops of their own; what oneDNN
// has (f32 forward, by data and by weights, up to three spatial dimensions) runs there, one thread a call; the rest,
// and one image of large patches, is im2col and a matrix product. Layouts are strides: an operand is transposed only
// where the chosen implementation cannot read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/tensor/dtype.h"
#include "service/tensor/shape.h"

namespace meshd::kernels {

/// One spatial dimension: out[y] = sum over k of lhs[(y * stride + k * rhs_dilation - pad_low) / lhs_dilation] *
/// rhs[k], where the division has no rest and the place exists. With is_reversed, rhs[kernel - 1 - k].
struct ConvolutionDim {
  int64_t in = 1;
  int64_t kernel = 1;
  int64_t out = 1;
  int64_t stride = 1;
  int64_t pad_low = 0;  ///< may be negative
  int64_t lhs_dilation = 1;
  int64_t rhs_dilation = 1;
  bool is_reversed = false;
};

/// Strides of an operand, in elements.
struct ConvolutionStrides {
  int64_t group = 0;
  int64_t major = 0;  ///< batch; of rhs the output feature
  int64_t minor = 0;  ///< feature; of rhs the input feature
  tensor::Dims spatial;
};

struct ConvolutionSpec {
  int64_t groups = 1;  ///< feature groups or batch groups; the sizes below are those of one
  int64_t batch = 1;
  int64_t in_features = 1;
  int64_t out_features = 1;
  std::vector<ConvolutionDim> dims;
  ConvolutionStrides lhs;
  ConvolutionStrides rhs;
  ConvolutionStrides out;
  tensor::DType lhs_dtype = tensor::DType::kFloat32;
  tensor::DType rhs_dtype = tensor::DType::kFloat32;
  tensor::DType out_dtype = tensor::DType::kFloat32;
  /// How many pieces of this size one step works on: where there are several, threads have one each.
  int64_t copies = 1;
};

/// A convolution made ready. Immutable; run() may be called by several threads on disjoint ranges of work items. Floats
/// of up to 32 bits are multiplied and summed in f32, integers wrap around, sums of booleans are "or".
class Convolution {
 public:
  /// Throws unsupported_dtype when the types cannot be multiplied.
  explicit Convolution(const ConvolutionSpec& spec);

  [[nodiscard]] int64_t work_count() const { return plan_ == nullptr ? 0 : plan_->work_count; }
  /// Work items from each of these on need the results of all before it.
  [[nodiscard]] std::vector<int64_t> barriers() const {
    return plan_ == nullptr ? std::vector<int64_t>{} : plan_->barriers;
  }
  /// Bytes of scratch, aligned to 64, that each concurrent run() needs.
  [[nodiscard]] int64_t scratch_bytes() const { return plan_ == nullptr ? 0 : plan_->scratch_bytes; }
  /// Bytes, aligned to 64, that all calls of one execution share.
  [[nodiscard]] int64_t workspace_bytes() const { return plan_ == nullptr ? 0 : plan_->workspace_bytes; }
  [[nodiscard]] double flops() const { return flops_; }
  /// Whose loops run: "oneDNN forward", "oneDNN by data", "oneDNN by weights", "taps", "columns". For tests and
  /// benchmarks.
  [[nodiscard]] const char* way() const;
  struct Call {
    const std::byte* lhs = nullptr;
    const std::byte* rhs = nullptr;
    std::byte* out = nullptr;
    int64_t begin = 0;  ///< range of work items
    int64_t end = 0;
    std::byte* scratch = nullptr;
    std::byte* workspace = nullptr;
    core::Checkpoint* checkpoint = nullptr;
  };
  void run(const Call& call) const;

  /// One implementation.
  struct Plan {
    int64_t work_count = 1;
    std::vector<int64_t> barriers;
    int64_t scratch_bytes = 0;
    int64_t workspace_bytes = 0;
    const char* way = "";
    virtual ~Plan() = default;
    virtual void run(const Call& call) const = 0;
  };

 private:
  std::shared_ptr<const Plan> plan_;
  int64_t lhs_offset_bytes_ = 0;  ///< where the lhs begins to be read
  double flops_ = 0;
};

/// The type that operands of these types are multiplied in.
tensor::DType convolution_type(tensor::DType lhs, tensor::DType rhs, tensor::DType out);

/// True where windows lie side by side, so that each element is in one of them at most (patches of vision
/// transformers).
bool has_disjoint_windows(const ConvolutionSpec& spec);

/// Null where the convolution has several input features, or results or elements that do not lie side by side.
std::shared_ptr<const Convolution::Plan> plan_convolution_taps(const ConvolutionSpec& spec);
/// Null where oneDNN has nothing for this, or is slower than columns.
std::shared_ptr<const Convolution::Plan> plan_convolution_onednn(const ConvolutionSpec& spec);
/// Takes everything.
std::shared_ptr<const Convolution::Plan> plan_convolution_columns(const ConvolutionSpec& spec);

}  // namespace meshd::kernels
