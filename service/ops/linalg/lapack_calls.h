// The custom-call targets of LAPACK that JAX uses on CPU: lapack_spotrf_ffi and others, 15 routines for four element
// types, and the tridiagonal solution that perturbs singular matrices.
#pragma once

#include <span>
#include <string_view>

#include "service/ops/op_def.h"

namespace meshd::kernels {
struct LapackSpec;
}

namespace meshd::ops {

/// One target and what it computes.
struct LapackTarget {
  std::string_view target;
  std::string_view summary;
};

/// All targets. Any thread.
std::span<const LapackTarget> lapack_targets();

/// The number of leading dimensions of a call that are batch dimensions.
int64_t lapack_batch_rank(const OpView& view);
/// operand_layouts or result_layouts of a call whose matrices have `batch_rank` batch dimensions: they are
/// column-major, all else is row-major.
ir::Attribute lapack_layouts(std::span<const ir::Type> types, int64_t batch_rank);

/// Throws invalid_program unless configuration, operands, results, layouts and aliases are what the target takes. Types
/// may have dynamic dimensions.
void check_lapack_call(const OpView& view);
/// Batch dimensions pass through; matrices are replicated. The rule that JAX writes on the op.
sharding::FactorRule lapack_call_rule(const OpView& view);
PreparedKernel prepare_lapack_call(const OpView& local);
/// What a call computes, after all of it has been checked.
kernels::LapackSpec lapack_spec(const OpView& view);
/// Reverse mode (lapack_vjp.cpp): of potrf, getrf, syevd, gesdd, geev for its eigenvalues, gtsv and trsm.
std::vector<Contribution> vjp_lapack_call(const Vjp& v);

}  // namespace meshd::ops
