// Products through dot_general's own kernel against the library called directly, and against the best the FMA units can
// do: ratios from one run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "service/ops/kernel_interface.h"
#include "service/ops/op_def.h"

#include <oneapi/dnnl/dnnl.h>

namespace {

using namespace meshd;

double best_of(int rounds, const std::function<void()>& work) {
  double best = 1e300;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

ops::PreparedKernel prepare(int64_t m, int64_t n, int64_t k, std::vector<ir::Type>& operands,
                            std::vector<ir::Type>& results, ir::AttributeList& attributes) {
  operands = {ir::Type::of({tensor::DType::kFloat32, {m, k}}), ir::Type::of({tensor::DType::kFloat32, {k, n}})};
  results = {ir::Type::of({tensor::DType::kFloat32, {m, n}})};
  const auto ints = [](std::vector<int64_t> values) {
    return ir::Attribute{ir::IntArrayAttr{std::move(values), "i64"}};
  };
  attributes = {{"dot_dimension_numbers", ir::Attribute{ir::DictAttr{"stablehlo.dot",
                                                                     {{"lhs_contracting_dimensions", ints({1})},
                                                                      {"rhs_contracting_dimensions", ints({0})}}}}}};
  const ops::OpDef* row = ops::find_op("stablehlo.dot_general");
  return std::get<ops::LocalKernel>(row->body).prepare({operands, results, &attributes, {}, nullptr, nullptr});
}

void compare(int64_t m, int64_t n, int64_t k) {
  std::vector<ir::Type> operands, results;
  ir::AttributeList attributes;
  const ops::PreparedKernel kernel = prepare(m, n, k, operands, results, attributes);
  std::vector<float> a(static_cast<size_t>(m * k), 0.5F), b(static_cast<size_t>(k * n), 0.25F),
      c(static_cast<size_t>(m * n));
  std::vector<std::byte> scratch(static_cast<size_t>(kernel.scratch_bytes) + 64);
  const std::byte* inputs[] = {reinterpret_cast<const std::byte*>(a.data()),
                               reinterpret_cast<const std::byte*>(b.data())};
  std::byte* outputs[] = {reinterpret_cast<std::byte*>(c.data())};
  auto* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  const int rounds = static_cast<int>(std::clamp(4e9 / static_cast<double>(m * n * k), 5.0, 2000.0));
  const double ours = best_of(rounds, [&] { kernel.run({inputs, outputs, 0, kernel.work_count, aligned, nullptr}); });
  const double direct =
      best_of(rounds, [&] { dnnl_sgemm('N', 'N', m, n, k, 1.0F, a.data(), k, b.data(), n, 0.0F, c.data(), n); });
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  std::printf("f32 %5ld x %5ld x %5ld  %7.1f GFLOP/s, library %7.1f, ratio %.2f\n", m, n, k, flops / ours * 1e-9,
              flops / direct * 1e-9, direct / ours);
}

}  // namespace

int main() {
  for (const int64_t size : {64, 256, 512, 1024}) compare(size, size, size);
  compare(8192, 64, 64);
  compare(64, 64, 8192);
  return 0;
}
