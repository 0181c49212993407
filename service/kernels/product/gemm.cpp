#include "service/kernels/product/gemm.h"

#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "service/core/error.h"
#include "service/kernels/cpu.h"
#include "service/kernels/lapack/blas_core.h"
#include "service/kernels/product/gemm_plans.h"
#include "service/kernels/product/tile_kernel.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

// What is smaller is over before a library has begun it.
constexpr double kPrimitiveFlops = 2.0 * 64 * 64 * 64;
// Tiles need no library, but are to be full: a step of bfloat16 has so many terms.
constexpr int64_t kAmxLeastTerms = 32;
constexpr double kAmxFlops = 2.0 * 32 * 32 * 32;

bool is_wide_integer(DType dtype) { return tensor::is_integer(dtype) && tensor::row(dtype).bits == 64; }

bool takes_packed(DType in, DType out) {
  if (out == DType::kFloat32) return in == DType::kFloat32 || in == DType::kBfloat16 || in == DType::kFloat16;
  const bool is_narrow = tensor::is_integer(in) && tensor::row(in).bits >= 8 && tensor::row(in).bits <= 32;
  return is_narrow && tensor::is_integer(out) && tensor::row(out).bits == 32;
}

enum class Loops : uint8_t { kIntegers, kVector, kPacked, kAmx, kSgemm, kOpenBlas, kPrimitive };

// Which loops multiply f32 matrices, by instruction level and sizes. In GFLOP/s of one core of an AMD Zen 5 (4.1 GHz:
// AVX-512 at most 265, AVX2 133), the other instructions masked:
//
//                              AVX-512                     AVX2
//                         own  oneDNN  OpenBLAS     own  oneDNN  OpenBLAS
//   32^3                  164     104       193      83      67        70
//   64^3                  217     187       245     122     124       114
//   64^3, b transposed    200     142       157     107     108        97
//   128^3                 223     242       205     119     126       117
//   512^3                 234     243       235     121     125       125
//   2048^3                225     239       230     117     123       123
//   64 x 64 x 8192        191     234       186     105     120       108
//   512 x 10 x 1024        84     116        67      57      70        67
//   512 x 1024 x 10       170     108       110     100      65        89
//
// With AVX2 alone processors differ: on one, oneDNN had 40 % of what the core can do and OpenBLAS 55 %, where Eigen has
// 73 %; on a Zen 3, products of 512^3 and more on both cores are up to 12 % faster with OpenBLAS than with our own
// loops (docs/decisions/products.md). Ours are near the best on all and cut by columns: the choice for AVX2; with
// AVX-512 oneDNN is 4 to 8 % faster where neither rows nor sums are short, and 20 % where sums alone are long; small
// products are better cut by columns, for two cores, than 5 % faster on one.
Loops f32_loops(const GemmSpec& spec) {
  constexpr int64_t kShort = 64;
  constexpr double kSmallFlops = 2e7;  // few enough to be cut by columns for two cores
  const double flops = 2 * static_cast<double>(spec.m) * static_cast<double>(spec.n) * static_cast<double>(spec.k);
  const bool is_large = std::min(spec.m, spec.k) >= kShort && flops >= kSmallFlops;
  return cpu_level() == CpuLevel::kV4 && is_large ? Loops::kSgemm : Loops::kPacked;
}

// Whatever the sizes, so that an element's bits do not depend on its block; gemm_is_worth_it() has the sizes that pay.
bool takes_amx(DType in, DType out) {
  const bool is_bf16 = in == DType::kBfloat16 && (out == DType::kBfloat16 || out == DType::kFloat32);
  return (is_bf16 || (in == DType::kInt8 && out == DType::kInt32)) && has_amx();
}

Loops choose(const GemmSpec& spec) {
  if (is_wide_integer(spec.in)) return Loops::kIntegers;
  if (takes_vector_loops(spec)) return Loops::kVector;
  if (spec.in == DType::kFloat32 && spec.out == DType::kFloat32) return f32_loops(spec);
  const double flops = 2 * static_cast<double>(spec.m) * static_cast<double>(spec.n) * static_cast<double>(spec.k);
  const bool is_packed = takes_packed(spec.in, spec.out);
  if (takes_amx(spec.in, spec.out)) return Loops::kAmx;
  if (has_matmul_primitive(spec.in, spec.out) && (flops >= kPrimitiveFlops || !is_packed)) return Loops::kPrimitive;
  return is_packed ? Loops::kPacked : Loops::kOpenBlas;
}

std::string_view name_of(Loops loops) {
  switch (loops) {
    case Loops::kIntegers:
      return "integers";
    case Loops::kVector:
      return "vector";
    case Loops::kPacked:
      return "packed";
    case Loops::kAmx:
      return "amx";
    case Loops::kOpenBlas:
      return "openblas";
    case Loops::kSgemm:
    case Loops::kPrimitive:
      break;
  }
  return "onednn";
}

GemmPlan plan_of(const GemmSpec& spec) {
  switch (choose(spec)) {
    case Loops::kIntegers:
      return plan_loops(spec);
    case Loops::kVector:
      return plan_vector(spec);
    case Loops::kPacked:
      return plan_packed(spec);
    case Loops::kAmx:
      return plan_amx(spec, amx_unit(spec.in));
    case Loops::kSgemm:
      prepare_thread();
      return plan_sgemm(spec);
    case Loops::kOpenBlas:
      prepare_thread();
      return plan_openblas(spec);
    case Loops::kPrimitive:
      break;
  }
  prepare_thread();  // oneDNN plans for the threads that it sees here
  return plan_matmul_primitive(spec);
}

}  // namespace

Panels::Panels(const GemmSpec& spec, int64_t least) : rows(spec.m), columns(spec.n) {
  constexpr double kPanelFlops = 4e9;  // a hundred or two milliseconds: what is less is one panel
  constexpr double kWantedFlops = 2e9;
  const double of_sum = 2 * static_cast<double>(spec.k) * (tensor::is_complex(spec.in) ? 4 : 1);
  const auto flops = [&] { return of_sum * static_cast<double>(rows) * static_cast<double>(columns); };
  const auto cut = [&](int64_t& size, int64_t multiple) {
    const double wanted = static_cast<double>(size) * kWantedFlops / flops();
    const int64_t at_least = std::max(static_cast<int64_t>(wanted), least);
    size = std::min(size, std::max<int64_t>(1, at_least / multiple) * multiple);
  };
  if (flops() <= kPanelFlops) return;
  cut(columns, kColumnMultiple);
  if (flops() > kPanelFlops) cut(rows, kRowMultiple);
}

void prepare_thread() {
  limit_onednn();
  prepare_openblas();
  omp_set_num_threads(1);
}

bool is_blas_layout(int64_t rows, int64_t columns, MatrixLayout layout) {
  const bool plain = (layout.column_stride == 1 || columns == 1) && (layout.row_stride >= columns || rows == 1);
  const bool transposed = (layout.row_stride == 1 || rows == 1) && (layout.column_stride >= rows || columns == 1);
  return plain || transposed;
}

bool gemm_takes(DType in, DType out) {
  if (in == out && (in == DType::kFloat64 || tensor::is_complex(in) || is_wide_integer(in))) return true;
  return takes_packed(in, out) || takes_amx(in, out) || has_matmul_primitive(in, out);
}

bool gemm_is_worth_it(DType in, int64_t m, int64_t n, int64_t k) {
  const double flops = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (in != DType::kBfloat16 && in != DType::kFloat16) return true;
  if (takes_amx(in, DType::kFloat32) && std::min(m, n) >= kAmxSide && k >= kAmxLeastTerms) return flops >= kAmxFlops;
  return flops >= kPrimitiveFlops;
}

std::string_view gemm_choice(const GemmSpec& spec) { return name_of(choose(spec)); }

bool gemm_takes_blocks(const GemmSpec& spec) {
  const Loops loops = choose(spec);
  return loops == Loops::kPacked || loops == Loops::kAmx || loops == Loops::kVector;
}

double gemm_flops_per_ns(const GemmSpec& spec) {
  constexpr double kAmx = 1000;
  constexpr double kPacked = 100;  // between what AVX2 and AVX-512 have
  constexpr double kOthers = 30;
  constexpr double kAmxOfOne = 16;  // for each row or column, of few: the larger operand has to be read
  if (choose(spec) == Loops::kAmx) return std::min(kAmx, kAmxOfOne * static_cast<double>(std::min(spec.m, spec.n)));
  return takes_packed(spec.in, spec.out) ? kPacked : kOthers;
}

bool gemm_adds(const GemmSpec& spec) { return choose(spec) == Loops::kPacked && spec.k > 0 && spec.k <= kTileDepth; }

bool gemm_takes_a(DType in, int64_t rows, int64_t columns, MatrixLayout layout) {
  return is_wide_integer(in) || is_blas_layout(rows, columns, layout);
}

bool gemm_takes_b(DType in, int64_t rows, int64_t columns, MatrixLayout layout) {
  if (is_wide_integer(in)) return layout.column_stride == 1 || columns == 1;
  return is_blas_layout(rows, columns, layout);
}

Gemm::Gemm(const GemmSpec& spec) {
  if (!gemm_takes(spec.in, spec.out)) {
    throw core::Error("unsupported_dtype",
                      fmt::format("no product of {} into {}", tensor::name(spec.in), tensor::name(spec.out)));
  }
  rows_ = spec.m;
  row_bytes_ = spec.n * tensor::size_bytes(spec.out);
  c_row_bytes_ = spec.c_row_stride() * tensor::size_bytes(spec.out);
  is_empty_sum_ = spec.k == 0;
  if (is_empty_sum_ || rows_ * row_bytes_ == 0) return;
  const Loops loops = choose(spec);
  choice_ = name_of(loops);
  uses_library_ = loops == Loops::kSgemm || loops == Loops::kOpenBlas || loops == Loops::kPrimitive;
  GemmPlan plan = plan_of(spec);
  plan_ = std::move(plan.plan);
  scratch_bytes_ = plan.scratch_bytes;
  keeps_packed_ = plan.keeps_packed;
}

void Gemm::run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* scratch, core::Checkpoint* checkpoint,
               PackedOperand* kept) const {
  if (rows_ * row_bytes_ == 0) return;
  if (is_empty_sum_) {
    for (int64_t row = 0; row < rows_; ++row) std::memset(c + row * c_row_bytes_, 0, static_cast<size_t>(row_bytes_));
    return;
  }
  if (uses_library_) prepare_thread();
  if (kept != nullptr && kept->by != choice_) *kept = {.of = nullptr, .by = choice_};
  plan_->run(a, b, c, scratch, checkpoint, kept);
}

}  // namespace meshd::kernels
