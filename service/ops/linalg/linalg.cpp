// The rows of cholesky and triangular_solve.
#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/kernels/lapack/lapack.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/linalg/linalg_vjp.h"
#include "service/ops/quantized.h"
#include "service/ops/rewrites/batching.h"
#include "service/ops/rule_views.h"
#include "service/tensor/buffer.h"
#include "service/tensor/half.h"

namespace meshd::ops {
namespace {

using kernels::Lapack;
using kernels::LapackRoutine;
using kernels::LapackSpec;
using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;
using tensor::DType;

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

void expect_element_type(const OpView& view, const std::string& op) {
  const DType dtype = view.operands[0].dtype();
  if (is_half(dtype) || dtype == DType::kFloat32 || dtype == DType::kFloat64 || tensor::is_complex(dtype)) return;
  reject(view, op + ": the element type must be f16, bf16, f32, f64, complex<f32> or complex<f64>, got " +
                   operand_text(view, 0));
}

bool same_size(int64_t a, int64_t b) { return a == b || a == tensor::kDynamicDim || b == tensor::kDynamicDim; }

int64_t batch_of(const Dims& dims) {
  int64_t batch = 1;
  for (size_t d = 0; d + 2 < dims.size(); ++d) batch *= dims[d];
  return batch;
}

void widen(DType dtype, const std::byte* from, int64_t count, float* to) {
  const auto* codes = reinterpret_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < count; ++i) {
    to[i] = dtype == DType::kFloat16 ? tensor::float16_to_float(codes[i]) : tensor::bfloat16_to_float(codes[i]);
  }
}
void narrow(DType dtype, const float* from, int64_t count, std::byte* to) {
  auto* const codes = reinterpret_cast<uint16_t*>(to);
  for (int64_t i = 0; i < count; ++i) {
    codes[i] = dtype == DType::kFloat16 ? tensor::float_to_float16(from[i]) : tensor::float_to_bfloat16(from[i]);
  }
}

std::vector<ir::Type> infer_cholesky(const OpView& view) {
  expect_tensor_operands(view, "cholesky", 1);
  // checks: cholesky I1: the element type is f16, bf16, f32, f64, complex<f32> or complex<f64>
  expect_element_type(view, "cholesky I1");
  const Dims& dims = view.operands[0].dims();
  if (dims.size() < 2) {
    reject(view, "cholesky C2: the operand must be a matrix or a batch of them, got " + operand_text(view, 0));
  }
  if (!same_size(dims[dims.size() - 2], dims.back())) {
    reject(view, "cholesky C3: the matrix must be square, got " + operand_text(view, 0));
  }
  return agree(view, "cholesky C1", {view.operands[0]});
}

FactorRule cholesky_rule(const OpView& view) {
  const Dims& dims = view.operands[0].dims();
  FactorRuleBuilder builder = rule_builder(view);
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    builder.everywhere(static_cast<int>(dim), dims[dim],
                       dim + 2 < dims.size() ? FactorKind::kPassThrough : FactorKind::kNeedReplication);
  }
  return builder.build();
}

/// Zeros on the other side of the diagonal; all NaN where the matrix is not positive definite.
template <class T>
void finish_cholesky(T* factor, int64_t order, bool lower, bool failed) {
  using Limits = std::numeric_limits<float>;
  if (failed) return static_cast<void>(std::fill_n(factor, order * order, T(Limits::quiet_NaN())));
  for (int64_t i = 0; i < order; ++i) {
    T* const row = factor + i * order;
    std::fill(lower ? row + i + 1 : row, lower ? row + order : row + i, T{});
  }
}

void finish_cholesky(DType dtype, std::byte* factor, int64_t order, bool lower, bool failed) {
  switch (dtype) {
    case DType::kFloat64:
      return finish_cholesky(reinterpret_cast<double*>(factor), order, lower, failed);
    case DType::kComplex64:
      return finish_cholesky(reinterpret_cast<std::complex<float>*>(factor), order, lower, failed);
    case DType::kComplex128:
      return finish_cholesky(reinterpret_cast<std::complex<double>*>(factor), order, lower, failed);
    case DType::kFloat32:
      return finish_cholesky(reinterpret_cast<float*>(factor), order, lower, failed);
    default:
      throw core::Error("internal", "cholesky has no kernel for " + std::string(tensor::name(dtype)));
  }
}

/// Parts of large matrices as work items; those of the last phase complete a matrix each.
void set_split_run(std::shared_ptr<const Lapack> lapack, const LapackSpec& spec, bool lower, PreparedKernel& kernel) {
  const int64_t parts = lapack->work_count();
  const int64_t info_at = core::round_up(lapack->workspace_bytes(), tensor::kBufferAlignment);
  kernel.work_count = parts + spec.batch;
  kernel.barriers = lapack->barriers();
  kernel.barriers.push_back(parts);
  kernel.workspace_bytes = info_at + spec.batch * static_cast<int64_t>(sizeof(int32_t));
  kernel.run = [lapack = std::move(lapack), parts, info_at, lower, order = spec.rows,
                dtype = spec.dtype](const KernelCall& call) {
    std::byte* const results[] = {call.results[0], call.workspace + info_at};
    lapack->run({call.operands, results, nullptr, call.workspace}, call.begin, std::min(call.end, parts),
                call.checkpoint);
    const int64_t bytes = order * order * tensor::size_bytes(dtype);
    const auto* const info = reinterpret_cast<const int32_t*>(call.workspace + info_at);
    for (int64_t item = std::max(call.begin - parts, int64_t{0}); item < call.end - parts; ++item)
      finish_cholesky(dtype, call.results[0] + item * bytes, order, lower, info[item] != 0);
  };
}

PreparedKernel prepare_cholesky(const OpView& local) {
  const ir::Type& type = local.operands[0];
  const Dims& dims = type.dims();
  const int64_t order = dims.back();
  const bool lower = ir::bool_or(attributes_of(local), "lower", false);
  const bool half = is_half(type.dtype());
  LapackSpec spec;
  spec.routine = LapackRoutine::kPotrf;
  spec.dtype = half ? DType::kFloat32 : type.dtype();
  spec.batch = batch_of(dims);
  spec.rows = spec.columns = order;
  spec.uplo = lower ? 'L' : 'U';
  PreparedKernel kernel;
  kernel.passes_checkpoints = true;
  kernel.flops = static_cast<double>(spec.batch) * static_cast<double>(order * order * order) / 3;
  kernel.bytes = 2 * static_cast<double>(tensor::byte_count(type.tensor));
  kernel.in_place = {{0, 0}};
  if (auto batch = std::make_shared<const Lapack>(spec); !half && !batch->barriers().empty()) {
    set_split_run(std::move(batch), spec, lower, kernel);
    return kernel;
  }
  // A matrix at a time, as each is completed or converted at once.
  kernel.work_count = std::exchange(spec.batch, 1);
  auto lapack = std::make_shared<const Lapack>(spec);
  const int64_t float_bytes =
      half ? core::round_up(order * order * static_cast<int64_t>(sizeof(float)), tensor::kBufferAlignment) : 0;
  kernel.scratch_bytes = float_bytes + lapack->workspace_bytes();
  kernel.run = [lapack, order, lower, half, float_bytes, dtype = type.dtype(),
                work_dtype = spec.dtype](const KernelCall& call) {
    const int64_t count = order * order;
    const int64_t bytes = count * tensor::size_bytes(dtype);
    for (int64_t item = call.begin; item < call.end; ++item) {
      const std::byte* from = call.operands[0] + item * bytes;
      std::byte* const to = call.results[0] + item * bytes;
      std::byte* const factor = half ? call.scratch : to;
      if (half) {
        widen(dtype, from, count, reinterpret_cast<float*>(call.scratch));
        from = call.scratch;
      }
      int32_t info = 0;
      std::byte* const results[] = {factor, reinterpret_cast<std::byte*>(&info)};
      lapack->run({&from, results, nullptr, call.scratch + float_bytes}, 0, lapack->work_count(), call.checkpoint);
      finish_cholesky(work_dtype, factor, order, lower, info != 0);
      if (half) narrow(dtype, reinterpret_cast<const float*>(call.scratch), count, to);
    }
  };
  return kernel;
}

std::vector<ir::Type> infer_triangular_solve(const OpView& view) {
  expect_tensor_operands(view, "triangular_solve", 2);
  // checks: triangular_solve I1: the element type is f16, bf16, f32, f64, complex<f32> or complex<f64>
  expect_element_type(view, "triangular_solve I1");
  const ir::Type& a = view.operands[0];
  const ir::Type& b = view.operands[1];
  if (a.dtype() != b.dtype()) {
    reject(view, "triangular_solve C1: a and b must have one element type, got " + operand_text(view, 0) + " and " +
                     operand_text(view, 1));
  }
  if (a.rank() < 2 || a.rank() != b.rank()) {
    reject(view, "triangular_solve C2: a and b must be matrices or batches of them of one rank, got " +
                     operand_text(view, 0) + " and " + operand_text(view, 1));
  }
  const size_t rows = a.dims().size() - 2;
  const bool left = ir::bool_or(attributes_of(view), "left_side", true);
  bool fits =
      same_size(a.dims()[rows], a.dims()[rows + 1]) && same_size(a.dims()[rows], b.dims()[left ? rows : rows + 1]);
  for (size_t d = 0; d < rows; ++d) fits = fits && same_size(a.dims()[d], b.dims()[d]);
  if (!fits) {
    reject(view, std::string("triangular_solve C3: a must be square and as large as ") +
                     (left ? "b has rows" : "b has columns") + ", and batch dimensions must agree, got " +
                     operand_text(view, 0) + " and " + operand_text(view, 1));
  }
  const std::string transpose = ir::string_or(attributes_of(view), "transpose_a", "NO_TRANSPOSE");
  if (transpose != "NO_TRANSPOSE" && transpose != "TRANSPOSE" && transpose != "ADJOINT") {
    reject(view,
           "triangular_solve I6: transpose_a must be NO_TRANSPOSE, TRANSPOSE or ADJOINT, got '" + transpose + "'");
  }
  return agree(view, "triangular_solve C4", {b});
}

FactorRule triangular_solve_rule(const OpView& view) {
  const Dims& a = view.operands[0].dims();
  const Dims& b = view.operands[1].dims();
  const int rows = static_cast<int>(a.size()) - 2;
  const int columns = rows + 1;
  const std::string transpose = ir::string_or(attributes_of(view), "transpose_a", "NO_TRANSPOSE");
  const bool transposed = transpose != "NO_TRANSPOSE";
  const bool left = ir::bool_or(attributes_of(view), "left_side", true);
  const auto size_of = [](const Dims& dims, int dim) { return dims[static_cast<size_t>(dim)]; };
  FactorRuleBuilder builder = rule_builder(view);
  for (int dim = 0; dim < rows; ++dim) builder.everywhere(dim, size_of(a, dim));
  // op(a) x = b, or x op(a) = b.
  const int a_free = (left != transposed) ? rows : columns;
  const int a_contracting = a_free == rows ? columns : rows;
  const int b_with_a = left ? rows : columns;
  const int b_free = left ? columns : rows;
  const auto with_a = [&] {
    builder.factor({a_free, b_with_a}, {-1}, size_of(a, a_free), FactorKind::kNeedReplication);
  };
  if (left) with_a();
  builder.factor({-1, b_free}, {b_free}, size_of(b, b_free), FactorKind::kNeedReplication);
  if (!left) with_a();
  builder.factor({a_contracting, -1}, {b_with_a}, size_of(a, a_contracting), FactorKind::kNeedReplication);
  return builder.build();
}

PreparedKernel prepare_triangular_solve(const OpView& local) {
  const ir::AttributeList& attributes = attributes_of(local);
  const ir::Type& type = local.operands[1];
  const Dims& dims = type.dims();
  const bool half = is_half(type.dtype());
  const std::string transpose = ir::string_or(attributes, "transpose_a", "NO_TRANSPOSE");
  LapackSpec spec;
  spec.routine = LapackRoutine::kTrsm;
  spec.dtype = half ? DType::kFloat32 : type.dtype();
  spec.batch = batch_of(dims);
  spec.rows = spec.columns = local.operands[0].dims().back();
  spec.other_rows = dims[dims.size() - 2];
  spec.other_columns = dims.back();
  spec.side = ir::bool_or(attributes, "left_side", true) ? 'L' : 'R';
  spec.uplo = ir::bool_or(attributes, "lower", false) ? 'L' : 'U';
  spec.diagonal = ir::bool_or(attributes, "unit_diagonal", false) ? 'U' : 'N';
  spec.transpose = transpose == "ADJOINT" ? 'C' : transpose == "TRANSPOSE" ? 'T' : 'N';
  const int64_t a_count = spec.rows * spec.rows;
  const int64_t b_count = spec.other_rows * spec.other_columns;
  PreparedKernel kernel;
  kernel.passes_checkpoints = true;
  kernel.flops = static_cast<double>(spec.batch * b_count) * static_cast<double>(spec.rows);
  kernel.bytes = static_cast<double>(tensor::byte_count(local.operands[0].tensor)) +
                 2 * static_cast<double>(tensor::byte_count(type.tensor));
  kernel.in_place = {{1, 0}};
  if (!half) {
    auto lapack = std::make_shared<const Lapack>(spec);
    kernel.work_count = lapack->work_count();
    kernel.run = [lapack](const KernelCall& call) {
      lapack->run({call.operands, call.results, call.scratch, nullptr}, call.begin, call.end, call.checkpoint);
    };
    return kernel;
  }
  // A matrix at a time, as each is converted at once.
  kernel.work_count = std::exchange(spec.batch, 1);
  auto lapack = std::make_shared<const Lapack>(spec);
  kernel.scratch_bytes = (a_count + b_count) * static_cast<int64_t>(sizeof(float));
  kernel.run = [lapack, a_count, b_count, dtype = type.dtype()](const KernelCall& call) {
    auto* const a = reinterpret_cast<float*>(call.scratch);
    float* const b = a + a_count;
    const std::byte* const operands[] = {reinterpret_cast<std::byte*>(a), reinterpret_cast<std::byte*>(b)};
    std::byte* const results[] = {reinterpret_cast<std::byte*>(b)};
    for (int64_t item = call.begin; item < call.end; ++item) {
      widen(dtype, call.operands[0] + item * a_count * 2, a_count, a);
      widen(dtype, call.operands[1] + item * b_count * 2, b_count, b);
      lapack->run({operands, results, nullptr, nullptr}, 0, lapack->work_count(), call.checkpoint);
      narrow(dtype, b, b_count, call.results[0] + item * b_count * 2);
    }
  };
  return kernel;
}

}  // namespace

std::vector<OpDef> linalg_rows() {
  return {
      {.name = "stablehlo.cholesky",
       .summary = "triangular factor of a positive definite matrix; NaN where it is not",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<2x3x3xf32>) -> tensor<2x3x3xf32> {
    %0 = stablehlo.cholesky %arg0, lower = true : tensor<2x3x3xf32>
    return %0 : tensor<2x3x3xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"lower", false, "which triangle is read and written; the upper one when absent"}}},
       .text = {.fields = {{"lower", FieldKind::kBool, "lower"}}},
       .infer = infer_cholesky,
       .bounded = BoundedForm::kMatrices,
       .quantized = kQuantizedMath,
       .rule = cholesky_rule,
       .body = LocalKernel{prepare_cholesky},
       .derivative = {vjp_cholesky},
       .batch = batch_leading},
      {.name = "stablehlo.triangular_solve",
       .summary = "x with op(a) x = b, or x op(a) = b, where a is triangular",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x4xf32>, %arg1: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true}> : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = 2,
                     .attributes = {{"left_side", true, "op(a) x = b; else x op(a) = b"},
                                    {"lower", true, "which triangle of a is read"},
                                    {"unit_diagonal", true, "a's diagonal counts as ones"},
                                    {"transpose_a", true, "NO_TRANSPOSE, TRANSPOSE or ADJOINT"}}},
       .infer = infer_triangular_solve,
       .bounded = BoundedForm::kMatrices,
       .quantized = kQuantizedMath,
       .rule = triangular_solve_rule,
       .body = LocalKernel{prepare_triangular_solve},
       .derivative = {vjp_triangular_solve},
       .batch = batch_leading},
  };
}

}  // namespace meshd::ops
