#include "service/kernels/kernel_choices.h"

#include <cstdint>
#include <string_view>

#include "service/kernels/cpu.h"
#include "service/kernels/lapack/blas_core.h"
#include "service/kernels/product/gemm.h"

namespace meshd::kernels {
namespace {

std::string_view level_name(CpuLevel level) {
  switch (level) {
    case CpuLevel::kBase:
      return "base";
    case CpuLevel::kV3:
      return "avx2";
    case CpuLevel::kV4:
      break;
  }
  return "avx512";
}

}  // namespace

std::string kernel_choices() {
  using tensor::DType;
  struct Kind {
    const char* name;
    int64_t size;
    DType in, out;
  };
  constexpr int64_t kLarge = 1024;
  constexpr int64_t kSmall = 32;
  constexpr Kind kKinds[] = {
      {"f32", kLarge, DType::kFloat32, DType::kFloat32}, {"f32 small", kSmall, DType::kFloat32, DType::kFloat32},
      {"f64", kLarge, DType::kFloat64, DType::kFloat64}, {"bf16", kLarge, DType::kBfloat16, DType::kFloat32},
      {"f16", kLarge, DType::kFloat16, DType::kFloat32}, {"int8", kLarge, DType::kInt8, DType::kInt32}};
  std::string out(level_name(cpu_level()));
  out += "; products";
  for (const Kind& kind : kKinds) {
    GemmSpec spec;
    spec.m = spec.n = spec.k = kind.size;
    spec.in = kind.in;
    spec.out = kind.out;
    const std::string_view by = gemm_takes(kind.in, kind.out) ? gemm_choice(spec) : "converted";
    out.append(&kind == kKinds ? " " : ", ").append(kind.name).append(" ").append(by);
  }
  prepare_openblas();
  return out + "; openblas " + openblas_core();
}

}  // namespace meshd::kernels
