// Products of 64-bit integers by loops of our own: sums must wrap around exactly.
#include <algorithm>
#include <cstring>

#include "service/kernels/cpu.h"
#include "service/kernels/product/gemm_plans.h"

namespace meshd::kernels {
namespace {

using Element = uint64_t;  // signed sums wrap the same way, without undefined overflow

constexpr int64_t kRows = 4;
constexpr int64_t kTermsBetweenCheckpoints = 4096;
constexpr int64_t kColumnBytes = 1024;  // of one row of sums: four of them and a row of b fit in L1

struct LoopShape {
  int64_t m, n, k;
  MatrixLayout a;
  int64_t b_row;  // elements from one row of b to the next; its columns are contiguous
  int64_t c_row;
  core::Checkpoint* checkpoint = nullptr;
};

// kRows x columns sums at a time, over all of k: each element of c is one sum in ascending order of k.
[[gnu::always_inline]] inline void multiply(const LoopShape& shape, const Element* a, const Element* b, Element* c) {
  constexpr int64_t kColumns = kColumnBytes / static_cast<int64_t>(sizeof(Element));
  alignas(64) Element sums[kRows][kColumns];
  for (int64_t column = 0; column < shape.n; column += kColumns) {
    const int64_t columns = std::min(kColumns, shape.n - column);
    for (int64_t row = 0; row < shape.m; row += kRows) {
      const int64_t rows = std::min(kRows, shape.m - row);
      for (int64_t r = 0; r < rows; ++r) std::fill(sums[r], sums[r] + columns, Element{});
      for (int64_t p = 0; p < shape.k; ++p) {
        if (p % kTermsBetweenCheckpoints == 0) core::pass(shape.checkpoint);
        const Element* b_row = b + p * shape.b_row + column;
        for (int64_t r = 0; r < rows; ++r) {
          const Element factor = a[(row + r) * shape.a.row_stride + p * shape.a.column_stride];
          Element* sum = sums[r];
          for (int64_t j = 0; j < columns; ++j) sum[j] += factor * b_row[j];
        }
      }
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(c + (row + r) * shape.c_row + column, sums[r], static_cast<size_t>(columns) * sizeof(Element));
      }
    }
  }
}

void multiply_base(const LoopShape& shape, const std::byte* a, const std::byte* b, std::byte* c) {
  multiply(shape, reinterpret_cast<const Element*>(a), reinterpret_cast<const Element*>(b),
           reinterpret_cast<Element*>(c));
}
#if defined(__x86_64__)
[[gnu::target("arch=x86-64-v3")]] void multiply_v3(const LoopShape& shape, const std::byte* a, const std::byte* b,
                                                   std::byte* c) {
  multiply(shape, reinterpret_cast<const Element*>(a), reinterpret_cast<const Element*>(b),
           reinterpret_cast<Element*>(c));
}
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void multiply_v4(const LoopShape& shape, const std::byte* a,
                                                                           const std::byte* b, std::byte* c) {
  multiply(shape, reinterpret_cast<const Element*>(a), reinterpret_cast<const Element*>(b),
           reinterpret_cast<Element*>(c));
}
#endif

using Multiply = void (*)(const LoopShape&, const std::byte*, const std::byte*, std::byte*);

Multiply for_this_cpu() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return multiply_v4;
  if (cpu_level() == CpuLevel::kV3) return multiply_v3;
#endif
  return multiply_base;
}

struct GemmByLoops : Gemm::Plan {
  LoopShape shape{};
  Multiply multiply_all = nullptr;
  void run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* /*scratch*/, core::Checkpoint* checkpoint,
           PackedOperand* /*kept*/) const override {
    LoopShape checked = shape;
    checked.checkpoint = checkpoint;
    multiply_all(checked, a, b, c);
  }
};

}  // namespace

GemmPlan plan_loops(const GemmSpec& spec) {
  auto plan = std::make_shared<GemmByLoops>();
  plan->shape = {spec.m, spec.n, spec.k, spec.a, spec.b.row_stride, spec.c_row_stride(), nullptr};
  plan->multiply_all = for_this_cpu();
  return {plan, 0};
}

}  // namespace meshd::kernels
