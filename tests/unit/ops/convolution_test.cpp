// Convolution against its definition, product by product, with random dimension numbers, windows and groups. Values are
// small integers, so that floats give the same numbers in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "service/core/error.h"
#include "service/kernels/product/convolution.h"
#include "service/kernels/product/gemm.h"
#include "service/tensor/buffer.h"
#include "tests/support/parsed_instance.h"
#include "tests/support/window_text.h"

namespace meshd::test {
namespace {

using tensor::Dims;
using tensor::DType;
using Cut = Instance::Cut;

struct Spatial {
  int64_t in = 1, kernel = 1, stride = 1, low = 0, high = 0, lhs_dilation = 1, rhs_dilation = 1;
  bool is_reversed = false;

  [[nodiscard]] int64_t count() const {
    const int64_t padded = low + (in == 0 ? 0 : (in - 1) * lhs_dilation + 1) + high;
    const int64_t span = (kernel - 1) * rhs_dilation + 1;
    return padded < span ? 0 : (padded - span) / stride + 1;
  }
};

/// Letters and numbers of the dimensions of one operand, in a random order: 'b', 'f', 0, 1, ...
struct Order {
  std::vector<std::string> names;

  Order(std::mt19937& random, const char* first, const char* second, size_t spatial) {
    names = {first, second};
    for (size_t d = 0; d < spatial; ++d) names.push_back(std::to_string(d));
    std::shuffle(names.begin(), names.end(), random);
  }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "[" : ", ") + name;
    return out + "]";
  }
  /// Sizes or indices by name, in this order.
  [[nodiscard]] Dims arranged(const std::map<std::string, int64_t>& by_name) const {
    Dims out;
    for (const std::string& name : names) out.push_back(by_name.at(name));
    return out;
  }
};

struct Case {
  std::vector<Spatial> dims;
  int64_t batch = 1, in_features = 1, out_features = 1, feature_groups = 1, batch_groups = 1;
  Order lhs, rhs, out;

  explicit Case(std::mt19937& random, size_t spatial)
      : lhs(random, "b", "f", spatial), rhs(random, "i", "o", spatial), out(random, "b", "f", spatial) {
    const auto below = [&](uint32_t end) { return static_cast<int64_t>(random() % end); };
    for (size_t d = 0; d < spatial; ++d) {
      Spatial dim;
      dim.in = below(8) + 1;
      dim.kernel = below(3) == 0 ? below(6) + 1 : below(3) + 1;
      if (below(2) == 0) dim.stride = below(3) + 1;
      if (below(2) == 0) dim.low = below(5) - 1;
      if (below(2) == 0) dim.high = below(5) - 1;
      if (below(4) == 0) dim.lhs_dilation = below(3) + 1;
      if (below(3) == 0) dim.rhs_dilation = below(3) + 1;
      dim.is_reversed = below(4) == 0;
      if (dim.lhs_dilation > 1 && below(3) != 0) dim.stride = 1;  // as gradients are
      dims.push_back(dim);
    }
    if (below(3) == 0) feature_groups = below(3) + 1;
    if (feature_groups == 1 && below(3) == 0) batch_groups = below(3) + 1;
    batch = (below(3) + 1) * batch_groups;
    in_features = (below(4) == 0 ? below(20) + 1 : below(3) + 1) * feature_groups;
    out_features = (below(4) == 0 ? below(20) + 1 : below(3) + 1) * feature_groups * batch_groups;
  }

  [[nodiscard]] Dims lhs_shape() const { return lhs.arranged(named({{"b", batch}, {"f", in_features}}, &Spatial::in)); }
  [[nodiscard]] Dims rhs_shape() const {
    return rhs.arranged(named({{"i", in_features / feature_groups}, {"o", out_features}}, &Spatial::kernel));
  }
  [[nodiscard]] Dims out_shape() const {
    std::map<std::string, int64_t> sizes = {{"b", batch / batch_groups}, {"f", out_features}};
    for (size_t d = 0; d < dims.size(); ++d) sizes[std::to_string(d)] = dims[d].count();
    return out.arranged(sizes);
  }
  [[nodiscard]] std::map<std::string, int64_t> named(std::map<std::string, int64_t> sizes,
                                                     int64_t Spatial::*field) const {
    for (size_t d = 0; d < dims.size(); ++d) sizes[std::to_string(d)] = dims[d].*field;
    return sizes;
  }

  [[nodiscard]] std::string text(const std::string& in, const std::string& result) const {
    const auto list = [&](auto value) {
      std::string text;
      for (const Spatial& dim : dims) text += (text.empty() ? "" : ", ") + std::string(value(dim));
      return "[" + text + "]";
    };
    const std::string a = tensor_text(lhs_shape(), in);
    const std::string b = tensor_text(rhs_shape(), in);
    const std::string c = tensor_text(out_shape(), result);
    return "module @m {\n  func.func public @main(%arg0: " + a + ", %arg1: " + b + ") -> " + c +
           " {\n    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = " + lhs.text() + "x" + rhs.text() + "->" +
           out.text() + ", window = {stride = " + list([](const Spatial& d) { return std::to_string(d.stride); }) +
           ", pad = " +
           list([](const Spatial& d) { return "[" + std::to_string(d.low) + ", " + std::to_string(d.high) + "]"; }) +
           ", lhs_dilate = " + list([](const Spatial& d) { return std::to_string(d.lhs_dilation); }) +
           ", rhs_dilate = " + list([](const Spatial& d) { return std::to_string(d.rhs_dilation); }) +
           ", reverse = " + list([](const Spatial& d) { return d.is_reversed ? "true" : "false"; }) +
           "} {batch_group_count = " + std::to_string(batch_groups) +
           " : i64, feature_group_count = " + std::to_string(feature_groups) + " : i64} : (" + a + ", " + b + ") -> " +
           c + "\n    return %0 : " + c + "\n  }\n}\n";
  }

  /// The definition.
  template <typename T>
  std::vector<T> naive(const std::vector<T>& a, const std::vector<T>& b) const {
    const Dims shape = out_shape();
    std::vector<T> result(static_cast<size_t>(tensor::element_count(shape)));
    Dims taps = {in_features / feature_groups};
    for (const Spatial& dim : dims) taps.push_back(dim.kernel);
    for_each_index(shape, [&](const Dims& at) {
      std::map<std::string, int64_t> to;
      for (size_t d = 0; d < at.size(); ++d) to[out.names[d]] = at[d];
      const int64_t group = to["f"] / (out_features / (feature_groups * batch_groups));
      T sum{};
      for_each_index(taps, [&](const Dims& tap) {
        std::map<std::string, int64_t> from = {{"b", to["b"]}, {"f", tap[0]}};
        std::map<std::string, int64_t> kernel = {{"i", tap[0]}, {"o", to["f"]}};
        if (feature_groups > 1) from["f"] += group * (in_features / feature_groups);
        if (batch_groups > 1) from["b"] += group * (batch / batch_groups);
        for (size_t d = 0; d < dims.size(); ++d) {
          const std::string name = std::to_string(d);
          const int64_t place = to[name] * dims[d].stride + tap[d + 1] * dims[d].rhs_dilation - dims[d].low;
          if (place < 0 || place % dims[d].lhs_dilation != 0 || place / dims[d].lhs_dilation >= dims[d].in) return;
          from[name] = place / dims[d].lhs_dilation;
          kernel[name] = dims[d].is_reversed ? dims[d].kernel - 1 - tap[d + 1] : tap[d + 1];
        }
        sum += a[static_cast<size_t>(position(lhs_shape(), lhs.arranged(from)))] *
               b[static_cast<size_t>(position(rhs_shape(), rhs.arranged(kernel)))];
      });
      result[static_cast<size_t>(position(shape, at))] = sum;
    });
    return result;
  }
};

template <typename T>
std::vector<T> small_values(std::mt19937& random, const Dims& shape) {
  std::vector<T> out(static_cast<size_t>(tensor::element_count(shape)));
  for (T& value : out) value = static_cast<T>(static_cast<int>(random() % 9) - 4);
  return out;
}

template <typename T>
void compare(uint32_t seed, DType dtype, const std::string& element, int rounds) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    const Case test(random, static_cast<size_t>(round % 5 == 4 ? random() % 5 : random() % 2 + 1));
    const std::vector<T> a = small_values<T>(random, test.lhs_shape());
    const std::vector<T> b = small_values<T>(random, test.rhs_shape());
    const std::string text = test.text(element, element);
    const ParsedInstance parsed(text, "stablehlo.convolution");
    const std::vector<Array> operands = {Array::of(dtype, test.lhs_shape(), a), Array::of(dtype, test.rhs_shape(), b)};
    const Cut cut = round % 2 == 0 ? Cut::kOneCall : Cut::kBackwards;
    ASSERT_EQ(parsed.instance.run(operands, cut)[0].template values<T>(), test.naive(a, b)) << text;
  }
}

TEST(Convolution, integers_are_the_definitions) { compare<int32_t>(1, DType::kInt32, "i32", 400); }
TEST(Convolution, floats_are_the_definitions) { compare<float>(2, DType::kFloat32, "f32", 600); }
TEST(Convolution, doubles_are_the_definitions) { compare<double>(3, DType::kFloat64, "f64", 200); }
TEST(Convolution, complex_numbers_are_the_definitions) {
  compare<std::complex<float>>(4, DType::kComplex64, "complex<f32>", 100);
}

TEST(Convolution, narrow_floats_are_multiplied_in_float) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const Case test(random, random() % 2 + 1);
    const std::vector<float> a = small_values<float>(random, test.lhs_shape());
    const std::vector<float> b = small_values<float>(random, test.rhs_shape());
    const auto narrow = [](const std::vector<float>& values) {
      std::vector<uint16_t> out;
      for (const float value : values) {
        uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        out.push_back(static_cast<uint16_t>(bits >> 16));  // exact: few digits
      }
      return out;
    };
    const ParsedInstance parsed(test.text("bf16", "f32"), "stablehlo.convolution");
    const std::vector<Array> got = parsed.instance.run({Array::of(DType::kBfloat16, test.lhs_shape(), narrow(a)),
                                                        Array::of(DType::kBfloat16, test.rhs_shape(), narrow(b))});
    ASSERT_EQ(got[0].values<float>(), test.naive(a, b)) << test.text("bf16", "f32");
  }
}

TEST(Convolution, bytes_wrap_in_the_type_of_the_result) {
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    const Case test(random, random() % 2 + 1);
    const std::vector<int8_t> a = small_values<int8_t>(random, test.lhs_shape());
    const std::vector<int8_t> b = small_values<int8_t>(random, test.rhs_shape());
    const ParsedInstance parsed(test.text("i8", "i32"), "stablehlo.convolution");
    const std::vector<Array> got = parsed.instance.run(
        {Array::of(DType::kInt8, test.lhs_shape(), a), Array::of(DType::kInt8, test.rhs_shape(), b)});
    const std::vector<int32_t> expected =
        test.naive(std::vector<int32_t>(a.begin(), a.end()), std::vector<int32_t>(b.begin(), b.end()));
    ASSERT_EQ(got[0].values<int32_t>(), expected) << test.text("i8", "i32");
  }
}

/// Channels last, one group.
kernels::ConvolutionSpec images(int64_t batch, int64_t in, int64_t out, kernels::ConvolutionDim high,
                                kernels::ConvolutionDim wide) {
  kernels::ConvolutionSpec spec;
  spec.batch = batch;
  spec.in_features = in;
  spec.out_features = out;
  spec.dims = {high, wide};
  spec.lhs = {0, high.in * wide.in * in, 1, {wide.in * in, in}};
  spec.rhs = {0, 1, out, {wide.kernel * in * out, in * out}};
  spec.out = {0, high.out * wide.out * out, 1, {wide.out * out, out}};
  return spec;
}
kernels::ConvolutionSpec images(int64_t batch, int64_t in, int64_t out, kernels::ConvolutionDim dim) {
  return images(batch, in, out, dim, dim);
}

// What JAX makes of a convolution and of its gradients must reach the library's own loops for them.
TEST(Convolution, gradients_find_their_loops) {
  const auto way = [](const kernels::ConvolutionSpec& spec) { return std::string(kernels::Convolution(spec).way()); };
  EXPECT_EQ(way(images(8, 16, 32, {.in = 14, .kernel = 3, .out = 14, .pad_low = 1})), "oneDNN forward");
  EXPECT_EQ(way(images(8, 32, 16, {.in = 7, .kernel = 3, .out = 14, .pad_low = 2, .lhs_dilation = 2})),
            "oneDNN by data");
  EXPECT_EQ(way(images(16, 8, 32, {.in = 14, .kernel = 14, .out = 3, .pad_low = 1})), "oneDNN by weights");
  EXPECT_EQ(way(images(16, 8, 32, {.in = 14, .kernel = 7, .out = 3, .rhs_dilation = 2})), "oneDNN by weights");
  // Patches, as of vision transformers.
  EXPECT_EQ(way(images(1, 3, 192, {.in = 224, .kernel = 16, .out = 14, .stride = 16})), "columns");
  EXPECT_EQ(way(images(8, 3, 192, {.in = 224, .kernel = 16, .out = 14, .stride = 16})), "oneDNN forward");
  EXPECT_EQ(way(images(8, 3, 96, {.in = 64, .kernel = 8, .out = 7, .stride = 8})), "oneDNN forward");
  EXPECT_EQ(way(images(8, 64, 64, {.in = 14, .kernel = 14, .out = 1})), "oneDNN by weights");
}

/// A gradient of 3 x 3 taps by `count` images of 28 x 28, and its operands.
struct LargeGradient {
  explicit LargeGradient(int64_t count) {
    spec = images(32, count, 64, {.in = 28, .kernel = 28, .out = 3, .pad_low = 1});
    lhs.resize(static_cast<size_t>(32 * count * 28 * 28));
    rhs.resize(static_cast<size_t>(64 * count * 28 * 28));
    std::mt19937 random(8);
    std::normal_distribution<float> normal;
    for (float& value : lhs) value = normal(random);
    for (float& value : rhs) value = normal(random);
  }

  /// `work_items` at a time.
  template <class Convolution>
  std::vector<float> of(const Convolution& made, int64_t work_count, int64_t scratch_bytes, int64_t workspace_bytes,
                        int64_t work_items) const {
    std::vector<float> out(static_cast<size_t>(32 * 64 * 3 * 3));
    const auto pool = tensor::BufferPool::create(int64_t{1} << 30);
    const tensor::BufferRef scratch = pool->allocate(std::max<int64_t>(64, scratch_bytes));
    const tensor::BufferRef workspace = pool->allocate(std::max<int64_t>(64, workspace_bytes));
    for (int64_t at = 0; at < work_count; at += work_items) {
      made.run({reinterpret_cast<const std::byte*>(lhs.data()), reinterpret_cast<const std::byte*>(rhs.data()),
                reinterpret_cast<std::byte*>(out.data()), at, std::min(work_count, at + work_items), scratch->data(),
                workspace->data()});
    }
    return out;
  }
  [[nodiscard]] std::vector<float> value(int64_t work_items = 1000) const {
    const kernels::Convolution made(spec);
    return of(made, made.work_count(), made.scratch_bytes(), made.workspace_bytes(), work_items);
  }

  kernels::ConvolutionSpec spec;
  std::vector<float> lhs;
  std::vector<float> rhs;
};

/// Both ways of one convolution, by each number of work items at once, on whole numbers, whose sums are exact.
void expect_columns_as_onednn(const kernels::ConvolutionSpec& spec, std::mt19937& random) {
  const auto onednn = kernels::plan_convolution_onednn(spec);
  ASSERT_NE(onednn, nullptr);
  ASSERT_EQ(onednn->way, std::string("oneDNN forward"));
  const auto columns = kernels::plan_convolution_columns(spec);
  const auto elements = [&](int64_t count, const auto& size_of) {
    for (const kernels::ConvolutionDim& dim : spec.dims) count *= size_of(dim);
    return static_cast<size_t>(count);
  };
  std::uniform_int_distribution<int> digit(-8, 8);
  std::vector<float> lhs(elements(spec.batch * spec.in_features, [](const auto& dim) { return dim.in; }));
  std::vector<float> rhs(elements(spec.in_features * spec.out_features, [](const auto& dim) { return dim.kernel; }));
  for (float& value : lhs) value = static_cast<float>(digit(random));
  for (float& value : rhs) value = static_cast<float>(digit(random));
  const auto pool = tensor::BufferPool::create(int64_t{1} << 30);
  const auto value = [&](const kernels::Convolution::Plan& plan, int64_t work_items) {
    std::vector<float> result(elements(spec.batch * spec.out_features, [](const auto& dim) { return dim.out; }));
    const tensor::BufferRef scratch = pool->allocate(std::max<int64_t>(64, plan.scratch_bytes));
    const tensor::BufferRef workspace = pool->allocate(std::max<int64_t>(64, plan.workspace_bytes));
    for (int64_t at = 0; at < plan.work_count; at += work_items) {
      plan.run({reinterpret_cast<const std::byte*>(lhs.data()), reinterpret_cast<const std::byte*>(rhs.data()),
                reinterpret_cast<std::byte*>(result.data()), at, std::min(plan.work_count, at + work_items),
                scratch->data(), workspace->data()});
    }
    return result;
  };
  const std::vector<float> expected = value(*onednn, onednn->work_count);
  for (const int64_t work_items : {int64_t{1}, int64_t{3}, columns->work_count})
    EXPECT_EQ(value(*columns, work_items), expected) << work_items;
}

// The last rows of an image may be multiplied in another way than those before: what is packed is used by the next
// image.
TEST(Convolution, windows_side_by_side_are_products_of_patches) {
  std::mt19937 random(9);
  using Dim = kernels::ConvolutionDim;
  for (const auto& [batch, in, out, high, wide] :
       {std::tuple{3, 3, 64, Dim{.in = 64, .kernel = 16, .out = 4, .stride = 16},
                   Dim{.in = 64, .kernel = 16, .out = 4, .stride = 16}},
        {2, 5, 33, {.in = 45, .kernel = 9, .out = 5, .stride = 9}, {.in = 117, .kernel = 9, .out = 13, .stride = 9}},
        {4, 5, 33, {.in = 46, .kernel = 9, .out = 5, .stride = 9}, {.in = 119, .kernel = 9, .out = 13, .stride = 9}},
        {3,
         3,
         768,
         {.in = 91, .kernel = 13, .out = 7, .stride = 13},
         {.in = 120, .kernel = 13, .out = 9, .stride = 13}},
        {2,
         64,
         48,
         {.in = 31, .kernel = 2, .out = 15, .stride = 2},
         {.in = 31, .kernel = 2, .out = 15, .stride = 2}}}) {
    kernels::ConvolutionSpec spec = images(batch, in, out, high, wide);
    expect_columns_as_onednn(spec, random);
    for (Dim& dim : spec.dims) dim.is_reversed = true;
    expect_columns_as_onednn(spec, random);
  }
}

/// A convolution of one input feature, channels first, of random sizes; on whole numbers, whose sums are exact.
template <class T>
void expect_taps_as_columns(tensor::DType dtype, std::mt19937& random) {
  const auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  kernels::ConvolutionSpec spec;
  spec.lhs_dtype = spec.rhs_dtype = spec.out_dtype = dtype;
  spec.groups = number(1, 3);
  spec.batch = number(1, 3);
  spec.out_features = number(1, 3);
  const auto rank = static_cast<size_t>(number(1, 3));
  for (size_t d = 0; d < rank; ++d) {
    const bool is_last = d + 1 == rank;
    kernels::ConvolutionDim dim;
    dim.kernel = number(1, is_last ? 70 : 4);
    dim.rhs_dilation = number(0, 3) == 0 ? 2 : 1;
    dim.stride = is_last ? 1 : number(1, 2);
    dim.is_reversed = number(0, 1) == 0;
    const int64_t reach = (dim.kernel - 1) * dim.rhs_dilation + 1;
    dim.pad_low = number(0, reach);
    const int64_t pad_high = number(0, reach);
    dim.in = number(1, is_last ? (number(0, 5) == 0 && rank == 1 ? 9000 : 200) : 8) + reach;
    dim.out = (dim.in + dim.pad_low + pad_high - reach) / dim.stride + 1;
    spec.dims.push_back(dim);
  }
  const auto set_strides = [&](kernels::ConvolutionStrides& strides, int64_t kernels::ConvolutionDim::*size,
                               int64_t minor, int64_t major) {
    strides.spatial.resize(rank);
    int64_t stride = 1;
    for (size_t d = rank; d-- > 0; stride *= spec.dims[d].*size) strides.spatial[d] = stride;
    strides.minor = stride;
    strides.major = stride * minor;
    strides.group = stride * minor * major;
    return static_cast<size_t>(strides.group * spec.groups);
  };
  std::vector<T> lhs(set_strides(spec.lhs, &kernels::ConvolutionDim::in, 1, spec.batch));
  std::vector<T> rhs(set_strides(spec.rhs, &kernels::ConvolutionDim::kernel, 1, spec.out_features));
  const size_t results = set_strides(spec.out, &kernels::ConvolutionDim::out, spec.out_features, spec.batch);
  for (T& value : lhs) value = static_cast<T>(number(-8, 8));
  for (T& value : rhs) value = static_cast<T>(number(-8, 8));
  const auto pool = tensor::BufferPool::create(int64_t{1} << 30);
  const auto value = [&](const kernels::Convolution::Plan& plan, int64_t work_items) {
    std::vector<T> out(results, T{77});
    const tensor::BufferRef scratch = pool->allocate(std::max<int64_t>(64, plan.scratch_bytes));
    for (int64_t at = 0; at < plan.work_count; at += work_items) {
      plan.run({reinterpret_cast<const std::byte*>(lhs.data()), reinterpret_cast<const std::byte*>(rhs.data()),
                reinterpret_cast<std::byte*>(out.data()), at, std::min(plan.work_count, at + work_items),
                scratch->data()});
    }
    return out;
  };
  const auto taps = kernels::plan_convolution_taps(spec);
  if (taps == nullptr) return;  // short rows, or more taps than results
  const auto columns = kernels::plan_convolution_columns(spec);
  const std::vector<T> expected = value(*columns, columns->work_count);
  ASSERT_EQ(value(*taps, taps->work_count), expected);
  ASSERT_EQ(value(*taps, 1), expected);
}

// Taps are ones, so that results are differences of sums from the beginning.
TEST(Convolution, rows_in_chunks_of_a_few_results) {
  constexpr int64_t kSize = 40'001;
  constexpr int64_t kTaps = 10'001;
  kernels::ConvolutionSpec spec =
      images(1, 1, 1, {.in = 1, .out = 1}, {.in = kSize, .kernel = kTaps, .out = kSize, .pad_low = kTaps / 2});
  const auto plan = kernels::plan_convolution_taps(spec);
  ASSERT_NE(plan, nullptr);
  std::mt19937 random(12);
  std::vector<float> lhs(kSize);
  for (float& value : lhs) value = static_cast<float>(random() % 17) - 8;
  std::vector<double> sums = {0};
  for (const float value : lhs) sums.push_back(sums.back() + value);
  const std::vector<float> rhs(kTaps, 1);
  std::vector<float> out(kSize, 77);
  const auto pool = tensor::BufferPool::create(int64_t{1} << 30);
  const tensor::BufferRef scratch = pool->allocate(plan->scratch_bytes);
  for (int64_t item = plan->work_count; item-- > 0;) {
    plan->run({reinterpret_cast<const std::byte*>(lhs.data()), reinterpret_cast<const std::byte*>(rhs.data()),
               reinterpret_cast<std::byte*>(out.data()), item, item + 1, scratch->data()});
  }
  for (int64_t i = 0; i < kSize; ++i) {
    const auto first = static_cast<size_t>(std::max<int64_t>(0, i - kTaps / 2));
    const auto last = static_cast<size_t>(std::min(kSize, i - kTaps / 2 + kTaps));
    ASSERT_EQ(out[static_cast<size_t>(i)], static_cast<float>(sums[last] - sums[first])) << i;
  }
}

TEST(Convolution, one_input_feature_has_loops_of_its_own) {
  std::mt19937 random(11);
  for (int round = 0; round < 15; ++round) {
    expect_taps_as_columns<float>(DType::kFloat32, random);
    expect_taps_as_columns<double>(DType::kFloat64, random);
    expect_taps_as_columns<int32_t>(DType::kInt32, random);
    expect_taps_as_columns<uint32_t>(DType::kUint32, random);
    expect_taps_as_columns<int64_t>(DType::kInt64, random);
  }
  const auto way = [](const kernels::ConvolutionSpec& spec) { return std::string(kernels::Convolution(spec).way()); };
  // Copies with zeros that reach far would take more memory than patches.
  kernels::ConvolutionSpec apart = images(1, 1, 1, {.in = 1, .out = 1}, {.in = 32, .kernel = 2, .out = 32});
  apart.lhs_dtype = apart.rhs_dtype = apart.out_dtype = DType::kFloat64;
  for (const int64_t step : {int64_t{1} << 20, int64_t{100'000'000}, int64_t{1} << 59}) {
    apart.dims.back().rhs_dilation = apart.dims.back().pad_low = step;
    EXPECT_EQ(way(apart), "columns");
  }
  apart.dims.back().rhs_dilation = apart.dims.back().pad_low = 1000;
  EXPECT_EQ(way(apart), "taps");
  kernels::ConvolutionSpec series =
      images(1, 1, 1, {.in = 1, .out = 1}, {.in = 1000, .kernel = 50, .out = 1049, .pad_low = 49});
  EXPECT_EQ(way(series), "taps");
  series.dims.back() = {.in = 1000, .kernel = 990, .out = 11};
  EXPECT_EQ(way(series), "oneDNN by weights");
}

// So that several threads make one image; all of them read the kernel as one has reordered it.
TEST(Convolution, rows_of_an_image_are_work_items) {
  std::mt19937 random(10);
  const kernels::ConvolutionDim wide{.in = 56, .kernel = 3, .out = 56, .pad_low = 1};
  for (const int64_t batch : {1, 2, 3}) {
    for (const kernels::ConvolutionDim& high : std::vector<kernels::ConvolutionDim>{
             {.in = 56, .kernel = 3, .out = 56, .pad_low = 1},
             {.in = 57, .kernel = 5, .out = 29, .stride = 2, .pad_low = 2},
             {.in = 56, .kernel = 3, .out = 54, .pad_low = 1, .rhs_dilation = 2},
             {.in = 40, .kernel = 1, .out = 40},
             {.in = 40, .kernel = 7, .out = 58, .pad_low = 12},   // windows of padding alone
             {.in = 56, .kernel = 40, .out = 56, .pad_low = 20},  // windows that reach over pieces
             {.in = 60, .kernel = 3, .out = 19, .stride = 3}}) {
      const kernels::ConvolutionSpec spec = images(batch, 16, 32, high, wide);
      expect_columns_as_onednn(spec, random);
      kernels::ConvolutionSpec of_several = spec;
      of_several.copies = 8;
      EXPECT_TRUE(kernels::Convolution(of_several).barriers().empty());
    }
  }
  const kernels::Convolution made(images(1, 16, 32, wide, wide));
  EXPECT_EQ(made.barriers().size(), 1U);
  EXPECT_GT(made.work_count(), 2);
}

TEST(Convolution, kernel_without_taps_gives_zeros) {
  for (const size_t empty : {0, 1}) {
    kernels::ConvolutionDim dims[] = {{.in = 4, .kernel = 2, .out = 3}, {.in = 4, .kernel = 2, .out = 3}};
    dims[empty] = {.in = 4, .kernel = 0, .out = 5};
    const kernels::ConvolutionSpec spec = images(1, 2, 3, dims[0], dims[1]);
    const kernels::Convolution made(spec);
    const std::vector<float> lhs(32, 1.0F);
    const float rhs = 0;
    std::vector<float> result(3 * 5 * 3, 1.0F);
    const auto pool = tensor::BufferPool::create(int64_t{1} << 20);
    const tensor::BufferRef scratch = pool->allocate(std::max<int64_t>(64, made.scratch_bytes()));
    made.run({reinterpret_cast<const std::byte*>(lhs.data()), reinterpret_cast<const std::byte*>(&rhs),
              reinterpret_cast<std::byte*>(result.data()), 0, made.work_count(), scratch->data()});
    EXPECT_EQ(std::count(result.begin(), result.end(), 0.0F), 3 * 5 * 3) << empty;
  }
}

// A new thread sees all processors, one that has computed a product only itself; sums are split alike for both.
TEST(Convolution, bits_of_a_gradient_do_not_depend_on_the_thread_that_made_it) {
  const LargeGradient gradient(64);
  std::vector<float> of_new_thread;
  std::thread([&] { of_new_thread = gradient.value(); }).join();
  kernels::prepare_thread();
  EXPECT_EQ(gradient.value(), of_new_thread);
}

// So that several threads make it: each some images, and their parts are added in order.
TEST(Convolution, a_large_gradient_by_weights_is_a_sum_of_parts) {
  for (const int64_t count : {64, 61, 17, 9}) {
    const LargeGradient gradient(count);
    const kernels::Convolution made(gradient.spec);
    EXPECT_EQ(made.way(), std::string("oneDNN by weights"));
    ASSERT_EQ(made.barriers().size(), 1U) << count;
    EXPECT_GT(made.barriers()[0], 1) << count;
    const std::vector<float> got = gradient.value();
    EXPECT_EQ(gradient.value(1), got) << count;
    const auto columns = kernels::plan_convolution_columns(gradient.spec);
    const std::vector<float> expected = gradient.of(*columns, columns->work_count, columns->scratch_bytes, 0, 1000);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 0.02) << count << " " << i;
  }
}

TEST(Convolution, wrong_numbers_are_refused_with_the_rule) {
  std::mt19937 random(7);
  const auto refused = [](const std::string& text, const std::string& expected) {
    try {
      const ParsedInstance parsed(text, "stablehlo.convolution");
      ADD_FAILURE() << "accepted " << text;
    } catch (const core::Error& error) {
      EXPECT_NE(std::string(error.detail()).find(expected), std::string::npos) << error.detail();
    }
  };
  const auto text = [](const std::string& dims, const std::string& attributes) {
    return "module @m {\n  func.func public @main(%arg0: tensor<2x6x4xf32>, %arg1: tensor<3x4x6xf32>) -> "
           "tensor<2x4x6xf32> {\n    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = " +
           dims + ", window = {stride = [1]} {" + attributes +
           "} : (tensor<2x6x4xf32>, tensor<3x4x6xf32>) -> tensor<2x4x6xf32>\n    return %0 : tensor<2x4x6xf32>\n  "
           "}\n}\n";
  };
  const std::string right = "[b, 0, f]x[0, i, o]->[b, 0, f]";
  refused(text(right, "batch_group_count = 1 : i64, feature_group_count = 3 : i64"), "convolution C11");
  refused(text(right, "batch_group_count = 4 : i64, feature_group_count = 1 : i64"), "convolution C10");
  refused(text(right, "batch_group_count = 2 : i64, feature_group_count = 2 : i64"), "convolution C23");
  refused(text("[b, 0, f]x[i, 0, o]->[b, 0, f]", "batch_group_count = 1 : i64, feature_group_count = 1 : i64"),
          "convolution C14");
}

}  // namespace
}  // namespace meshd::test
