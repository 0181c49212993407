#include "service/kernels/lapack.h"

#include <array>
#include <limits>
#include <string>

#include "service/core/error.h"
#include "service/kernels/blas_core.h"
#include "service/kernels/lapack_plans.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

/// Matrices are counted in 32 bits, workspaces of a few times their size too.
void expect_sizes(const LapackSpec& spec) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 8;
  const std::array<std::array<int64_t, 2>, 4> matrices = {{{spec.rows, spec.columns},
                                                           {spec.other_rows, spec.other_columns},
                                                           {spec.rows, spec.left_columns},
                                                           {spec.right_rows, spec.columns}}};
  for (const auto& [rows, columns] : matrices) {
    if (rows < kMost && columns < kMost && (rows == 0 || columns <= kMost / rows)) continue;
    throw core::Error("unsupported_op", "linear algebra: a matrix of " + std::to_string(rows) + " x " +
                                            std::to_string(columns) + " has more than " + std::to_string(kMost) +
                                            " elements");
  }
}

std::shared_ptr<const Lapack::Plan> make_plan(const LapackSpec& spec) {
  switch (spec.routine) {
    case LapackRoutine::kSyevd:
    case LapackRoutine::kGeev:
    case LapackRoutine::kGees:
    case LapackRoutine::kGehrd:
    case LapackRoutine::kSytrd:
      return plan_eigen(spec);
    case LapackRoutine::kGesdd:
    case LapackRoutine::kGesvd:
      return plan_svd(spec);
    case LapackRoutine::kTrsm:
    case LapackRoutine::kGtsv:
    case LapackRoutine::kTridiagonalPerturbed:
      return plan_solve(spec);
    default:
      return plan_factor(spec);
  }
}

}  // namespace

Lapack::Lapack(const LapackSpec& spec) : batch_(spec.batch) {
  if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kFloat64 && !tensor::is_complex(spec.dtype)) {
    throw core::Error("unsupported_dtype", "linear algebra of " + std::string(tensor::name(spec.dtype)) +
                                               ": float32, float64, complex64 and complex128 are supported");
  }
  expect_sizes(spec);
  prepare_openblas();
  plan_ = make_plan(spec);
}

int64_t Lapack::scratch_bytes() const { return plan_->scratch_bytes; }

void Lapack::run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch, int64_t begin,
                 int64_t end) const {
  std::vector<const std::byte*> in(plan_->operand_bytes.size());
  std::vector<std::byte*> out(plan_->result_bytes.size());
  for (int64_t item = begin; item < end; ++item) {
    for (size_t i = 0; i < in.size(); ++i) in[i] = operands[i] + item * plan_->operand_bytes[i];
    for (size_t i = 0; i < out.size(); ++i) out[i] = results[i] + item * plan_->result_bytes[i];
    plan_->run(in.data(), out.data(), scratch);
  }
}

}  // namespace meshd::kernels
