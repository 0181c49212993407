#include "service/kernels/lapack/lapack.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

#include "service/core/error.h"
#include "service/kernels/lapack/blas_core.h"
#include "service/kernels/lapack/lapack_plans.h"

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
    throw core::Error("unsupported_op", fmt::format("linear algebra: a matrix of {} x {} has more than {} elements",
                                                    rows, columns, kMost));
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
    case LapackRoutine::kPotrf:
      return plan_cholesky(spec);
    case LapackRoutine::kGetrf:
    case LapackRoutine::kGeqrf:
    case LapackRoutine::kOrgqr:
    case LapackRoutine::kOrmqr:
    case LapackRoutine::kGeqp3:
      return plan_factor(spec);
  }
  return nullptr;
}

// Operations of one problem, as the literature counts them.
double flops_of(const LapackSpec& spec) {
  const auto m = static_cast<double>(std::max(spec.rows, spec.other_rows));
  const auto n = static_cast<double>(std::max(spec.columns, spec.other_columns));
  const double least = std::min(m, n);
  double factor = 2;
  switch (spec.routine) {
    case LapackRoutine::kGtsv:
    case LapackRoutine::kTridiagonalPerturbed:
      return 10 * m * static_cast<double>(spec.other_columns + 1);
    case LapackRoutine::kPotrf:
      factor = 1.0 / 3;
      break;
    case LapackRoutine::kTrsm:
      factor = 1;
      break;
    case LapackRoutine::kSyevd:
      factor = 9;
      break;
    case LapackRoutine::kGesdd:
    case LapackRoutine::kGesvd:
      factor = 20;
      break;
    case LapackRoutine::kGeev:
    case LapackRoutine::kGees:
      factor = 25;
      break;
    default:
      break;
  }
  return factor * m * n * least * (tensor::is_complex(spec.dtype) ? 4 : 1);
}

// A library call that long is none that others wait for; one of kMostLapackFlops takes minutes, and nothing ends it.
constexpr double kUncheckedLapackFlops = 5e7;
constexpr double kMostLapackFlops = 1e13;

void expect_operations(double flops) {
  if (flops <= kMostLapackFlops) return;
  std::ostringstream text;
  text.precision(3);
  text << "linear algebra: one problem takes about " << flops
       << " operations; a call that cannot be interrupted may take " << kMostLapackFlops;
  throw core::Error("unsupported_op", text.str());
}

// Where each operand or result of a problem begins.
template <class Byte>
std::vector<Byte*> of_problem(Byte* const* memory, const std::vector<int64_t>& bytes, int64_t problem) {
  std::vector<Byte*> out(bytes.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = memory[i] + problem * bytes[i];
  return out;
}

}  // namespace

Lapack::Lapack(const LapackSpec& spec) : batch_(spec.batch) {
  if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kFloat64 && !tensor::is_complex(spec.dtype)) {
    throw core::Error("unsupported_dtype",
                      fmt::format("linear algebra of {}: float32, float64, complex64 and complex128 are supported",
                                  tensor::name(spec.dtype)));
  }
  expect_sizes(spec);
  flops_ = flops_of(spec);
  expect_operations(flops_);
  prepare_openblas();
  plan_ = make_plan(spec);
  if (plan_->phases.empty()) work_count_ = batch_;
  for (const int64_t items : plan_->phases) {
    if (work_count_ > 0) barriers_.push_back(work_count_);
    work_count_ += items * batch_;
  }
}

int64_t Lapack::scratch_bytes() const { return plan_->scratch_bytes; }

int64_t Lapack::workspace_bytes() const { return plan_->workspace_bytes * batch_; }

void Lapack::run(const Memory& memory, int64_t begin, int64_t end, core::Checkpoint* checkpoint) const {
  if (plan_->phases.empty()) {
    for (int64_t problem = begin; problem < end; ++problem) run_problem(memory, problem, checkpoint);
    return;
  }
  int64_t phase = 0;
  for (int64_t work_item = begin; work_item < end; ++work_item) {
    core::pass(checkpoint);
    while (phase < static_cast<int64_t>(barriers_.size()) && work_item >= barriers_[static_cast<size_t>(phase)])
      ++phase;
    const int64_t in_phase = work_item - (phase == 0 ? 0 : barriers_[static_cast<size_t>(phase - 1)]);
    const int64_t items = plan_->phases[static_cast<size_t>(phase)];
    core::UncheckedCall call(flops_ > kUncheckedLapackFlops * static_cast<double>(items) ? checkpoint : nullptr);
    run_item(memory, in_phase / items, phase, in_phase % items);
    call.end();
  }
}

void Lapack::run_item(const Memory& memory, int64_t problem, int64_t phase, int64_t item) const {
  plan_->run_item(of_problem(memory.operands, plan_->operand_bytes, problem).data(),
                  of_problem(memory.results, plan_->result_bytes, problem).data(),
                  memory.workspace + problem * plan_->workspace_bytes, phase, item);
}

void Lapack::run_problem(const Memory& memory, int64_t problem, core::Checkpoint* checkpoint) const {
  const auto in = of_problem(memory.operands, plan_->operand_bytes, problem);
  const auto out = of_problem(memory.results, plan_->result_bytes, problem);
  core::pass(checkpoint);
  core::UncheckedCall call(flops_ > kUncheckedLapackFlops ? checkpoint : nullptr);
  plan_->run(in.data(), out.data(), memory.scratch);
  call.end();
}

}  // namespace meshd::kernels
