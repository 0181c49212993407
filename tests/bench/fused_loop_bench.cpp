// The tile interpreter against loops fused by hand: the chain of eleven ops, a memory-bound chain, sums, casts and
// broadcasts. Prints nanoseconds an element and the ratio to the loop by hand; medians of several rounds, both sides
// measured in turn.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/tile/tile_program.h"
#include "tests/bench/stopwatch.h"

#if defined(__x86_64__) && defined(__GLIBC__)
// glibc's vector functions, for the loops by hand.
extern "C" {
__attribute__((simd("notinbranch"))) float expf(float) noexcept;
__attribute__((simd("notinbranch"))) float tanhf(float) noexcept;
}
#endif

namespace {

using meshd::kernels::FusedCall;
using meshd::kernels::FusedInput;
using meshd::kernels::FusedKernel;
using meshd::kernels::FusedLoop;
using meshd::kernels::FusedReduce;
using meshd::kernels::ScalarOp;
using meshd::kernels::TileProgram;
using meshd::tensor::DType;

class Array {
 public:
  explicit Array(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) std::abort();
    madvise(memory_, bytes_, MADV_HUGEPAGE);
  }
  ~Array() { munmap(memory_, bytes_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  [[nodiscard]] float* floats() { return static_cast<float*>(memory_); }
  [[nodiscard]] std::byte* bytes() { return static_cast<std::byte*>(memory_); }

 private:
  size_t bytes_;
  void* memory_;
};

void compare(const char* name, int64_t elements, int repeat, const std::function<void()>& ours,
             const std::function<void()>& limit) {
  const auto [our_time, limit_time] = meshd::bench::compare(ours, limit, 9, repeat);
  const double scale = 1e9 / static_cast<double>(elements);
  std::printf("%-44s %8.3f ns/element, by hand %8.3f, ratio %.2f\n", name, our_time * scale, limit_time * scale,
              our_time / limit_time);
}

FusedLoop dense_loop(int64_t count, int inputs) {
  FusedLoop loop;
  loop.dims = {count};
  for (int i = 0; i < inputs; ++i) {
    FusedInput input;
    input.operand = i;
    input.strides = {1};
    loop.inputs.push_back(input);
    loop.program.add_register(DType::kFloat32);
    loop.program.input_count++;
  }
  return loop;
}

uint16_t number(TileProgram& program, float value) {
  return program.constant(DType::kFloat32, reinterpret_cast<const std::byte*>(&value));
}

/// y = tanh(x) a + exp(-x^2) b - x / (1 + |x|)
FusedLoop eleven_ops(int64_t count) {
  FusedLoop loop = dense_loop(count, 3);
  TileProgram& p = loop.program;
  const auto emit = [&](ScalarOp op, std::initializer_list<uint16_t> operands) {
    return p.emit(op, operands, DType::kFloat32);
  };
  const uint16_t one = number(p, 1);
  const uint16_t left = emit(ScalarOp::kMultiply, {emit(meshd::kernels::scalar_op("tanh"), {0}), 1});
  const uint16_t square = emit(ScalarOp::kMultiply, {0, 0});
  const uint16_t bell = emit(ScalarOp::kExp, {emit(ScalarOp::kNegate, {square})});
  const uint16_t both = emit(ScalarOp::kAdd, {left, emit(ScalarOp::kMultiply, {bell, 2})});
  const uint16_t soft = emit(ScalarOp::kDivide, {0, emit(ScalarOp::kAdd, {one, emit(ScalarOp::kAbs, {0})})});
  p.outputs = {emit(ScalarOp::kSubtract, {both, soft})};
  return loop;
}

void eleven_by_hand(const float* x, const float* a, const float* b, float* y, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    y[i] = std::tanh(x[i]) * a[i] + std::exp(-(x[i] * x[i])) * b[i] - x[i] / (1 + std::abs(x[i]));
  }
}

FusedLoop scale_and_shift(int64_t count) {
  FusedLoop loop = dense_loop(count, 1);
  TileProgram& p = loop.program;
  const uint16_t scaled = p.emit(ScalarOp::kMultiply, {0, number(p, 1.5F)}, DType::kFloat32);
  p.outputs = {p.emit(ScalarOp::kAdd, {scaled, number(p, 0.25F)}, DType::kFloat32)};
  return loop;
}

void shift_by_hand(const float* x, float* y, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = 1.5F * x[i] + 0.25F;
}

/// The same with stores past the caches: the limit for large outputs.
void shift_streamed(const float* x, float* y, int64_t count) {
#if defined(__AVX512F__)
  for (int64_t i = 0; i < count; i += 16) {
    const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(1.5F));
    _mm512_stream_ps(y + i, _mm512_add_ps(scaled, _mm512_set1_ps(0.25F)));
  }
  _mm_sfence();
#else
  shift_by_hand(x, y, count);
#endif
}

float sum_by_hand(const float* x, int64_t count) {
  constexpr size_t kLanes = 128;
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lanes[j] += x[static_cast<size_t>(i) + j];
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

void column_sums_by_hand(const float* x, float* sums, int64_t rows, int64_t columns) {
  std::fill_n(sums, columns, 0.0F);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) sums[c] += x[r * columns + c];
  }
}

void row_sums_by_hand(const float* x, float* sums, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    float lanes[64] = {};
    for (int64_t c = 0; c < columns; c += 64) {
      for (size_t j = 0; j < 64; ++j) lanes[j] += x[static_cast<size_t>(r * columns + c) + j];
    }
    sums[r] = 0;
    for (const float lane : lanes) sums[r] += lane;
  }
}

FusedLoop sum_loop(meshd::tensor::Dims dims, std::vector<int> reduced) {
  FusedLoop loop = dense_loop(1, 1);
  loop.inputs[0].strides = meshd::tensor::row_major_strides(dims);
  loop.dims = std::move(dims);
  loop.program.outputs = {0};
  TileProgram add;
  add.input_count = 2;
  add.add_register(DType::kFloat32);
  add.add_register(DType::kFloat32);
  add.outputs = {add.emit(ScalarOp::kAdd, {0, 1}, DType::kFloat32)};
  loop.reduce = FusedReduce{std::move(reduced), add, {1}};
  return loop;
}

/// A kernel with its memory, ready to run again and again.
struct Ready {
  FusedKernel kernel;
  std::vector<const std::byte*> operands;
  std::vector<std::byte*> results;
  void operator()() const {
    FusedCall call;
    call.operands = operands.data();
    call.results = results.data();
    call.end = kernel.work_count();
    std::vector<std::byte> workspace(static_cast<size_t>(kernel.workspace_bytes()));
    call.workspace = workspace.data();
    kernel.run(call);
  }
};

}  // namespace

int main() {
  constexpr int64_t kLarge = 64 * 1024 * 1024;
  Array x(kLarge * 4);
  Array a(kLarge * 4);
  Array b(kLarge * 4);
  Array y(kLarge * 4);
  for (int64_t i = 0; i < kLarge; ++i) {
    x.floats()[i] = static_cast<float>(i % 2003) * 0.003F - 3;
    a.floats()[i] = static_cast<float>(i % 101) * 0.01F;
    b.floats()[i] = static_cast<float>(i % 103) * 0.01F;
  }
  for (const int64_t count : {kLarge, int64_t{8} * 1024, int64_t{256}, int64_t{16}}) {
    const int repeat = static_cast<int>(std::max<int64_t>(1, 1024 * 1024 / count));
    const Ready ready{FusedKernel(eleven_ops(count)), {x.bytes(), a.bytes(), b.bytes()}, {y.bytes()}};
    char name[64];
    std::snprintf(name, sizeof name, "eleven ops, %lld elements", static_cast<long long>(count));
    compare(name, count, repeat, ready, [&] { eleven_by_hand(x.floats(), a.floats(), b.floats(), y.floats(), count); });
  }
  const Ready shift{FusedKernel(scale_and_shift(kLarge)), {x.bytes()}, {y.bytes()}};
  compare("1.5 x + 0.25, 256 MiB, normal stores", kLarge, 1, shift,
          [&] { shift_by_hand(x.floats(), y.floats(), kLarge); });
  compare("1.5 x + 0.25, 256 MiB, streamed", kLarge, 1, shift, [&] { shift_streamed(x.floats(), y.floats(), kLarge); });
  constexpr int64_t kMiddle = 4 * 1024 * 1024;
  const Ready middle{FusedKernel(scale_and_shift(kMiddle)), {x.bytes()}, {y.bytes()}};
  compare("1.5 x + 0.25, 16 MiB", kMiddle, 8, middle, [&] { shift_by_hand(x.floats(), y.floats(), kMiddle); });

  const float zero = 0;
  const auto* const init = reinterpret_cast<const std::byte*>(&zero);
  float checksum = 0;
  const Ready sum{FusedKernel(sum_loop({kLarge}, {0})), {x.bytes(), init}, {y.bytes()}};
  compare("sum of 64 M", kLarge, 1, sum, [&] { checksum += sum_by_hand(x.floats(), kLarge); });
  const Ready cached{FusedKernel(sum_loop({128 * 1024}, {0})), {x.bytes(), init}, {y.bytes()}};
  compare("sum of 128 K", 128 * 1024, 64, cached, [&] { checksum += sum_by_hand(x.floats(), 128 * 1024); });
  const Ready columns{FusedKernel(sum_loop({8192, 8192}, {0})), {x.bytes(), init}, {y.bytes()}};
  compare("column sums of 8192 x 8192", kLarge, 1, columns,
          [&] { column_sums_by_hand(x.floats(), y.floats(), 8192, 8192); });
  const Ready rows{FusedKernel(sum_loop({65536, 1024}, {1})), {x.bytes(), init}, {y.bytes()}};
  compare("row sums of 65536 x 1024", kLarge, 1, rows, [&] { row_sums_by_hand(x.floats(), y.floats(), 65536, 1024); });
  std::printf("(%g)\n", static_cast<double>(checksum));
  return 0;
}
