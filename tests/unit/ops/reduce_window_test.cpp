// reduce_window against its definition, window by window, element by element, with random windows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "service/core/error.h"
#include "tests/support/parsed_instance.h"
#include "tests/support/window_text.h"

namespace meshd::test {
namespace {

using tensor::Dims;
using tensor::DType;
using Cut = Instance::Cut;

std::string program(const WindowText& window, const std::string& element, const std::string& body) {
  const std::string in = tensor_text(window.sizes(), element);
  const std::string out = tensor_text(window.counts(), element);
  const std::string scalar = "tensor<" + element + ">";
  return "module @m {\n  func.func public @main(%arg0: " + in + ", %arg1: " + scalar + ") -> " + out +
         " {\n    %0 = \"stablehlo.reduce_window\"(%arg0, %arg1) <{" + window.attributes() +
         "}> ({\n    ^bb0(%a: " + scalar + ", %b: " + scalar + "):\n" + body + "    }) : (" + in + ", " + scalar +
         ") -> " + out + "\n    return %0 : " + out + "\n  }\n}\n";
}
std::string one_op(const std::string& op, const std::string& element) {
  return "      %r = stablehlo." + op + " %a, %b : tensor<" + element + ">\n      stablehlo.return %r : tensor<" +
         element + ">\n";
}

/// The definition: the initial value, then the elements of the window in row-major order.
template <typename T, typename Combine>
std::vector<T> naive(const WindowText& window, const std::vector<T>& values, T init, Combine combine) {
  std::vector<T> out;
  for_each_index(window.counts(), [&](const Dims& at) {
    T sum = init;
    for_each_index(window.windows(), [&](const Dims& offset) {
      const std::optional<int64_t> from = window.element(at, offset);
      if (from) sum = combine(sum, values[static_cast<size_t>(*from)]);
    });
    out.push_back(sum);
  });
  return out;
}

/// Ways to run that must all give the same bits.
template <typename T>
std::vector<T> run(const ParsedInstance& parsed, const std::vector<Array>& operands) {
  const std::vector<T> whole = parsed.instance.run(operands)[0].values<T>();
  EXPECT_EQ(whole, parsed.instance.run(operands, Cut::kBackwards)[0].template values<T>());
  return whole;
}

std::vector<int32_t> random_ints(std::mt19937& random, size_t count) {
  std::vector<int32_t> values(count);
  for (int32_t& value : values) value = static_cast<int32_t>(random());
  return values;
}

TEST(ReduceWindow, random_windows_of_integers_are_the_definitions) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const WindowText window = WindowText::random(random, true);
    const std::vector<int32_t> values = random_ints(random, static_cast<size_t>(tensor::element_count(window.sizes())));
    const ParsedInstance add(program(window, "i32", one_op("add", "i32")), "stablehlo.reduce_window");
    const auto sum = [](int32_t a, int32_t b) {
      return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
    };
    ASSERT_EQ(run<int32_t>(add, {i32(window.sizes(), values), i32({}, {7})}), naive<int32_t>(window, values, 7, sum))
        << window.attributes() << " of " << tensor_text(window.sizes(), "i32");
  }
}

// Combining a pair of maps x -> a x + b is associative and not commutative: order shows.
TEST(ReduceWindow, elements_meet_in_order) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const WindowText window = WindowText::random(random, true);
    const std::string in = tensor_text(window.sizes(), "i32");
    const std::string out = tensor_text(window.counts(), "i32");
    const std::string text = "module @m {\n  func.func public @main(%a0: " + in + ", %a1: " + in +
                             ", %i0: tensor<i32>, %i1: tensor<i32>) -> (" + out + ", " + out +
                             ") {\n    %0:2 = \"stablehlo.reduce_window\"(%a0, %a1, %i0, %i1) <{" +
                             window.attributes() + R"(}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
      %m = stablehlo.multiply %a, %c : tensor<i32>
      %n = stablehlo.multiply %b, %c : tensor<i32>
      %s = stablehlo.add %n, %d : tensor<i32>
      stablehlo.return %m, %s : tensor<i32>, tensor<i32>
    }) : ()" + in + ", " + in +
                             ", tensor<i32>, tensor<i32>) -> (" + out + ", " + out +
                             ")\n    return %0#0, %0#1 : " + out + ", " + out + "\n  }\n}\n";
    const ParsedInstance parsed(text, "stablehlo.reduce_window");
    const auto count = static_cast<size_t>(tensor::element_count(window.sizes()));
    std::vector<int32_t> slopes = random_ints(random, count);
    std::vector<int32_t> starts = random_ints(random, count);
    const std::vector<Array> got = parsed.instance.run(
        {i32(window.sizes(), slopes), i32(window.sizes(), starts), i32({}, {1}), i32({}, {0})}, Cut::kItemByItem);
    std::vector<int32_t> expected_slopes;
    std::vector<int32_t> expected_starts;
    for_each_index(window.counts(), [&](const Dims& at) {
      uint32_t slope = 1;
      uint32_t start = 0;
      for_each_index(window.windows(), [&](const Dims& offset) {
        const std::optional<int64_t> from = window.element(at, offset);
        if (!from) return;
        const auto a = static_cast<uint32_t>(slopes[static_cast<size_t>(*from)]);
        slope *= a;
        start = start * a + static_cast<uint32_t>(starts[static_cast<size_t>(*from)]);
      });
      expected_slopes.push_back(static_cast<int32_t>(slope));
      expected_starts.push_back(static_cast<int32_t>(start));
    });
    ASSERT_EQ(got[0].values<int32_t>(), expected_slopes) << window.attributes();
    ASSERT_EQ(got[1].values<int32_t>(), expected_starts) << window.attributes();
  }
}

TEST(ReduceWindow, sums_from_one_end_are_the_definitions) {
  std::mt19937 random(3);
  const std::vector<Dims> shapes = {{1},     {2},      {63},     {64},       {65},      {1000},      {16384},
                                    {20001}, {5, 700}, {700, 5}, {3, 90, 4}, {70, 300}, {2, 130, 66}};
  for (const Dims& shape : shapes) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      for (const bool backwards : {false, true}) {
        const int64_t size = shape[axis];
        WindowText window(shape);
        window.dims[axis].window = size;
        (backwards ? window.dims[axis].pad_high : window.dims[axis].pad_low) = size - 1;
        const auto count = static_cast<size_t>(tensor::element_count(shape));
        const std::vector<int32_t> values = random_ints(random, count);
        const ParsedInstance parsed(program(window, "i32", one_op("add", "i32")), "stablehlo.reduce_window");
        std::vector<int32_t> expected = values;
        const Dims strides = tensor::row_major_strides(shape);
        for_each_index(shape, [&](const Dims& index) {
          Dims at = index;
          if (backwards) at[axis] = size - 1 - index[axis];
          if (index[axis] == 0) return;
          const int64_t here = position(shape, at);
          const int64_t before = here + (backwards ? strides[axis] : -strides[axis]);
          expected[static_cast<size_t>(here)] =
              static_cast<int32_t>(static_cast<uint32_t>(expected[static_cast<size_t>(here)]) +
                                   static_cast<uint32_t>(expected[static_cast<size_t>(before)]));
        });
        ASSERT_EQ(run<int32_t>(parsed, {i32(shape, values), i32({}, {0})}), expected)
            << window.attributes() << " of " << tensor_text(shape, "i32");
        // The same by a body that is more than one op.
        const ParsedInstance twice(
            program(window, "i32",
                    "      %x = stablehlo.add %b, %a : tensor<i32>\n      %y = stablehlo.constant dense<0> : "
                    "tensor<i32>\n      %r = stablehlo.add %x, %y : tensor<i32>\n      stablehlo.return %r : "
                    "tensor<i32>\n"),
            "stablehlo.reduce_window");
        ASSERT_EQ(run<int32_t>(twice, {i32(shape, values), i32({}, {0})}), expected) << window.attributes();
      }
    }
  }
}

TEST(ReduceWindow, long_sums_of_floats_keep_their_digits) {
  constexpr int64_t kSize = 100000;
  WindowText window(Dims{kSize});
  window.dims[0].window = kSize;
  window.dims[0].pad_low = kSize - 1;
  const ParsedInstance parsed(program(window, "f32", one_op("add", "f32")), "stablehlo.reduce_window");
  const std::vector<float> sums = run<float>(parsed, {f32({kSize}, std::vector<float>(kSize, 0.1F)), f32({}, {0})});
  for (size_t i = 0; i < sums.size(); i += 977) {
    const double exact = static_cast<double>(0.1F) * static_cast<double>(i + 1);
    ASSERT_NEAR(sums[i], exact, exact * 1.2e-7) << i;  // one rounding, to float
  }
}

TEST(ReduceWindow, infinities_do_not_spread_beyond_their_windows) {
  WindowText window(Dims{40});
  window.dims[0].window = 12;
  const ParsedInstance parsed(program(window, "f32", one_op("add", "f32")), "stablehlo.reduce_window");
  std::vector<float> values(40, 1);
  values[20] = std::numeric_limits<float>::infinity();
  const std::vector<float> sums = run<float>(parsed, {f32({40}, values), f32({}, {0})});
  for (size_t i = 0; i < sums.size(); ++i) {
    const bool sees_it = i <= 20 && i + 12 > 20;
    EXPECT_EQ(sums[i], sees_it ? values[20] : 12.0F) << i;
  }
}

TEST(ReduceWindow, narrow_elements_are_summed_wide) {
  WindowText window(Dims{600, 2});
  window.dims[0].window = 600;
  const ParsedInstance parsed(program(window, "bf16", one_op("add", "bf16")), "stablehlo.reduce_window");
  // bfloat16: 1.0 is 0x3F80, 600 is 0x4416.
  const Array ones = Array::of(DType::kBfloat16, {600, 2}, std::vector<uint16_t>(1200, 0x3F80));
  const Array zero = Array::of(DType::kBfloat16, {}, std::vector<uint16_t>{0});
  EXPECT_EQ(run<uint16_t>(parsed, {ones, zero}), (std::vector<uint16_t>{0x4416, 0x4416}));
}

TEST(ReduceWindow, windows_of_nothing_are_the_initial_value) {
  WindowText window(Dims{2, 3});
  window.dims[0] = {.size = 2, .window = 2, .pad_low = 3, .pad_high = 3};
  const ParsedInstance parsed(program(window, "i32", one_op("multiply", "i32")), "stablehlo.reduce_window");
  EXPECT_EQ(
      run<int32_t>(parsed, {i32({2, 3}, {1, 2, 3, 4, 5, 6}), i32({}, {10})}),
      (std::vector<int32_t>{10, 10, 10, 10, 10, 10, 10, 20, 30, 40, 100, 180, 40, 50, 60, 10, 10, 10, 10, 10, 10}));
}

TEST(ReduceWindow, wrong_windows_are_refused_with_the_rule) {
  const auto refused = [](const WindowText& window, const std::string& expected) {
    try {
      const ParsedInstance parsed(program(window, "f32", one_op("add", "f32")), "stablehlo.reduce_window");
      ADD_FAILURE() << "accepted " << window.attributes();
    } catch (const core::Error& error) {
      EXPECT_NE(std::string(error.detail()).find(expected), std::string::npos) << error.detail();
    }
  };
  WindowText window(Dims{4});
  window.dims[0].window = 0;
  refused(window, "reduce_window C5");
  window.dims[0] = {.size = 4, .stride = 0};
  refused(window, "reduce_window C7");
  window.dims[0] = {.size = 4, .base_dilation = 0};
  refused(window, "reduce_window C9");
}

}  // namespace
}  // namespace meshd::test
