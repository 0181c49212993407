// The ways a product can be made. Private to gemm*.cpp.
#pragma once

#include <memory>
#include <utility>

#include "service/kernels/gemm.h"

namespace meshd::kernels {

/// A plan and the scratch it needs; null when this way does not do this product.
struct GemmPlan {
  std::shared_ptr<const Gemm::Plan> plan;
  int64_t scratch_bytes = 0;
};

/// True when the layout can be given to a BLAS as it is; `rows` x `columns`.
bool is_blas_layout(int64_t rows, int64_t columns, MatrixLayout layout);

/// Loops of our own: integers (any strides of a, b's columns next to each other).
GemmPlan plan_loops(const GemmSpec& spec);
/// dnnl_sgemm.
GemmPlan plan_sgemm(const GemmSpec& spec);
/// cblas_?gemm and cblas_?gemv.
GemmPlan plan_openblas(const GemmSpec& spec);
/// oneDNN's matmul primitive: bf16 and i8.
GemmPlan plan_matmul_primitive(const GemmSpec& spec);

/// Whether oneDNN has instructions for these types on this processor.
bool has_matmul_primitive(tensor::DType in, tensor::DType out);

}  // namespace meshd::kernels
