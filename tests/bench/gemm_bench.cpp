// Products through dot_general's own kernel on one thread against the libraries called directly, in all layouts, and
// against what the FMA units can do: ratios from one run. MESHD_MAX_ISA masks instruction sets of all of them.
// gemm_bench [M N K]: of these sizes alone.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <cblas.h>

#include "service/kernels/cpu.h"
#include "service/kernels/lapack/blas_core.h"
#include "service/kernels/product/gemm.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/op_def.h"

#include <oneapi/dnnl/dnnl.h>

namespace {

using namespace meshd;
using tensor::DType;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Shape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool a_is_transposed = false;
  bool b_is_transposed = false;
};

// The kernel of one dot_general, with its own scratch.
class Dot {
 public:
  Dot(const Shape& shape, DType dtype) {
    using Dims = tensor::Dims;
    const std::vector<ir::Type> operands = {
        ir::Type::of({dtype, shape.a_is_transposed ? Dims{shape.k, shape.m} : Dims{shape.m, shape.k}}),
        ir::Type::of({dtype, shape.b_is_transposed ? Dims{shape.n, shape.k} : Dims{shape.k, shape.n}})};
    const std::vector<ir::Type> results = {ir::Type::of({dtype, {shape.m, shape.n}})};
    const auto ints = [](int64_t value) { return ir::Attribute{ir::IntArrayAttr{{value}, "i64"}}; };
    const ir::AttributeList attributes = {
        {"dot_dimension_numbers",
         ir::Attribute{ir::DictAttr{"stablehlo.dot",
                                    {{"lhs_contracting_dimensions", ints(shape.a_is_transposed ? 0 : 1)},
                                     {"rhs_contracting_dimensions", ints(shape.b_is_transposed ? 1 : 0)}}}}}};
    const ops::OpDef* row = ops::find_op("stablehlo.dot_general");
    kernel_ = std::get<ops::LocalKernel>(row->body).prepare({operands, results, &attributes, {}, nullptr, nullptr});
    scratch_.resize(static_cast<size_t>(kernel_.scratch_bytes) + 64);
  }

  void run(const void* a, const void* b, void* c) {
    const std::byte* inputs[] = {static_cast<const std::byte*>(a), static_cast<const std::byte*>(b)};
    std::byte* outputs[] = {static_cast<std::byte*>(c)};
    auto* const aligned = scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64) % 64;
    kernel_.run({inputs, outputs, 0, kernel_.work_count, aligned, nullptr});
  }

 private:
  ops::PreparedKernel kernel_;
  std::vector<std::byte> scratch_;
};

// Best times of each, in turn, so that all see the same machine.
template <size_t kCount>
std::array<double, kCount> best_of(int rounds, const std::array<std::function<void()>, kCount>& works) {
  std::array<double, kCount> best;
  best.fill(1e300);
  for (int i = 0; i < rounds; ++i) {
    for (size_t w = 0; w < kCount; ++w) best[w] = std::min(best[w], seconds(works[w]));
  }
  return best;
}

void compare(const Shape& shape) {
  const auto [m, n, k, a_is_transposed, b_is_transposed] = shape;
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  std::vector<float> a(static_cast<size_t>(m * k), 0.5F);
  std::vector<float> b(static_cast<size_t>(k * n), 0.25F);
  std::vector<float> c(static_cast<size_t>(m * n));
  const std::vector<uint16_t> narrow_a(a.size(), 0x3f00);
  const std::vector<uint16_t> narrow_b(b.size(), 0x3e80);
  Dot dot(shape, DType::kFloat32);
  Dot narrow(shape, DType::kBfloat16);
  const auto lda = static_cast<blasint>(a_is_transposed ? m : k);
  const auto ldb = static_cast<blasint>(b_is_transposed ? k : n);
  const int rounds = static_cast<int>(std::clamp(4e9 / flops, 7.0, 2000.0));
  const auto [ours, bf16, onednn, openblas] = best_of<4>(
      rounds,
      {[&] { dot.run(a.data(), b.data(), c.data()); }, [&] { narrow.run(narrow_a.data(), narrow_b.data(), c.data()); },
       [&] {
         dnnl_sgemm(a_is_transposed ? 'T' : 'N', b_is_transposed ? 'T' : 'N', m, n, k, 1.0F, a.data(), lda, b.data(),
                    ldb, 0.0F, c.data(), n);
       },
       [&] {
         cblas_sgemm(CblasRowMajor, a_is_transposed ? CblasTrans : CblasNoTrans,
                     b_is_transposed ? CblasTrans : CblasNoTrans, static_cast<blasint>(m), static_cast<blasint>(n),
                     static_cast<blasint>(k), 1, a.data(), lda, b.data(), ldb, 0, c.data(), static_cast<blasint>(n));
       }});
  const auto rate = [flops](double time) { return flops / time * 1e-9; };
  std::printf(
      "f32 %s%s %5ld x %5ld x %5ld  %6.1f GFLOP/s, oneDNN %6.1f, OpenBLAS %6.1f, ratio %.2f, bf16 %.2f of f32\n",
      a_is_transposed ? "T" : "N", b_is_transposed ? "T" : "N", m, n, k, rate(ours), rate(onednn), rate(openblas),
      std::min(onednn, openblas) / ours, ours / bf16);
}

}  // namespace

int main(int argc, char** argv) {
  kernels::prepare_thread();
  constexpr std::array<const char*, 3> kLevels = {"base", "AVX2", "AVX-512"};
  std::printf("level %s, OpenBLAS %s\n", kLevels[static_cast<size_t>(kernels::cpu_level())],
              kernels::openblas_core().c_str());
  if (argc == 4) {
    compare({std::stoll(argv[1]), std::stoll(argv[2]), std::stoll(argv[3])});
    return 0;
  }
  for (const int64_t size : {16, 32, 64, 128, 256, 512, 1024, 2048}) compare({size, size, size});
  for (const int64_t size : {64, 256, 1024}) {
    compare({size, size, size, false, true});
    compare({size, size, size, true, false});
  }
  compare({8192, 64, 64});
  compare({64, 64, 8192});
  compare({256, 128, 64});
  compare({256, 10, 128});
  compare({1024, 32, 256});
  compare({1000, 7, 60});
  compare({512, 10, 1024});
  compare({512, 1024, 10, false, true});
  compare({1024, 10, 512, true, false});
  return 0;
}
