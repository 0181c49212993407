// Convolutions, forward and as JAX writes their gradients, against oneDNN called directly with the layouts that it
// likes best; pooling, its gradient and cumulative sums against the loop one would write instead. Prints a rate and the
// ratio to the peer; medians of rounds in which both are measured in turn.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/product/convolution.h"
#include "service/kernels/product/gemm.h"
#include "service/kernels/tile/tile_program.h"
#include "service/kernels/window/select_and_scatter.h"
#include "service/kernels/window/window_reduce.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace meshd;
using bench::compare;
using kernels::ScalarOp;
using kernels::WindowDim;
using tensor::DType;
using Bytes = std::vector<std::byte>;

void print(const std::string& what, double work, const char* unit, std::pair<double, double> seconds,
           const char* peer) {
  std::printf("%-44s %8.2f %s   %5.2fx of %s (%.2f)\n", what.c_str(), work / seconds.first / 1e9, unit,
              seconds.second / seconds.first, peer, work / seconds.second / 1e9);
}

Bytes floats(int64_t count) {
  Bytes out(static_cast<size_t>(count) * 4 + 64);
  auto* at = reinterpret_cast<float*>(out.data());
  for (int64_t i = 0; i < count; ++i) at[i] = 0.01F * static_cast<float>(i * 7919 % 199 - 99);
  return out;
}

std::byte* aligned(Bytes& bytes) { return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64; }

/// Square images and kernels, padded so that nothing is lost; what one layer of a network does.
struct Layer {
  int64_t batch, side, in, out, kernel, stride;

  [[nodiscard]] int64_t pad() const { return kernel / 2; }
  [[nodiscard]] int64_t out_side() const { return (side + 2 * pad() - kernel) / stride + 1; }
  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(batch * out_side() * out_side()) * static_cast<double>(in * out * kernel * kernel);
  }
  [[nodiscard]] std::string text() const {
    return std::to_string(batch) + "x" + std::to_string(side) + "x" + std::to_string(side) + "x" + std::to_string(in) +
           " by " + std::to_string(kernel) + "x" + std::to_string(kernel) + " to " + std::to_string(out) +
           (stride > 1 ? " /" + std::to_string(stride) : "");
  }
};

kernels::ConvolutionStrides image_strides(int64_t side, int64_t channels, bool channels_are_batch) {
  const int64_t image = side * side * channels;
  return {0, channels_are_batch ? 1 : image, channels_are_batch ? image : 1, {side * channels, channels}};
}

kernels::ConvolutionSpec forward(const Layer& layer) {
  kernels::ConvolutionSpec spec;
  spec.batch = layer.batch;
  spec.in_features = layer.in;
  spec.out_features = layer.out;
  const kernels::ConvolutionDim dim{layer.side, layer.kernel, layer.out_side(), layer.stride, layer.pad()};
  spec.dims = {dim, dim};
  spec.lhs = image_strides(layer.side, layer.in, false);
  spec.rhs = {0, 1, layer.out, {layer.kernel * layer.in * layer.out, layer.in * layer.out}};
  spec.out = image_strides(layer.out_side(), layer.out, false);
  return spec;
}

/// dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], lhs_dilate = stride, on a kernel that was reversed before.
kernels::ConvolutionSpec by_data(const Layer& layer) {
  kernels::ConvolutionSpec spec;
  spec.batch = layer.batch;
  spec.in_features = layer.out;
  spec.out_features = layer.in;
  const kernels::ConvolutionDim dim{layer.out_side(), layer.kernel, layer.side, 1, layer.kernel - 1 - layer.pad(),
                                    layer.stride};
  spec.dims = {dim, dim};
  spec.lhs = image_strides(layer.out_side(), layer.out, false);
  spec.rhs = {0, layer.out, 1, {layer.kernel * layer.in * layer.out, layer.in * layer.out}};
  spec.out = image_strides(layer.side, layer.in, false);
  return spec;
}

/// dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], rhs_dilate = stride.
kernels::ConvolutionSpec by_weights(const Layer& layer) {
  kernels::ConvolutionSpec spec;
  spec.batch = layer.in;
  spec.in_features = layer.batch;
  spec.out_features = layer.out;
  const kernels::ConvolutionDim dim{layer.side, layer.out_side(), layer.kernel, 1, layer.pad(), 1, layer.stride};
  spec.dims = {dim, dim};
  spec.lhs = image_strides(layer.side, layer.in, true);
  spec.rhs = image_strides(layer.out_side(), layer.out, true);
  spec.out = {0, layer.out, 1, {layer.kernel * layer.in * layer.out, layer.in * layer.out}};
  return spec;
}

/// oneDNN with layouts of its own choice, operands there already.
class Direct {
 public:
  explicit Direct(const Layer& layer)
      : strides_{layer.stride, layer.stride}, low_{layer.pad(), layer.pad()}, forward_(forward_desc(layer)) {
    for (auto& value : high_) {
      value = (layer.out_side() - 1) * layer.stride + layer.kernel - layer.side - layer.pad();
    }
    forward_ = forward_desc(layer);
    const auto any = dnnl::memory::format_tag::any;
    const auto f32 = dnnl::memory::data_type::f32;
    const dnnl::memory::desc src({layer.batch, layer.in, layer.side, layer.side}, f32, any);
    const dnnl::memory::desc weights({layer.out, layer.in, layer.kernel, layer.kernel}, f32, any);
    const dnnl::memory::desc dst({layer.batch, layer.out, layer.out_side(), layer.out_side()}, f32, any);
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_backward_data::primitive_desc data(
        dnnl::convolution_backward_data::desc(algorithm, src, weights, dst, strides_, low_, high_), engine_, forward_);
    const dnnl::convolution_backward_weights::primitive_desc kernel(
        dnnl::convolution_backward_weights::desc(algorithm, src, weights, dst, strides_, low_, high_), engine_,
        forward_);
    steps_.push_back({dnnl::convolution_forward(forward_),
                      {{DNNL_ARG_SRC, memory(forward_.src_desc())},
                       {DNNL_ARG_WEIGHTS, memory(forward_.weights_desc())},
                       {DNNL_ARG_DST, memory(forward_.dst_desc())}}});
    steps_.push_back({dnnl::convolution_backward_data(data),
                      {{DNNL_ARG_DIFF_SRC, memory(data.diff_src_desc())},
                       {DNNL_ARG_WEIGHTS, memory(data.weights_desc())},
                       {DNNL_ARG_DIFF_DST, memory(data.diff_dst_desc())}}});
    steps_.push_back({dnnl::convolution_backward_weights(kernel),
                      {{DNNL_ARG_SRC, memory(kernel.src_desc())},
                       {DNNL_ARG_DIFF_WEIGHTS, memory(kernel.diff_weights_desc())},
                       {DNNL_ARG_DIFF_DST, memory(kernel.diff_dst_desc())}}});
  }

  void run(size_t which) {
    steps_[which].first.execute(stream_, steps_[which].second);
    stream_.wait();
  }

 private:
  dnnl::memory memory(const dnnl::memory::desc& desc) {
    dnnl::memory out(desc, engine_);
    auto* values = static_cast<float*>(out.get_data_handle());
    for (size_t i = 0; i < desc.get_size() / 4; ++i) values[i] = 0.01F * static_cast<float>(i % 199);
    return out;
  }

  dnnl::convolution_forward::primitive_desc forward_desc(const Layer& layer) {
    const auto any = dnnl::memory::format_tag::any;
    const auto f32 = dnnl::memory::data_type::f32;
    const dnnl::memory::dims high(2, (layer.out_side() - 1) * layer.stride + layer.kernel - layer.side - layer.pad());
    return {dnnl::convolution_forward::desc(
                dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                dnnl::memory::desc({layer.batch, layer.in, layer.side, layer.side}, f32, any),
                dnnl::memory::desc({layer.out, layer.in, layer.kernel, layer.kernel}, f32, any),
                dnnl::memory::desc({layer.batch, layer.out, layer.out_side(), layer.out_side()}, f32, any), strides_,
                low_, high),
            engine_};
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::memory::dims strides_;
  dnnl::memory::dims low_;
  dnnl::memory::dims high_{0, 0};
  dnnl::convolution_forward::primitive_desc forward_;
  std::vector<std::pair<dnnl::primitive, std::unordered_map<int, dnnl::memory>>> steps_;
};

void bench_convolution() {
  const Layer layers[] = {{64, 28, 1, 32, 3, 1},   {64, 14, 32, 64, 3, 1}, {8, 56, 64, 64, 3, 1},
                          {8, 28, 128, 128, 3, 1}, {8, 56, 64, 128, 3, 2}, {8, 28, 256, 64, 1, 1}};
  for (const Layer& layer : layers) {
    Direct direct(layer);
    const Bytes a = floats(layer.batch * layer.side * layer.side * std::max(layer.in, layer.out));
    const Bytes b = floats(std::max(layer.kernel * layer.kernel * layer.in * layer.out,
                                    layer.batch * layer.side * layer.side * layer.out));
    Bytes c = a;
    c.resize(std::max(a.size(), b.size()));
    const kernels::ConvolutionSpec specs[] = {forward(layer), by_data(layer), by_weights(layer)};
    for (size_t which = 0; which < 3; ++which) {
      const kernels::Convolution convolution(specs[which]);
      Bytes scratch(static_cast<size_t>(convolution.scratch_bytes()) + 64);
      Bytes workspace(static_cast<size_t>(convolution.workspace_bytes()) + 64);
      print(layer.text() + ", " + convolution.way(), layer.flops(), "GFLOP/s",
            compare(
                [&] {
                  convolution.run({a.data(), b.data(), c.data(), 0, convolution.work_count(), aligned(scratch),
                                   aligned(workspace)});
                },
                [&] { direct.run(which); }),
            "oneDNN");
    }
  }
}

kernels::TileProgram single(ScalarOp op, DType result) {
  kernels::TileProgram program;
  for (int i = 0; i < 2; ++i) program.add_register(DType::kFloat32);
  program.input_count = 2;
  program.outputs = {program.emit(op, {0, 1}, result)};
  return program;
}

void bench_pooling() {
  constexpr int64_t kBatch = 64;
  constexpr int64_t kSide = 28;
  constexpr int64_t kFeatures = 32;
  constexpr int64_t kCount = kBatch * kSide * kSide * kFeatures;
  const WindowDim half{.size = kSide, .window = 2, .stride = 2};
  const std::vector<WindowDim> dims = {{.size = kBatch}, half, half, {.size = kFeatures}};
  const Bytes from = floats(kCount);
  const Bytes source = floats(kCount / 4);
  Bytes to(from.size());
  const float lowest = -1e30F;
  const auto* init = reinterpret_cast<const std::byte*>(&lowest);
  const auto maximum = std::make_shared<const kernels::Monoid>(single(ScalarOp::kMaximum, DType::kFloat32),
                                                               std::vector<DType>{DType::kFloat32});
  const kernels::WindowReduce pool(maximum, dims);
  Bytes scratch(static_cast<size_t>(pool.scratch_bytes()) + 64);
  const auto row = [](const float* base, int64_t image, int64_t y, int64_t x, int64_t side) {
    return base + ((image * side + y) * side + x) * kFeatures;
  };
  const auto visit = [&](auto&& each) {
    for (int64_t i = 0; i < kBatch; ++i) {
      for (int64_t y = 0; y < kSide / 2; ++y) {
        for (int64_t x = 0; x < kSide / 2; ++x) each(i, y, x);
      }
    }
  };
  const auto* x = reinterpret_cast<const float*>(from.data());
  auto* out = reinterpret_cast<float*>(to.data());
  const std::byte* inputs[] = {from.data()};
  const std::byte* inits[] = {init};
  std::byte* results[] = {to.data()};
  print("max of 2x2, 64x28x28x32", 4.0 * kCount, "GB/s",
        compare(
            [&] {
              pool.run({inputs, inits, results, 0, pool.work_count(), aligned(scratch)});
            },
            [&] {
              visit([&](int64_t i, int64_t y, int64_t at) {
                const float* a = row(x, i, 2 * y, 2 * at, kSide);
                const float* b = row(x, i, 2 * y + 1, 2 * at, kSide);
                auto* r = const_cast<float*>(row(out, i, y, at, kSide / 2));
                for (int64_t f = 0; f < kFeatures; ++f) {
                  r[f] = std::max(std::max(a[f], a[f + kFeatures]), std::max(b[f], b[f + kFeatures]));
                }
              });
            }),
        "bare loop");

  const auto sum = std::make_shared<const kernels::Monoid>(single(ScalarOp::kAdd, DType::kFloat32),
                                                           std::vector<DType>{DType::kFloat32});
  std::vector<kernels::SelectDim> select_dims;
  for (const kernels::WindowDim& dim : dims) select_dims.push_back({dim, std::nullopt});
  const kernels::SelectAndScatter back(single(ScalarOp::kCompareGe, DType::kBool), sum, DType::kFloat32, select_dims);
  scratch.resize(static_cast<size_t>(back.scratch_bytes()) + 64);
  const float zero = 0;
  print("its gradient", 4.0 * kCount, "GB/s",
        compare(
            [&] {
              back.run({from.data(), source.data(), reinterpret_cast<const std::byte*>(&zero), to.data(), nullptr, 0,
                        back.work_count(), aligned(scratch)});
            },
            [&] {
              std::fill_n(out, kCount, 0.0F);
              const auto* s = reinterpret_cast<const float*>(source.data());
              visit([&](int64_t i, int64_t y, int64_t at) {
                const float* from_row = row(s, i, y, at, kSide / 2);
                for (int64_t f = 0; f < kFeatures; ++f) {
                  const float* best = row(x, i, 2 * y, 2 * at, kSide) + f;
                  for (const float* next : {best + kFeatures, row(x, i, 2 * y + 1, 2 * at, kSide) + f,
                                            row(x, i, 2 * y + 1, 2 * at + 1, kSide) + f}) {
                    best = *best >= *next ? best : next;
                  }
                  out[best - x] += from_row[f];
                }
              });
            }),
        "bare loop");
}

void bench_cumulative() {
  const auto sum = std::make_shared<const kernels::Monoid>(single(ScalarOp::kAdd, DType::kFloat32),
                                                           std::vector<DType>{DType::kFloat32});
  const struct {
    int64_t lead, rows, inner;
  } shapes[] = {{1, 1 << 22, 1}, {4096, 1024, 1}, {1, 1024, 4096}, {64, 1024, 64}};
  for (const auto& [lead, rows, inner] : shapes) {
    const int64_t count = lead * rows * inner;
    const Bytes from = floats(count);
    Bytes to(from.size());
    const kernels::WindowReduce scan(
        sum, {{.size = lead}, {.size = rows, .window = rows, .pad_low = rows - 1}, {.size = inner}});
    Bytes scratch(static_cast<size_t>(scan.scratch_bytes()) + 64);
    const float zero = 0;
    const std::byte* inputs[] = {from.data()};
    const std::byte* inits[] = {reinterpret_cast<const std::byte*>(&zero)};
    std::byte* results[] = {to.data()};
    print("cumulative sum of " + std::to_string(lead) + "x" + std::to_string(rows) + "x" + std::to_string(inner),
          8.0 * static_cast<double>(count), "GB/s",
          compare(
              [&] {
                scan.run({inputs, inits, results, 0, scan.work_count(), aligned(scratch)});
              },
              [&, lead = lead, rows = rows, inner = inner] {
                const auto* x = reinterpret_cast<const float*>(from.data());
                auto* y = reinterpret_cast<float*>(to.data());
                std::vector<double> sums(static_cast<size_t>(inner));
                for (int64_t l = 0; l < lead; ++l) {
                  std::fill(sums.begin(), sums.end(), 0.0);
                  for (int64_t r = 0; r < rows; ++r, x += inner, y += inner) {
                    for (int64_t i = 0; i < inner; ++i) {
                      sums[static_cast<size_t>(i)] += static_cast<double>(x[i]);
                      y[i] = static_cast<float>(sums[static_cast<size_t>(i)]);
                    }
                  }
                }
              }),
          "bare loop");
  }
  for (const int64_t window : {3, 30, 300}) {
    constexpr int64_t kRows = 1 << 20;
    const Bytes from = floats(kRows);
    Bytes to(from.size());
    const kernels::WindowReduce moving(sum, {{.size = kRows, .window = window}});
    Bytes scratch(static_cast<size_t>(moving.scratch_bytes()) + 64);
    const float zero = 0;
    const std::byte* inputs[] = {from.data()};
    const std::byte* inits[] = {reinterpret_cast<const std::byte*>(&zero)};
    std::byte* results[] = {to.data()};
    print("moving sum over " + std::to_string(window), 8.0 * kRows, "GB/s",
          compare(
              [&] {
                moving.run({inputs, inits, results, 0, moving.work_count(), aligned(scratch)});
              },
              [&] {
                const auto* x = reinterpret_cast<const float*>(from.data());
                auto* y = reinterpret_cast<float*>(to.data());
                for (int64_t i = 0; i + window <= kRows; ++i) {
                  float total = 0;
                  for (int64_t k = 0; k < window; ++k) total += x[i + k];
                  y[i] = total;
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
  if (only.empty() || only == "convolution") bench_convolution();
  if (only.empty() || only == "pooling") bench_pooling();
  if (only.empty() || only == "cumulative") bench_cumulative();
  return 0;
}
