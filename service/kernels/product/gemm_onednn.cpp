// Products by oneDNN: dnnl_sgemm for f32 (nothing to create), the matmul primitive for bf16 and int8.
#include <fmt/core.h>

#include <algorithm>

#include <oneapi/dnnl/dnnl.hpp>

#include "service/core/error.h"
#include "service/kernels/cpu.h"
#include "service/kernels/product/gemm_plans.h"
#include "service/kernels/product/onednn_engine.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

struct DnnlMatrix {
  char transpose = 'N';
  dnnl_dim_t leading = 1;
};

DnnlMatrix dnnl_matrix(int64_t rows, int64_t columns, MatrixLayout layout) {
  const bool plain = (layout.column_stride == 1 || columns == 1) && (layout.row_stride >= columns || rows == 1);
  if (plain) return {'N', std::max<int64_t>(rows == 1 ? columns : layout.row_stride, 1)};
  return {'T', std::max<int64_t>(columns == 1 ? rows : layout.column_stride, 1)};
}

// dnnl_sgemm copies its operands into packed blocks, unless a side of the result is short, and sums in another order
// then: panels of a product that it copies are so large that it copies them, too. Only where such a panel takes longer
// than others shall wait are they smaller.
Panels sgemm_panels(const GemmSpec& spec) {
  constexpr double kMostFlops = 2e10;
  constexpr int64_t kCopied = 1056;
  const bool is_copied = spec.m >= kCopied / 2 && spec.n >= kCopied / 2;
  const double flops_of_copied = 2.0 * kCopied * kCopied * static_cast<double>(spec.k);
  return Panels(spec, is_copied && flops_of_copied <= kMostFlops ? kCopied : 1);
}

struct SgemmByDnnl : Gemm::Plan {
  explicit SgemmByDnnl(const GemmSpec& product)
      : spec(product),
        panels(sgemm_panels(product)),
        a(dnnl_matrix(product.m, product.k, product.a)),
        b(dnnl_matrix(product.k, product.n, product.b)) {}

  GemmSpec spec;
  Panels panels;
  DnnlMatrix a;
  DnnlMatrix b;

  void run(const std::byte* a_data, const std::byte* b_data, std::byte* c_data, std::byte* /*scratch*/,
           core::Checkpoint* checkpoint, PackedOperand* /*kept*/) const override {
    panels.for_each(spec.m, spec.n, checkpoint, [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
      const std::byte* const from_a = a_data + byte_offset(spec.a, row, 0, spec.in);
      const std::byte* const from_b = b_data + byte_offset(spec.b, 0, column, spec.in);
      std::byte* const to = c_data + byte_offset({spec.c_row_stride(), 1}, row, column, spec.out);
      const dnnl_status_t status = dnnl_sgemm(
          a.transpose, b.transpose, rows, columns, spec.k, 1, reinterpret_cast<const float*>(from_a), a.leading,
          reinterpret_cast<const float*>(from_b), b.leading, 0, reinterpret_cast<float*>(to), spec.c_row_stride());
      if (status != dnnl_success)
        throw core::Error("internal", fmt::format("dnnl_sgemm failed with {}", static_cast<int>(status)));
    });
  }
};

dnnl::memory::data_type dnnl_type(DType dtype) {
  switch (dtype) {
    case DType::kBfloat16:
      return dnnl::memory::data_type::bf16;
    case DType::kInt8:
      return dnnl::memory::data_type::s8;
    case DType::kInt32:
      return dnnl::memory::data_type::s32;
    case DType::kFloat32:
      return dnnl::memory::data_type::f32;
    default:
      throw core::Error("internal", fmt::format("oneDNN multiplies no {}", tensor::name(dtype)));
  }
}

// oneDNN requires a valid stride even for a dimension of size one.
dnnl::memory::desc matrix_desc(int64_t rows, int64_t columns, MatrixLayout layout, DType dtype) {
  const DnnlMatrix matrix = dnnl_matrix(rows, columns, layout);
  const dnnl::memory::dims strides =
      matrix.transpose == 'N' ? dnnl::memory::dims{matrix.leading, 1} : dnnl::memory::dims{1, matrix.leading};
  return {{rows, columns}, dnnl_type(dtype), strides};
}

struct MatmulByDnnl : Gemm::Plan {
  dnnl::memory::desc a;
  dnnl::memory::desc b;
  dnnl::memory::desc c;
  dnnl::memory::desc scratchpad;
  dnnl::primitive primitive;

  void run(const std::byte* a_data, const std::byte* b_data, std::byte* c_data, std::byte* scratch,
           core::Checkpoint* checkpoint, PackedOperand* /*kept*/) const override {
    core::pass(checkpoint);
    try {
      const auto memory = [](const dnnl::memory::desc& desc, const std::byte* data) {
        return dnnl::memory(desc, cpu_engine(), const_cast<std::byte*>(data));
      };
      dnnl::stream stream(cpu_engine());
      primitive.execute(stream, {{DNNL_ARG_SRC, memory(a, a_data)},
                                 {DNNL_ARG_WEIGHTS, memory(b, b_data)},
                                 {DNNL_ARG_DST, memory(c, c_data)},
                                 {DNNL_ARG_SCRATCHPAD, memory(scratchpad, scratch)}});
    } catch (const dnnl::error& error) {
      throw core::Error("internal", "a matrix product failed").with_internal(error.what());
    }
  }
};

// Where products of bf16 pairs are faster than converting to f32. Intel's processors with AMX (they have AVX512-FP16)
// take four times as long for the vector instruction, so that f32 is faster where gemm_amx has no tiles, which a
// virtual machine may hide.
bool has_fast_bf16() {
#if defined(__x86_64__)
  return cpu_level() == CpuLevel::kV4 && __builtin_cpu_supports("avx512bf16") != 0 && !has_avx512_fp16();
#else
  return false;
#endif
}

std::shared_ptr<MatmulByDnnl> make_matmul(const GemmSpec& spec) {
  auto plan = std::make_shared<MatmulByDnnl>();
  plan->a = matrix_desc(spec.m, spec.k, spec.a, spec.in);
  plan->b = matrix_desc(spec.k, spec.n, spec.b, spec.in);
  plan->c = matrix_desc(spec.m, spec.n, {spec.c_row_stride(), 1}, spec.out);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc desc({plan->a, plan->b, plan->c}, attributes, cpu_engine());
  plan->scratchpad = desc.scratchpad_desc();
  plan->primitive = dnnl::matmul(desc);
  return plan;
}

}  // namespace

GemmPlan plan_sgemm(const GemmSpec& spec) { return {std::make_shared<SgemmByDnnl>(spec), 0}; }

GemmPlan plan_matmul_primitive(const GemmSpec& spec) {
  try {
    auto plan = make_matmul(spec);
    const auto bytes = static_cast<int64_t>(plan->scratchpad.get_size());
    return {std::move(plan), bytes};
  } catch (const dnnl::error& error) {
    throw core::Error("unsupported_op", "this matrix product is not supported here").with_internal(error.what());
  }
}

// oneDNN 2.6 does without AMX: what it generates for some sizes (bf16 with k = 63, int8 with k from 125 to 127, and few
// columns) has an instruction that is none, and ends the process.
void limit_onednn() {
#if defined(__x86_64__)
  static const bool is_limited = [] {
    const dnnl::cpu_isa most = cpu_level() == CpuLevel::kV4   ? dnnl::cpu_isa::avx512_core_bf16
                               : cpu_level() == CpuLevel::kV3 ? dnnl::cpu_isa::avx2
                                                              : dnnl::cpu_isa::sse41;
    return dnnl::set_max_cpu_isa(most) == dnnl::status::success;
  }();
  static_cast<void>(is_limited);
#endif
}

bool has_matmul_primitive(DType in, DType out) {
  const bool is_bf16 = in == DType::kBfloat16 && (out == DType::kBfloat16 || out == DType::kFloat32);
  if (is_bf16) return has_fast_bf16();
#if defined(__x86_64__)
  // Without VNNI, sums of pairs of int8 products saturate at 16 bits.
  const bool is_int8 = in == DType::kInt8 && out == DType::kInt32;
  return is_int8 && cpu_level() == CpuLevel::kV4 && __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

}  // namespace meshd::kernels
