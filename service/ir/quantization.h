// Quantised element types (StableHLO, "Quantized element types"): integers that stand for floats, (i - zero_point) *
// scale. A tensor of such elements is a tensor of its storage integers that carries a Quantization.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "service/tensor/dtype.h"

namespace meshd::ir {

/// The parameters of !quant.uniform<storage<min:max>:expressed:dimension, {scale:zero_point, ...}>.
struct Quantization {
  tensor::DType storage = tensor::DType::kInt8;
  tensor::DType expressed = tensor::DType::kFloat32;
  int64_t storage_min = 0;
  int64_t storage_max = 0;
  int64_t dimension = -1;            ///< whose slices have parameters of their own; -1: one pair for the tensor
  std::vector<double> scales;        ///< as the text has them; computed with in the expressed type
  std::vector<int64_t> zero_points;  ///< as many as scales

  [[nodiscard]] bool is_per_axis() const { return dimension >= 0; }
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

/// A shared Quantization, or none. Two are equal where their parameters are. Immutable; any thread.
class QuantizationRef {
 public:
  QuantizationRef() = default;
  explicit QuantizationRef(Quantization quantization)
      : shared_(std::make_shared<const Quantization>(std::move(quantization))) {}

  explicit operator bool() const { return shared_ != nullptr; }
  const Quantization& operator*() const { return *shared_; }
  const Quantization* operator->() const { return shared_.get(); }

  friend bool operator==(const QuantizationRef& a, const QuantizationRef& b) {
    if (a.shared_ == b.shared_) return true;
    return a.shared_ != nullptr && b.shared_ != nullptr && *a.shared_ == *b.shared_;
  }

 private:
  std::shared_ptr<const Quantization> shared_;
};

/// !quant.uniform<i8:f32, 5.0e-01:3>, as the parser reads it.
std::string to_string(const Quantization& quantization);

}  // namespace meshd::ir
