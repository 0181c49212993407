// select_and_scatter against its definition, window by window.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/support/parsed_instance.h"
#include "tests/support/window_text.h"

namespace meshd::test {
namespace {

using tensor::Dims;
using Cut = Instance::Cut;

std::string program(const WindowText& window, const std::string& element, const std::string& direction,
                    const std::string& compared = "%a, %b") {
  const std::string operand = tensor_text(window.sizes(), element);
  const std::string source = tensor_text(window.counts(), element);
  const std::string scalar = "tensor<" + element + ">";
  return "module @m {\n  func.func public @main(%arg0: " + operand + ", %arg1: " + source + ", %arg2: " + scalar +
         ") -> " + operand + " {\n    %0 = \"stablehlo.select_and_scatter\"(%arg0, %arg1, %arg2) <{" +
         window.attributes(false) + "}> ({\n    ^bb0(%a: " + scalar + ", %b: " + scalar +
         "):\n      %s = stablehlo.compare " + direction + ", " + compared + " : (" + scalar + ", " + scalar +
         ") -> tensor<i1>\n      stablehlo.return %s : tensor<i1>\n    }, {\n    ^bb0(%a: " + scalar +
         ", %b: " + scalar + "):\n      %s = stablehlo.add %a, %b : " + scalar +
         "\n      stablehlo.return %s : " + scalar + "\n    }) : (" + operand + ", " + source + ", " + scalar +
         ") -> " + operand + "\n    return %0 : " + operand + "\n  }\n}\n";
}

template <typename T, typename Keeps>
std::vector<T> naive(const WindowText& window, const std::vector<T>& operand, const std::vector<T>& source, T init,
                     Keeps keeps) {
  std::vector<T> out(operand.size(), init);
  size_t number = 0;
  for_each_index(window.counts(), [&](const Dims& at) {
    std::optional<int64_t> kept;
    for_each_index(window.windows(), [&](const Dims& offset) {
      const std::optional<int64_t> next = window.element(at, offset);
      if (!next) return;
      if (!kept || !keeps(operand[static_cast<size_t>(*kept)], operand[static_cast<size_t>(*next)])) kept = next;
    });
    if (kept) out[static_cast<size_t>(*kept)] += source[number];
    ++number;
  });
  return out;
}

TEST(SelectAndScatter, random_windows_are_the_definitions) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const WindowText window = WindowText::random(random, false);
    std::vector<int32_t> operand(static_cast<size_t>(tensor::element_count(window.sizes())));
    std::vector<int32_t> source(static_cast<size_t>(tensor::element_count(window.counts())));
    for (int32_t& value : operand) value = static_cast<int32_t>(random() % 5);  // ties
    for (int32_t& value : source) value = static_cast<int32_t>(random() % 1000);
    const bool is_strict = round % 2 == 0;
    const ParsedInstance parsed(program(window, "i32", is_strict ? "GT" : "GE"), "stablehlo.select_and_scatter");
    const std::vector<Array> operands = {i32(window.sizes(), operand), i32(window.counts(), source), i32({}, {5})};
    const std::vector<int32_t> expected =
        naive<int32_t>(window, operand, source, 5, [&](int32_t a, int32_t b) { return is_strict ? a > b : a >= b; });
    ASSERT_EQ(parsed.instance.run(operands)[0].values<int32_t>(), expected)
        << window.attributes(false) << " of " << tensor_text(window.sizes(), "i32");
    ASSERT_EQ(parsed.instance.run(operands, Cut::kBackwards)[0].values<int32_t>(), expected);
  }
}

// Comparisons of floats have a loop of their own where windows share no place: all of them, with special values.
template <typename T>
void compare_floats(const std::string& element, tensor::DType dtype) {
  std::mt19937 random(2);
  const T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> values = {0,
                                 T(-0.0),
                                 1,
                                 2,
                                 -3,
                                 infinity,
                                 -infinity,
                                 std::numeric_limits<T>::quiet_NaN(),
                                 std::numeric_limits<T>::denorm_min()};
  const std::vector<std::pair<std::string, bool (*)(T, T)>> directions = {{"GE", [](T a, T b) { return a >= b; }},
                                                                          {"GT", [](T a, T b) { return a > b; }},
                                                                          {"LE", [](T a, T b) { return a <= b; }},
                                                                          {"LT", [](T a, T b) { return a < b; }}};
  for (int round = 0; round < 400; ++round) {
    const WindowText window = WindowText::random(random, false);
    std::vector<T> operand(static_cast<size_t>(tensor::element_count(window.sizes())));
    std::vector<T> source(static_cast<size_t>(tensor::element_count(window.counts())));
    for (T& value : operand) value = values[random() % values.size()];
    for (T& value : source) value = static_cast<T>(random() % 1000);
    const auto& [direction, keeps] = directions[static_cast<size_t>(round) % 4];
    const bool is_turned = round % 8 >= 4;
    const ParsedInstance parsed(program(window, element, direction, is_turned ? "%b, %a" : "%a, %b"),
                                "stablehlo.select_and_scatter");
    const std::vector<Array> operands = {Array::of(dtype, window.sizes(), operand),
                                         Array::of(dtype, window.counts(), source),
                                         Array::of(dtype, {}, std::vector<T>{5})};
    const std::vector<T> expected = naive<T>(
        window, operand, source, 5, [&, keeps = keeps](T a, T b) { return is_turned ? keeps(b, a) : keeps(a, b); });
    ASSERT_EQ(parsed.instance.run(operands)[0].template values<T>(), expected)
        << direction << " " << window.attributes(false) << " of " << tensor_text(window.sizes(), element);
    ASSERT_EQ(parsed.instance.run(operands, Cut::kBackwards)[0].template values<T>(), expected);
  }
}

TEST(SelectAndScatter, comparisons_of_floats_are_the_definitions) {
  compare_floats<float>("f32", tensor::DType::kFloat32);
  compare_floats<double>("f64", tensor::DType::kFloat64);
}

TEST(SelectAndScatter, what_is_not_a_number_is_passed_over) {
  WindowText window(Dims{4});
  window.dims[0].window = 4;
  const ParsedInstance parsed(program(window, "f32", "GE"), "stablehlo.select_and_scatter");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Array> got = parsed.instance.run({f32({4}, {nan, 2, 3, 1}), f32({1}, {7}), f32({}, {0})});
  EXPECT_EQ(got[0].values<float>(), (std::vector<float>{0, 0, 7, 0}));
}

}  // namespace
}  // namespace meshd::test
