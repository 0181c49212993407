// Sort against std::stable_sort with the comparator's meaning, on values that sorts trip over.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "service/core/error.h"
#include "service/kernels/sort/sort_keys.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/kernel_interface.h"
#include "tests/support/parsed_instance.h"

namespace meshd::test {
namespace {

using tensor::Dims;
using tensor::DType;
using Cut = Instance::Cut;

std::string tensor_text(const Dims& dims, const std::string& element) {
  std::string out = "tensor<";
  for (const int64_t dim : dims) out += std::to_string(dim) + "x";
  return out + element + ">";
}

/// A sort of arrays of these elements; `body` has arguments %a0, %b0, %a1, %b1, ...
ParsedInstance sort_of(const Dims& dims, int64_t dim, const std::vector<std::string>& elements,
                       const std::string& body) {
  std::string arguments;
  std::string names;
  std::string types;
  std::string block;
  std::string results;
  for (size_t k = 0; k < elements.size(); ++k) {
    const std::string n = std::to_string(k);
    const std::string comma = k == 0 ? "" : ", ";
    arguments += comma + "%arg" + n + ": " + tensor_text(dims, elements[k]);
    names += comma + "%arg" + n;
    types += comma + tensor_text(dims, elements[k]);
    block += comma + "%a" + n + ": tensor<" + elements[k] + ">, %b" + n + ": tensor<" + elements[k] + ">";
    results += comma + (elements.size() == 1 ? "%0" : "%0#" + n);
  }
  const std::string count = elements.size() == 1 ? "" : ":" + std::to_string(elements.size());
  const std::string all = elements.size() == 1 ? types : "(" + types + ")";
  return {"module @jit_f {\n  func.func public @main(" + arguments + ") -> " + all + " {\n    %0" + count +
              " = \"stablehlo.sort\"(" + names + ") <{dimension = " + std::to_string(dim) +
              " : i64, is_stable = true}> ({\n    ^bb0(" + block + "):\n" + body + "    }) : (" + types + ") -> " +
              all + "\n    return " + results + " : " + types + "\n  }\n}\n",
          "stablehlo.sort"};
}

std::string compare_body(const std::string& direction, const std::string& element, const std::string& kind) {
  return "      %1 = stablehlo.compare " + direction + ", %a0, %b0, " + kind + " : (tensor<" + element + ">, tensor<" +
         element + ">) -> tensor<i1>\n      stablehlo.return %1 : tensor<i1>\n";
}

/// As JAX prints the order of floats: zeros alike, NaNs alike.
std::string jax_body(const std::string& direction, const std::string& element, const std::string& nan) {
  std::string out;
  for (const std::string side : {"a", "b"}) {
    out += "      %z" + side + " = stablehlo.constant dense<0.000000e+00> : tensor<" + element + ">\n      %e" + side +
           " = stablehlo.compare EQ, %" + side + "0, %z" + side + ", FLOAT : (tensor<" + element + ">, tensor<" +
           element + ">) -> tensor<i1>\n      %s" + side + " = stablehlo.select %e" + side + ", %z" + side + ", %" +
           side + "0 : tensor<i1>, tensor<" + element + ">\n      %n" + side + " = stablehlo.compare NE, %" + side +
           "0, %" + side + "0, FLOAT : (tensor<" + element + ">, tensor<" + element + ">) -> tensor<i1>\n      %q" +
           side + " = stablehlo.constant dense<" + nan + "> : tensor<" + element + ">\n      %k" + side +
           " = stablehlo.select %n" + side + ", %q" + side + ", %s" + side + " : tensor<i1>, tensor<" + element + ">\n";
  }
  return out + "      %1 = stablehlo.compare " + direction + ", %ka, %kb, TOTALORDER : (tensor<" + element +
         ">, tensor<" + element + ">) -> tensor<i1>\n      stablehlo.return %1 : tensor<i1>\n";
}

/// Order of JAX's floats: NaNs last and alike, zeros alike.
bool jax_before(float a, float b) {
  if (std::isnan(a)) return false;
  return std::isnan(b) || a < b;
}

/// Floats with all that is special about them.
std::vector<float> hard_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& value : out) {
    switch (random() % 12) {
      case 0:
        value = 0.0F;
        break;
      case 1:
        value = -0.0F;
        break;
      case 2:
        value = std::bit_cast<float>(0x7FC00000U + static_cast<uint32_t>(random() % 3));
        break;
      case 3:
        value = std::bit_cast<float>(0xFFC00000U);
        break;
      case 4:
        value = INFINITY;
        break;
      case 5:
        value = -INFINITY;
        break;
      case 6:
        value = std::bit_cast<float>(static_cast<uint32_t>(random() % 5));
        break;
      default:
        value = static_cast<float>(static_cast<int32_t>(random())) / 1e3F;
    }
  }
  return out;
}

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> out;
  for (const float value : values) out.push_back(std::bit_cast<uint32_t>(value));
  return out;
}

template <typename T>
std::vector<T> sorted_lines(std::vector<T> values, const Dims& dims, size_t dim,
                            const std::function<bool(T, T)>& before) {
  int64_t inner = 1;
  for (size_t d = dim + 1; d < dims.size(); ++d) inner *= dims[d];
  const int64_t length = dims[dim];
  const int64_t outer = static_cast<int64_t>(values.size()) / std::max<int64_t>(1, inner * length);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      std::vector<T> line;
      for (int64_t n = 0; n < length; ++n) line.push_back(values[static_cast<size_t>((o * length + n) * inner + i)]);
      std::stable_sort(line.begin(), line.end(), before);
      for (int64_t n = 0; n < length; ++n)
        values[static_cast<size_t>((o * length + n) * inner + i)] = line[static_cast<size_t>(n)];
    }
  }
  return values;
}

TEST(sort, jaxs_float_order_keeps_every_bit_along_any_dim) {
  for (const auto& [dims, dim] : std::vector<std::pair<Dims, size_t>>{{{1000}, 0},
                                                                      {{7, 33}, 1},
                                                                      {{33, 7}, 0},
                                                                      {{5, 40, 21}, 1},
                                                                      {{3, 5, 0}, 1},
                                                                      {{0, 3}, 0},
                                                                      {{1, 1}, 0},
                                                                      {{70000}, 0},
                                                                      {{200'000}, 0},
                                                                      {{3, 140'000}, 1}}) {
    const std::vector<float> values = hard_floats(static_cast<size_t>(tensor::element_count(dims)), 5);
    for (const std::string direction : {"LT", "GT"}) {
      const ParsedInstance sort =
          sort_of(dims, static_cast<int64_t>(dim), {"f32"}, jax_body(direction, "f32", "0x7FC00000"));
      const auto before = [&](float a, float b) { return direction == "LT" ? jax_before(a, b) : jax_before(b, a); };
      const std::vector<float> expected = sorted_lines<float>(values, dims, dim, before);
      for (const Cut cut : {Cut::kOneCall, Cut::kBackwards}) {
        EXPECT_EQ(sort.instance.run({f32(dims, values)}, cut)[0].values<uint32_t>(), bits_of(expected))
            << tensor::to_string(dims) << direction;
      }
    }
  }
}

TEST(sort, floats_without_specials_take_the_short_way_to_the_same_answer) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  std::vector<float> values(30000);
  for (float& value : values) value = normal(random);
  values[17] = INFINITY;
  values[18] = std::bit_cast<float>(0x7FC00000U);
  const ParsedInstance sort = sort_of({30000}, 0, {"f32"}, jax_body("LT", "f32", "0x7FC00000"));
  EXPECT_EQ(bits_of(sort.instance.run({f32({30000}, values)})[0].values<float>()),
            bits_of(sorted_lines<float>(values, {30000}, 0, jax_before)));
}

TEST(sort, total_order_of_bare_floats) {
  const std::vector<float> values = hard_floats(3000, 6);
  const auto key = [](float value) {
    const auto bits = std::bit_cast<int32_t>(value);
    return bits < 0 ? bits ^ INT32_MAX : bits;
  };
  const ParsedInstance sort = sort_of({3000}, 0, {"f32"}, compare_body("LT", "f32", "TOTALORDER"));
  EXPECT_EQ(sort.instance.run({f32({3000}, values)})[0].values<uint32_t>(),
            bits_of(sorted_lines<float>(values, {3000}, 0, [&](float a, float b) { return key(a) < key(b); })));
}

TEST(sort, floats_compared_as_numbers_without_nans) {
  std::vector<float> values = hard_floats(2000, 7);
  for (float& value : values) value = std::isnan(value) ? 1.0F : value;
  const ParsedInstance sort = sort_of({2000}, 0, {"f32"}, compare_body("GT", "f32", "FLOAT"));
  EXPECT_EQ(sort.instance.run({f32({2000}, values)})[0].values<uint32_t>(),
            bits_of(sorted_lines<float>(values, {2000}, 0, [](float a, float b) { return a > b; })));
}

TEST(sort, floats_compared_as_numbers_with_nans_give_a_permutation) {
  const std::vector<float> values = hard_floats(2000, 8);
  const ParsedInstance sort = sort_of({2000}, 0, {"f32"}, compare_body("LT", "f32", "FLOAT"));
  std::vector<uint32_t> got = sort.instance.run({f32({2000}, values)})[0].values<uint32_t>();
  std::vector<uint32_t> expected = bits_of(values);
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(got, expected);
}

template <typename T>
void expect_integers_sorted(DType dtype, const std::string& element, const std::string& kind) {
  std::mt19937_64 random(10);
  std::vector<T> values(4000);
  for (T& value : values) value = static_cast<T>(random());
  values[3] = std::numeric_limits<T>::max();
  values[5] = std::numeric_limits<T>::min();
  for (const std::string direction : {"LT", "GT"}) {
    const ParsedInstance sort = sort_of({2, 2000}, 1, {element}, compare_body(direction, element, kind));
    const auto before = [&](T a, T b) { return direction == "LT" ? a < b : b < a; };
    EXPECT_EQ(sort.instance.run({Array::of<T>(dtype, {2, 2000}, values)})[0].template values<T>(),
              (sorted_lines<T>(values, {2, 2000}, 1, before)))
        << element << direction;
  }
}

TEST(sort, integers_of_all_widths) {
  expect_integers_sorted<int8_t>(DType::kInt8, "i8", "SIGNED");
  expect_integers_sorted<int16_t>(DType::kInt16, "i16", "SIGNED");
  expect_integers_sorted<int32_t>(DType::kInt32, "i32", "SIGNED");
  expect_integers_sorted<int64_t>(DType::kInt64, "i64", "SIGNED");
  expect_integers_sorted<uint8_t>(DType::kUint8, "ui8", "UNSIGNED");
  expect_integers_sorted<uint16_t>(DType::kUint16, "ui16", "UNSIGNED");
  expect_integers_sorted<uint32_t>(DType::kUint32, "ui32", "UNSIGNED");
  expect_integers_sorted<uint64_t>(DType::kUint64, "ui64", "UNSIGNED");
}

/// Runs a sort by one key with row numbers beside it, and checks keys and numbers against a stable sort.
template <typename T>
void expect_argsort(DType dtype, const std::string& element, const std::string& kind, int64_t count, uint64_t spread) {
  std::mt19937_64 random(11);
  std::vector<T> keys(static_cast<size_t>(count));
  for (T& key : keys) key = static_cast<T>(random() % spread) - static_cast<T>(spread / 2);
  std::vector<int32_t> numbers(keys.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<int32_t> expected = numbers;
  std::stable_sort(expected.begin(), expected.end(),
                   [&](int32_t a, int32_t b) { return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)]; });
  const ParsedInstance sort = sort_of({count}, 0, {element, "i32"}, compare_body("LT", element, kind));
  const std::vector<Array> results = sort.instance.run({Array::of<T>(dtype, {count}, keys), i32({count}, numbers)});
  EXPECT_EQ(results[1].values<int32_t>(), expected) << element;
  const std::vector<T> got = results[0].template values<T>();
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end())) << element;
}

TEST(sort, other_operands_follow_and_equal_keys_keep_their_order) {
  for (const int64_t count : {1, 5, 100, 40'000, 150'000}) {
    expect_argsort<int32_t>(DType::kInt32, "i32", "SIGNED", count, 50);
    expect_argsort<int64_t>(DType::kInt64, "i64", "SIGNED", count, 50);
    expect_argsort<int16_t>(DType::kInt16, "i16", "SIGNED", count, 50);
    expect_argsort<float>(DType::kFloat32, "f32", "TOTALORDER", count, 1000);
    expect_argsort<double>(DType::kFloat64, "f64", "TOTALORDER", count, 1000);
  }
}

void expect_order_of_several_keys(int64_t count) {
  std::mt19937 random(12);
  for (const std::string second : {"i32", "i64"}) {
    std::vector<int32_t> first(static_cast<size_t>(count));
    std::vector<int64_t> keys(first.size());
    std::vector<int32_t> numbers(first.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    for (int32_t& value : first) value = static_cast<int32_t>(random() % 20) - 10;
    for (int64_t& value : keys) value = static_cast<int64_t>(random() % 20) - 10;
    std::vector<int32_t> expected = numbers;
    std::stable_sort(expected.begin(), expected.end(), [&](int32_t a, int32_t b) {
      const auto x = static_cast<size_t>(a);
      const auto y = static_cast<size_t>(b);
      return first[x] != first[y] ? first[x] < first[y] : keys[x] > keys[y];
    });
    const std::string body =
        "      %1 = stablehlo.compare GT, %a1, %b1, SIGNED : (tensor<" + second + ">, tensor<" + second +
        ">) -> tensor<i1>\n      %2 = stablehlo.compare LT, %a0, %b0, SIGNED : (tensor<i32>, tensor<i32>) -> "
        "tensor<i1>\n"
        "      %3 = stablehlo.compare EQ, %a0, %b0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "      %4 = stablehlo.and %3, %1 : tensor<i1>\n      %5 = stablehlo.or %2, %4 : tensor<i1>\n"
        "      stablehlo.return %5 : tensor<i1>\n";
    const ParsedInstance sort = sort_of({count}, 0, {"i32", second, "i32"}, body);
    const Array keys_array = second == "i64" ? Array::of<int64_t>(DType::kInt64, {count}, keys)
                                             : i32({count}, std::vector<int32_t>(keys.begin(), keys.end()));
    EXPECT_EQ(sort.instance.run({i32({count}, first), keys_array, i32({count}, numbers)})[2].values<int32_t>(),
              expected)
        << second;
    const auto recognised =
        kernels::recognise_comparator(ops::compile_scalar_region(*sort.instance.function, sort.instance.regions[0]));
    ASSERT_TRUE(recognised.has_value());
    EXPECT_EQ(recognised->size(), 2U);
  }
}

TEST(sort, several_keys_one_after_another) {
  expect_order_of_several_keys(5000);
  expect_order_of_several_keys(150'000);
}

/// A line that several threads share: it is sorted in pieces and buckets.
template <typename T>
void expect_long_line(DType dtype, const std::string& element, const std::string& kind,
                      const std::function<uint64_t(int64_t)>& value_of) {
  constexpr int64_t kCount = 300'007;
  std::vector<T> values(static_cast<size_t>(kCount));
  for (int64_t i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = static_cast<T>(value_of(i));
  for (const std::string direction : {"LT", "GT"}) {
    const ParsedInstance sort = sort_of({kCount}, 0, {element}, compare_body(direction, element, kind));
    std::vector<T> expected = values;
    std::sort(expected.begin(), expected.end());
    if (direction == "GT") std::reverse(expected.begin(), expected.end());
    for (const Cut cut : {Cut::kOneCall, Cut::kBackwards})
      EXPECT_EQ(sort.instance.run({Array::of<T>(dtype, {kCount}, values)}, cut)[0].template values<T>(), expected);
  }
}

TEST(sort, long_lines_of_any_distribution) {
  std::mt19937_64 random(14);
  const std::vector<std::function<uint64_t(int64_t)>> all = {
      [&](int64_t) { return random(); },
      [](int64_t i) { return static_cast<uint64_t>(i); },
      [](int64_t i) { return static_cast<uint64_t>(-i); },
      [](int64_t) { return uint64_t{7}; },
      [&](int64_t) { return random() % 3; },
      [&](int64_t i) { return i % 1000 == 0 ? random() : uint64_t{5}; },
  };
  for (const auto& value_of : all) {
    expect_long_line<int32_t>(DType::kInt32, "i32", "SIGNED", value_of);
    expect_long_line<uint64_t>(DType::kUint64, "ui64", "UNSIGNED", value_of);
    expect_long_line<int16_t>(DType::kInt16, "i16", "SIGNED", value_of);
    expect_long_line<uint8_t>(DType::kUint8, "ui8", "UNSIGNED", value_of);
  }
}

TEST(sort, long_lines_of_doubles_and_halves_keep_every_bit) {
  constexpr int64_t kCount = 200'000;
  std::mt19937_64 random(15);
  std::vector<double> values(static_cast<size_t>(kCount));
  for (double& value : values) {
    const uint64_t kind = random() % 6;
    value = kind == 0   ? -0.0
            : kind == 1 ? 0.0
            : kind == 2 ? std::bit_cast<double>(0x7FF8000000000000U + random() % 4)
                        : std::ldexp(static_cast<double>(random() % 1000) - 500, static_cast<int>(random() % 100));
  }
  const auto before = [](double a, double b) { return !std::isnan(a) && (std::isnan(b) || a < b); };
  for (const std::string direction : {"LT", "GT"}) {
    const ParsedInstance sort = sort_of({kCount}, 0, {"f64"}, jax_body(direction, "f64", "0x7FF8000000000000"));
    const std::vector<double> expected = sorted_lines<double>(
        values, {kCount}, 0, [&](double a, double b) { return direction == "LT" ? before(a, b) : before(b, a); });
    const std::vector<uint64_t> got =
        sort.instance.run({Array::of<double>(DType::kFloat64, {kCount}, values)}, Cut::kBackwards)[0]
            .values<uint64_t>();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], std::bit_cast<uint64_t>(expected[i])) << i;
  }
  // All halves, each some times, in another order than theirs.
  std::vector<uint16_t> halves(static_cast<size_t>(kCount));
  for (uint16_t& half : halves) half = static_cast<uint16_t>(random());
  const auto as_float = [](uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); };
  const ParsedInstance sort = sort_of({kCount}, 0, {"bf16"}, jax_body("LT", "bf16", "0x7FC0"));
  EXPECT_EQ(sort.instance.run({Array::of<uint16_t>(DType::kBfloat16, {kCount}, halves)})[0].values<uint16_t>(),
            sorted_lines<uint16_t>(halves, {kCount}, 0,
                                   [&](uint16_t a, uint16_t b) { return jax_before(as_float(a), as_float(b)); }));
}

// Some pieces of the line have only zeros and NaNs with the bits of their key.
TEST(sort, long_line_keeps_the_order_of_equal_elements_that_are_far_apart) {
  constexpr size_t kCount = 300'000;
  const float zeros[] = {0.0F, -0.0F};
  const float nans[] = {std::bit_cast<float>(0x7FC00000U), std::bit_cast<float>(0xFFC00001U)};
  for (int pattern = 0; pattern < 8; ++pattern) {
    std::vector<float> values(kCount);
    for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>((i * 7919) % kCount) + 1;
    for (const size_t at : {size_t{5}, size_t{100'000}, size_t{100'001}, size_t{290'000}}) {
      const bool is_odd = (pattern >> (at / 100'000) & 1) != 0;
      values[at] = zeros[is_odd ? 1 : 0];
      values[at + 10] = nans[is_odd ? 1 : 0];
      values[at + 20] = zeros[is_odd ? 1 : 0];
    }
    for (const std::string direction : {"LT", "GT"}) {
      const ParsedInstance sort = sort_of({kCount}, 0, {"f32"}, jax_body(direction, "f32", "0x7FC00000"));
      const std::vector<float> expected = sorted_lines<float>(values, {kCount}, 0, [&](float a, float b) {
        return direction == "LT" ? jax_before(a, b) : jax_before(b, a);
      });
      EXPECT_TRUE(sort.instance.run({f32({kCount}, values)})[0].values<uint32_t>() == bits_of(expected))
          << pattern << direction;
    }
  }
}

// Comparators that JAX does not write: NaNs are equal to a number.
TEST(sort, nans_that_are_equal_to_numbers_keep_their_order) {
  for (const auto& [constant, number] : {std::pair{"0x7F800000", INFINITY}, std::pair{"0.000000e+00", 0.0F}}) {
    for (const int64_t count : {int64_t{1000}, int64_t{200'000}}) {
      const std::vector<float> values = hard_floats(static_cast<size_t>(count), 21);
      const ParsedInstance sort = sort_of({count}, 0, {"f32"}, jax_body("LT", "f32", constant));
      const auto before = [&](float a, float b) {
        const float left = std::isnan(a) ? number : a;
        return left < (std::isnan(b) ? number : b);
      };
      EXPECT_TRUE(sort.instance.run({f32({count}, values)})[0].values<uint32_t>() ==
                  bits_of(sorted_lines<float>(values, {count}, 0, before)))
          << constant << count;
    }
  }
}

TEST(sort, a_comparator_that_is_no_order_of_keys_merges) {
  std::mt19937 random(13);
  std::vector<int32_t> values(3000);
  for (int32_t& value : values) value = static_cast<int32_t>(random() % 2001) - 1000;
  const std::string body =
      "      %1 = stablehlo.abs %a0 : tensor<i32>\n      %2 = stablehlo.abs %b0 : tensor<i32>\n"
      "      %3 = stablehlo.compare LT, %1, %2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n      "
      "stablehlo.return %3 : tensor<i1>\n";
  const ParsedInstance sort = sort_of({2, 1500}, 1, {"i32"}, body);
  EXPECT_FALSE(
      kernels::recognise_comparator(ops::compile_scalar_region(*sort.instance.function, sort.instance.regions[0]))
          .has_value());
  EXPECT_EQ(
      sort.instance.run({i32({2, 1500}, values)})[0].values<int32_t>(),
      (sorted_lines<int32_t>(values, {2, 1500}, 1, [](int32_t a, int32_t b) { return std::abs(a) < std::abs(b); })));
}

TEST(sort, jaxs_comparator_is_recognised) {
  for (const auto& [element, nan] : std::vector<std::pair<std::string, std::string>>{
           {"f32", "0x7FC00000"}, {"f64", "0x7FF8000000000000"}, {"bf16", "0x7FC0"}, {"f16", "0x7E00"}}) {
    const ParsedInstance sort = sort_of({4}, 0, {element}, jax_body("LT", element, nan));
    const auto keys =
        kernels::recognise_comparator(ops::compile_scalar_region(*sort.instance.function, sort.instance.regions[0]));
    ASSERT_TRUE(keys.has_value()) << element;
    EXPECT_TRUE(keys->front().zeros_alike && keys->front().nans_alike) << element;
  }
}

TEST(sort, messages_name_the_constraint) {
  const ParsedInstance sort = sort_of({4, 8}, 1, {"i32"}, compare_body("LT", "i32", "SIGNED"));
  const auto message = [&](int64_t dim, DType dtype) -> std::string {
    Instance wrong = sort.instance;
    wrong.attributes = {{"dimension", int_attribute(dim)}};
    try {
      (void)wrong.infer({ir::Type::of({dtype, {4, 8}})});
    } catch (const core::Error& error) {
      return error.detail();
    }
    return "no error";
  };
  EXPECT_EQ(message(2, DType::kInt32), "sort C4: dimension must be between -2 and 1, got 2");
  EXPECT_EQ(message(-3, DType::kInt32), "sort C4: dimension must be between -2 and 1, got -3");
  EXPECT_EQ(message(1, DType::kFloat32),
            "sort C5: the comparator must take two scalars of each input's type and return one boolean, got "
            "(tensor<i32>, tensor<i32>) -> "
            "(tensor<i1>)");
}

}  // namespace
}  // namespace meshd::test
