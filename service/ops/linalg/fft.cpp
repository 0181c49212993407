// The row of fft.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "service/kernels/fft/fft.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/linalg/linalg_vjp.h"
#include "service/ops/rewrites/batching.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using kernels::FftKind;
using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;
using tensor::DType;

FftKind kind_of(const OpView& view) {
  const std::string name = ir::string_or(attributes_of(view), "fft_type", "");
  if (name == "FFT") return FftKind::kForward;
  if (name == "IFFT") return FftKind::kInverse;
  if (name == "RFFT") return FftKind::kRealForward;
  if (name == "IRFFT") return FftKind::kRealInverse;
  reject(view, "fft I2: fft_type must be FFT, IFFT, RFFT or IRFFT, got '" + name + "'");
}

/// Values that are left of a real line of this length.
int64_t half_of(int64_t length) { return length == 0 ? 0 : length / 2 + 1; }

std::vector<ir::Type> infer_fft(const OpView& view) {
  expect_tensor_operands(view, "fft", 1);
  const FftKind kind = kind_of(view);
  const std::vector<int64_t> lengths = ir::ints(attributes_of(view), "fft_length");
  const ir::Type& operand = view.operands[0];
  const DType dtype = operand.dtype();
  const bool is_real = kind == FftKind::kRealForward;
  if (is_real ? dtype != DType::kFloat32 && dtype != DType::kFloat64 : !tensor::is_complex(dtype)) {
    reject(view, std::string("fft C4: the operand must be ") +
                     (is_real ? "f32 or f64" : "complex<f32> or complex<f64>") + ", got " + operand_text(view, 0));
  }
  if (lengths.empty() || lengths.size() > 3 || static_cast<int64_t>(lengths.size()) > operand.rank()) {
    reject(view, fmt::format("fft C1, C3: fft_length must have 1 to 3 lengths and no more than the operand has "
                             "dimensions, got {} for {}",
                             lengths.size(), operand_text(view, 0)));
  }
  Dims dims = operand.dims();
  const size_t first = dims.size() - lengths.size();
  for (size_t i = 0; i < lengths.size(); ++i) {
    const bool is_half = kind == FftKind::kRealInverse && i + 1 == lengths.size();
    const int64_t expected = is_half ? half_of(lengths[i]) : lengths[i];
    int64_t& dim = dims[first + i];
    if (lengths[i] < 0 || (dim != expected && dim != tensor::kDynamicDim)) {
      reject(view, fmt::format("fft C5: with fft_length {} dimension {} of the operand must be {}, got {}", lengths[i],
                               first + i, expected, operand_text(view, 0)));
    }
    dim = expected;
  }
  if (kind == FftKind::kRealForward) dims.back() = half_of(lengths.back());
  if (kind == FftKind::kRealInverse) dims.back() = lengths.back();
  const DType out = is_real                         ? tensor::complex_of(dtype)
                    : kind == FftKind::kRealInverse ? tensor::part_of(dtype)
                                                    : dtype;
  return agree(view, "fft C2", {ir::Type::of({out, std::move(dims)})});
}

FactorRule fft_rule(const OpView& view) {
  const Dims& in = view.operands[0].dims();
  const size_t batch = in.size() - ir::ints(attributes_of(view), "fft_length").size();
  const bool halves = in.back() != view.results[0].dims().back();
  FactorRuleBuilder builder = rule_builder(view);
  for (size_t dim = 0; dim < in.size(); ++dim) {
    const bool is_batch = dim < batch;
    builder.everywhere(static_cast<int>(dim), in[dim],
                       is_batch ? FactorKind::kPassThrough : FactorKind::kNeedReplication,
                       !is_batch && dim + 1 == in.size() && halves);
  }
  return builder.build();
}

PreparedKernel prepare_kind(const OpView& local, FftKind kind) {
  kernels::FftSpec spec;
  spec.kind = kind;
  spec.lengths = ir::ints(attributes_of(local), "fft_length");
  const Dims& dims = local.operands[0].dims();
  spec.is_double = local.operands[0].dtype() == DType::kFloat64 || local.operands[0].dtype() == DType::kComplex128;
  spec.batch = 1;
  for (size_t d = 0; d + spec.lengths.size() < dims.size(); ++d) spec.batch *= dims[d];
  auto fft = std::make_shared<const kernels::Fft>(std::move(spec));
  PreparedKernel kernel;
  kernel.work_count = fft->work_count();
  kernel.barriers = fft->barriers();
  kernel.passes_checkpoints = true;
  kernel.flops = fft->flops();
  kernel.bytes = static_cast<double>(tensor::byte_count(local.operands[0].tensor)) +
                 static_cast<double>(tensor::byte_count(local.results[0].tensor));
  kernel.scratch_bytes = fft->scratch_bytes();
  kernel.workspace_bytes = fft->workspace_bytes();
  kernel.run = [fft](const KernelCall& call) {
    fft->run({call.operands[0], call.results[0], call.scratch, call.workspace}, call.begin, call.end, call.checkpoint);
  };
  return kernel;
}

PreparedKernel prepare_fft(const OpView& local) { return prepare_kind(local, kind_of(local)); }

/// Complex transforms of reals have half of the work: the other half mirrors it.
std::optional<PreparedKernel> prepare_fft_of_reals(const OpView& local) {
  const DType real = local.operands[0].dtype();
  const bool is_real = real == DType::kFloat32 || real == DType::kFloat64;
  if (kind_of(local) != FftKind::kForward || !is_real || tensor::complex_of(real) != local.results[0].dtype())
    return std::nullopt;
  return prepare_kind(local, FftKind::kRealForwardWhole);
}

}  // namespace

std::vector<OpDef> fft_rows() {
  return {
      {.name = "stablehlo.fft",
       .summary = "discrete Fourier transform of the last 1 to 3 dimensions",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [8] : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>
    return %0 : tensor<4x5xcomplex<f32>>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"fft_type", true, "FFT, IFFT, RFFT (real to half) or IRFFT (half to real)"},
                                    {"fft_length", true, "lengths of the transformed dimensions, real side"}}},
       .text = {.fields = {{"type", FieldKind::kEnum, "fft_type", "fft_type"},
                           {"length", FieldKind::kIntArray, "fft_length"}}},
       .infer = infer_fft,
       .bounded = BoundedForm::kTransform,
       .rule = fft_rule,
       .body = LocalKernel{prepare_fft},
       .derivative = {vjp_fft},
       .batch = batch_leading,
       .fuse = {.of_converted = prepare_fft_of_reals}},
  };
}

}  // namespace meshd::ops
