// Products, transposes, block copies, sorts, gathers and scatters against the library or loop one would write instead.
// Prints a rate and the ratio to the peer; medians of rounds in which both are measured in turn.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <cblas.h>
#include <hwy/contrib/sort/vqsort.h>
#include <oneapi/dnnl/dnnl.h>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/lapack/blas_core.h"
#include "service/kernels/movement/gather.h"
#include "service/kernels/movement/movement.h"
#include "service/kernels/movement/scatter.h"
#include "service/kernels/product/gemm.h"
#include "service/kernels/sort/sort.h"
#include "service/kernels/tile/tile_program.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace meshd;
using bench::compare;
using tensor::Dims;
using tensor::DType;

class Array {
 public:
  explicit Array(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) std::abort();
    madvise(memory_, bytes_, MADV_HUGEPAGE);
    std::memset(memory_, 0, bytes_);
  }
  ~Array() { munmap(memory_, bytes_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  [[nodiscard]] std::byte* bytes() { return static_cast<std::byte*>(memory_); }
  template <typename T>
  [[nodiscard]] T* as() {
    return static_cast<T*>(memory_);
  }

 private:
  size_t bytes_;
  void* memory_;
};

void print(const std::string& what, double work, const char* unit, std::pair<double, double> seconds,
           const char* peer) {
  std::printf("%-34s %8.1f %s   %5.2fx of %s (%.1f)\n", what.c_str(), work / seconds.first / 1e9, unit,
              seconds.second / seconds.first, peer, work / seconds.second / 1e9);
}

void bench_products() {
  constexpr int64_t kMost = 2048;
  Array a(kMost * kMost * 16);
  Array b(kMost * kMost * 16);
  Array c(kMost * kMost * 16);
  Array scratch(64 << 20);
  for (int64_t i = 0; i < kMost * kMost * 2; ++i) {
    a.as<double>()[i] = 1 + static_cast<double>(i % 7) * 0.25;
    b.as<double>()[i] = 1 + static_cast<double>(i % 5) * 0.25;
  }
  const struct {
    int64_t m, n, k;
  } shapes[] = {{16, 16, 16},    {32, 32, 32},       {64, 64, 64},   {256, 256, 256},
                {512, 512, 512}, {1024, 1024, 1024}, {8192, 64, 64}, {64, 64, 8192}};
  std::printf("OpenBLAS core %s\n", kernels::openblas_core().c_str());
  for (const auto& [m, n, k] : shapes) {
    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const std::string shape = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    const kernels::Gemm f32({m, n, k, DType::kFloat32, DType::kFloat32, {k, 1}, {n, 1}});
    print("f32 " + shape, flops, "GFLOP/s",
          compare([&] { f32.run(a.bytes(), b.bytes(), c.bytes(), scratch.bytes()); },
                  [&] { dnnl_sgemm('N', 'N', m, n, k, 1, a.as<float>(), k, b.as<float>(), n, 0, c.as<float>(), n); }),
          "dnnl_sgemm");
    const kernels::Gemm f64({m, n, k, DType::kFloat64, DType::kFloat64, {k, 1}, {n, 1}});
    const auto im = static_cast<blasint>(m);
    const auto in = static_cast<blasint>(n);
    const auto ik = static_cast<blasint>(k);
    print("f64 " + shape, flops, "GFLOP/s",
          compare([&] { f64.run(a.bytes(), b.bytes(), c.bytes(), scratch.bytes()); },
                  [&] {
                    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, im, in, ik, 1, a.as<double>(), ik,
                                b.as<double>(), in, 0, c.as<double>(), in);
                  }),
          "cblas_dgemm");
    for (const auto& [from, to] :
         {std::pair{DType::kBfloat16, DType::kFloat32}, std::pair{DType::kInt8, DType::kInt32}}) {
      if (!kernels::gemm_takes(from, to)) continue;
      const kernels::Gemm narrow({m, n, k, from, to, {k, 1}, {n, 1}});
      print(std::string(tensor::name(from)) + " " + shape, flops, "GFLOP/s",
            compare([&] { narrow.run(a.bytes(), b.bytes(), c.bytes(), scratch.bytes()); },
                    [&] { f32.run(a.bytes(), b.bytes(), c.bytes(), scratch.bytes()); }),
            "f32");
    }
  }
}

void bench_movement() {
  constexpr int64_t kSide = 8192;
  Array a(kSide * kSide * 4);
  Array b(kSide * kSide * 4);
  for (const int64_t n : {int64_t{256}, int64_t{1024}, kSide}) {
    const Dims extent = {n, n};
    const Dims dst = {n, 1};
    const Dims src = {1, n};
    const kernels::StridedCopy copy(extent, dst, src, 4);
    const auto naive = [&] {
      const auto* from = a.as<uint32_t>();
      auto* to = b.as<uint32_t>();
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) to[i * n + j] = from[j * n + i];
      }
    };
    print("transpose f32 " + std::to_string(n), static_cast<double>(n * n * 4), "GB/s",
          compare([&] { copy.run(b.bytes(), a.bytes()); }, naive), "naive loop");
  }
  const Dims half = {kSide, kSide / 2};
  const Dims whole = {kSide, kSide};
  const Dims start = {0, 0};
  const Dims second = {0, kSide / 2};
  print("block copy of half the columns", static_cast<double>(kSide * kSide * 2), "GB/s",
        compare([&] { kernels::copy_block(b.bytes(), half, start, a.bytes(), whole, second, half, 4); },
                [&] { std::memcpy(b.bytes(), a.bytes(), static_cast<size_t>(kSide * kSide * 2)); }),
        "memcpy");
}

void bench_sort() {
  constexpr int64_t kCount = 4'000'000;
  Array values(kCount * 4);
  Array indices(kCount * 4);
  Array work(kCount * 4);
  Array out(kCount * 4);
  Array out_indices(kCount * 4);
  Array scratch(kCount * 32 + 4096);
  Array workspace(kCount * 32);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < kCount; ++i) {
    values.as<float>()[i] = normal(random);
    indices.as<int32_t>()[i] = static_cast<int32_t>(i);
  }
  kernels::TileProgram less;
  for (int i = 0; i < 2; ++i) less.add_register(DType::kFloat32);
  less.input_count = 2;
  less.outputs = {less.emit(kernels::ScalarOp::kTotalLt, {0, 1}, DType::kBool)};
  for (const int64_t length : {int64_t{1000}, kCount}) {
    const kernels::Sort sort({kCount / length, length, 1, {DType::kFloat32}, less});
    const auto ours = [&] {
      const std::byte* from[] = {values.bytes()};
      std::byte* to[] = {out.bytes()};
      sort.run(from, to, {scratch.bytes(), workspace.bytes()}, 0, sort.work_count());
    };
    const auto each = [&](const std::function<void(uint32_t*, uint32_t*)>& sort_line) {
      std::memcpy(work.bytes(), values.bytes(), kCount * 4);
      for (int64_t line = 0; line < kCount; line += length)
        sort_line(work.as<uint32_t>() + line, work.as<uint32_t>() + line + length);
    };
    const std::string name = "sort f32, lines of " + std::to_string(length);
    print(name, kCount, "Gkeys/s",
          compare(ours,
                  [&] {
                    each([](uint32_t* b, uint32_t* e) {
                      hwy::Sorter()(b, static_cast<size_t>(e - b), hwy::SortAscending());
                    });
                  }),
          "vqsort of u32");
    print(name, kCount, "Gkeys/s",
          compare(ours,
                  [&] {
                    std::memcpy(work.bytes(), values.bytes(), kCount * 4);
                    for (int64_t line = 0; line < kCount; line += length)
                      std::sort(work.as<float>() + line, work.as<float>() + line + length);
                  }),
          "std::sort");
  }
  kernels::TileProgram with_index;
  for (int i = 0; i < 4; ++i) with_index.add_register(i < 2 ? DType::kFloat32 : DType::kInt32);
  with_index.input_count = 4;
  with_index.outputs = {with_index.emit(kernels::ScalarOp::kTotalLt, {0, 1}, DType::kBool)};
  const kernels::Sort argsort({1, kCount, 1, {DType::kFloat32, DType::kInt32}, with_index});
  print("sort f32 with indices", kCount, "Gkeys/s",
        compare(
            [&] {
              const std::byte* from[] = {values.bytes(), indices.bytes()};
              std::byte* to[] = {out.bytes(), out_indices.bytes()};
              argsort.run(from, to, {scratch.bytes(), workspace.bytes()}, 0, argsort.work_count());
            },
            [&] {
              std::memcpy(out_indices.bytes(), indices.bytes(), kCount * 4);
              const float* keys = values.as<float>();
              std::stable_sort(out_indices.as<int32_t>(), out_indices.as<int32_t>() + kCount,
                               [keys](int32_t x, int32_t y) { return keys[x] < keys[y]; });
            }),
        "std::stable_sort of indices");
}

void bench_gather() {
  constexpr int64_t kRows = 100'000;
  constexpr int64_t kPicks = 200'000;
  for (const int64_t width : {int64_t{1}, int64_t{64}}) {
    Array table(kRows * width * 4);
    Array out(kPicks * width * 4);
    Array indices(kPicks * 4);
    std::mt19937 random(2);
    for (int64_t i = 0; i < kPicks; ++i) indices.as<int32_t>()[i] = static_cast<int32_t>(random() % kRows);
    kernels::IndexTable index;
    index.batch = {kPicks};
    index.batch_strides = {1};
    index.operand_strides = {0};
    index.slice_strides = {width};
    index.components = {{kRows - 1, width}};
    const Dims window = {width};
    const Dims dense = {1};
    const kernels::Gather gather(index, window, dense, dense, 4);
    const auto bytes = static_cast<double>(kPicks * width * 4);
    print("gather rows of " + std::to_string(width) + " f32", bytes, "GB/s",
          compare([&] { gather.run(table.bytes(), indices.bytes(), out.bytes(), 0, gather.work_count()); },
                  [&] {
                    const int32_t* at = indices.as<int32_t>();
                    for (int64_t i = 0; i < kPicks; ++i) {
                      std::memcpy(out.bytes() + i * width * 4, table.bytes() + int64_t{at[i]} * width * 4,
                                  static_cast<size_t>(width * 4));
                    }
                  }),
          "bare loop");
    kernels::TileProgram add;
    for (int i = 0; i < 2; ++i) add.add_register(DType::kFloat32);
    add.input_count = 2;
    add.outputs = {add.emit(kernels::ScalarOp::kAdd, {0, 1}, DType::kFloat32)};
    const kernels::Scatter scatter(index, window, dense, dense, kRows * width, add);
    Array workspace(scatter.workspace_bytes() + 64);
    print("scatter-add rows of " + std::to_string(width) + " f32", bytes, "GB/s",
          compare(
              [&] {
                std::byte* arrays[] = {table.bytes()};
                const std::byte* updates[] = {out.bytes()};
                scatter.run({.sources = arrays,
                             .results = arrays,
                             .indices = indices.bytes(),
                             .updates = updates,
                             .workspace = workspace.bytes(),
                             .end = scatter.work_count()});
              },
              [&] {
                const int32_t* at = indices.as<int32_t>();
                for (int64_t i = 0; i < kPicks; ++i) {
                  float* to = table.as<float>() + int64_t{at[i]} * width;
                  const float* from = out.as<float>() + i * width;
                  for (int64_t j = 0; j < width; ++j) to[j] += from[j];
                }
              }),
          "bare loop");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  kernels::prepare_thread();
  const std::string only = argc > 1 ? argv[1] : "";
  if (only.empty() || only == "products") bench_products();
  if (only.empty() || only == "movement") bench_movement();
  if (only.empty() || only == "sort") bench_sort();
  if (only.empty() || only == "gather") bench_gather();
  return 0;
}
