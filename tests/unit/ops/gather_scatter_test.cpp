// Gather and scatter against their definitions, element by element, with random dimension numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "service/core/error.h"
#include "service/ops/kernel_interface.h"
#include "tests/support/parsed_instance.h"

namespace meshd::test {
namespace {

using tensor::Dims;
using tensor::DType;
using Cut = Instance::Cut;

std::string list(const std::vector<int64_t>& values) {
  std::string out;
  for (const int64_t value : values) out += (out.empty() ? "" : ", ") + std::to_string(value);
  return out;
}
std::string tensor_text(const Dims& dims, const std::string& element) {
  std::string out = "tensor<";
  for (const int64_t dim : dims) out += std::to_string(dim) + "x";
  return out + element + ">";
}

/// Random dimension numbers and shapes that fit: roles of the operand's dims decide the rest.
struct Windows {
  Dims operand, indices, slices, sizes;
  std::vector<int64_t> offset, collapsed, operand_batching, indices_batching, index_map;
  int64_t index_vector_dim = 0;

  explicit Windows(std::mt19937& random) {
    const size_t rank = random() % 3 + 1;
    std::vector<int64_t> window;
    for (size_t d = 0; d < rank; ++d) {
      const auto dim = static_cast<int64_t>(d);
      operand.push_back(static_cast<int64_t>(random() % 5) + 1);
      const auto role = random() % 3;
      if (role == 0) operand_batching.push_back(dim);
      if (role == 1) collapsed.push_back(dim);
      if (role == 2) window.push_back(dim);
      sizes.push_back(role == 2 ? static_cast<int64_t>(random() % static_cast<uint32_t>(operand[d])) + 1 : 1);
      if (role != 0 && random() % 4 != 0) index_map.push_back(dim);
    }
    std::shuffle(index_map.begin(), index_map.end(), random);
    std::shuffle(operand_batching.begin(), operand_batching.end(), random);
    // Indices: the batching dims, some others and the tuple, in random places.
    std::vector<int64_t> places;  // >= 0: batching number; -1: other; -2: tuple
    for (size_t i = 0; i < operand_batching.size(); ++i) places.push_back(static_cast<int64_t>(i));
    for (size_t i = random() % 3; i > 0; --i) places.push_back(-1);
    const bool has_tuple = index_map.size() != 1 || random() % 2 == 0;
    if (has_tuple) places.push_back(-2);
    std::shuffle(places.begin(), places.end(), random);
    indices_batching.resize(operand_batching.size());
    index_vector_dim = static_cast<int64_t>(places.size());
    Dims batch;
    for (size_t d = 0; d < places.size(); ++d) {
      int64_t size = static_cast<int64_t>(random() % 4) + 1;
      if (places[d] >= 0) {
        indices_batching[static_cast<size_t>(places[d])] = static_cast<int64_t>(d);
        size = operand[static_cast<size_t>(operand_batching[static_cast<size_t>(places[d])])];
      }
      if (places[d] == -2) {
        index_vector_dim = static_cast<int64_t>(d);
        size = static_cast<int64_t>(index_map.size());
      } else {
        batch.push_back(size);
      }
      indices.push_back(size);
    }
    // Slices: windows' dims among the others.
    std::vector<bool> is_offset(window.size() + batch.size());
    std::fill_n(is_offset.begin(), window.size(), true);
    std::shuffle(is_offset.begin(), is_offset.end(), random);
    size_t next_window = 0;
    size_t next_batch = 0;
    for (size_t d = 0; d < is_offset.size(); ++d) {
      if (is_offset[d]) offset.push_back(static_cast<int64_t>(d));
      slices.push_back(is_offset[d] ? sizes[static_cast<size_t>(window[next_window++])] : batch[next_batch++]);
    }
  }

  /// Start index of the tuple that the slices' element at `index` belongs to, 0 where the tuple says nothing; and its
  /// place in a window.
  void locate(const std::vector<int64_t>& numbers, const Dims& index, Dims& start, Dims& within) const {
    start.assign(operand.size(), 0);
    within.assign(operand.size(), 0);
    Dims at(indices.size(), 0);
    size_t next_offset = 0;
    size_t next_batch = 0;
    std::vector<int64_t> windows;
    for (size_t d = 0; d < operand.size(); ++d) {
      const auto in = [d](const std::vector<int64_t>& dims) {
        return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
      };
      if (!in(collapsed) && !in(operand_batching)) windows.push_back(static_cast<int64_t>(d));
    }
    std::vector<size_t> tuple_dims;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (static_cast<int64_t>(d) != index_vector_dim) tuple_dims.push_back(d);
    }
    for (size_t d = 0; d < slices.size(); ++d) {
      if (std::find(offset.begin(), offset.end(), static_cast<int64_t>(d)) != offset.end()) {
        within[static_cast<size_t>(windows[next_offset++])] = index[d];
      } else {
        at[tuple_dims[next_batch++]] = index[d];
      }
    }
    for (size_t c = 0; c < index_map.size(); ++c) {
      if (index_vector_dim < static_cast<int64_t>(indices.size()))
        at[static_cast<size_t>(index_vector_dim)] = static_cast<int64_t>(c);
      start[static_cast<size_t>(index_map[c])] = numbers[static_cast<size_t>(position(indices, at))];
    }
    if (index_vector_dim < static_cast<int64_t>(indices.size())) at[static_cast<size_t>(index_vector_dim)] = 0;
    for (size_t i = 0; i < operand_batching.size(); ++i) {
      within[static_cast<size_t>(operand_batching[i])] = at[static_cast<size_t>(indices_batching[i])];
    }
  }

  [[nodiscard]] bool is_batching(size_t dim) const {
    return std::find(operand_batching.begin(), operand_batching.end(), static_cast<int64_t>(dim)) !=
           operand_batching.end();
  }

  [[nodiscard]] std::string gather_text(const std::string& index_type) const {
    return "module @jit_f {\n  func.func public @main(%arg0: " + tensor_text(operand, "f32") +
           ", %arg1: " + tensor_text(indices, index_type) + ") -> " + tensor_text(slices, "f32") +
           " {\n    %0 = \"stablehlo.gather\"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [" +
           list(offset) + "], collapsed_slice_dims = [" + list(collapsed) + "], operand_batching_dims = [" +
           list(operand_batching) + "], start_indices_batching_dims = [" + list(indices_batching) +
           "], start_index_map = [" + list(index_map) + "], index_vector_dim = " + std::to_string(index_vector_dim) +
           ">, indices_are_sorted = false, slice_sizes = array<i64: " + list(sizes) + ">}> : (" +
           tensor_text(operand, "f32") + ", " + tensor_text(indices, index_type) + ") -> " +
           tensor_text(slices, "f32") + "\n    return %0 : " + tensor_text(slices, "f32") + "\n  }\n}\n";
  }

  [[nodiscard]] std::string scatter_text(const std::string& element, const std::string& body) const {
    return "module @jit_f {\n  func.func public @main(%arg0: " + tensor_text(operand, element) +
           ", %arg1: " + tensor_text(indices, "i32") + ", %arg2: " + tensor_text(slices, element) + ") -> " +
           tensor_text(operand, element) +
           " {\n    %0 = \"stablehlo.scatter\"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, "
           "scatter_dimension_numbers = "
           "#stablehlo.scatter<update_window_dims = [" +
           list(offset) + "], inserted_window_dims = [" + list(collapsed) + "], input_batching_dims = [" +
           list(operand_batching) + "], scatter_indices_batching_dims = [" + list(indices_batching) +
           "], scatter_dims_to_operand_dims = [" + list(index_map) +
           "], index_vector_dim = " + std::to_string(index_vector_dim) +
           ">, unique_indices = false}> ({\n    ^bb0(%arg3: tensor<" + element + ">, %arg4: tensor<" + element +
           ">):\n" + body + "    }) : (" + tensor_text(operand, element) + ", " + tensor_text(indices, "i32") + ", " +
           tensor_text(slices, element) + ") -> " + tensor_text(operand, element) +
           "\n    return %0 : " + tensor_text(operand, element) + "\n  }\n}\n";
  }
};

std::vector<int64_t> random_numbers(std::mt19937& random, const Dims& dims) {
  std::vector<int64_t> out(static_cast<size_t>(tensor::element_count(dims)));
  for (int64_t& number : out) number = static_cast<int64_t>(random() % 9) - 2;
  return out;
}
Array as_array(const std::vector<int64_t>& numbers, const Dims& dims) {
  return i32(dims, std::vector<int32_t>(numbers.begin(), numbers.end()));
}

std::vector<float> special_floats(std::mt19937& random, int64_t count) {
  using Limits = std::numeric_limits<float>;
  constexpr float kSpecial[] = {Limits::infinity(),   -Limits::infinity(), Limits::quiet_NaN(), -0.0F, 0.0F,
                                Limits::denorm_min(), -Limits::min(),      Limits::max()};
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) value = random() % 50 == 0 ? kSpecial[random() % 8] : normal(random);
  return out;
}

TEST(gather, random_dimension_numbers_match_the_definition) {
  std::mt19937 random(21);
  for (int round = 0; round < 200; ++round) {
    const Windows windows(random);
    const std::vector<int64_t> numbers = random_numbers(random, windows.indices);
    const ParsedInstance gather(windows.gather_text("i32"), "stablehlo.gather");
    for (const Cut cut : {Cut::kOneCall, Cut::kBackwards}) {
      const std::vector<float> got =
          gather.instance.run({counting(windows.operand), as_array(numbers, windows.indices)}, cut)[0].values<float>();
      int64_t at = 0;
      for_each_index(windows.slices, [&](const Dims& index) {
        Dims start;
        Dims within;
        windows.locate(numbers, index, start, within);
        Dims from(windows.operand.size());
        for (size_t d = 0; d < from.size(); ++d) {
          const int64_t last = windows.operand[d] - windows.sizes[d];
          from[d] = within[d] + (windows.is_batching(d) ? 0 : std::clamp<int64_t>(start[d], 0, last));
        }
        ASSERT_EQ(got[static_cast<size_t>(at++)], static_cast<float>(position(windows.operand, from)))
            << windows.gather_text("i32") << tensor::to_string(index);
      });
    }
  }
}

TEST(gather, unsigned_indices_beyond_the_end_are_clamped) {
  const ParsedInstance gather(R"(module @jit_f {
  func.func public @main(%arg0: tensor<5xf32>, %arg1: tensor<3x1xui64>) -> tensor<3xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<5xf32>, tensor<3x1xui64>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
)",
                              "stablehlo.gather");
  const Array indices = Array::of<uint64_t>(DType::kUint64, {3, 1}, {UINT64_MAX, 2, uint64_t{1} << 63});
  EXPECT_EQ(gather.instance.run({counting({5}), indices})[0].values<float>(), (std::vector<float>{4, 2, 4}));
}

TEST(gather, large_windows_are_cut_into_work_items) {
  const ParsedInstance gather(R"(module @jit_f {
  func.func public @main(%arg0: tensor<900x600xf32>, %arg1: tensor<3x2xi32>) -> tensor<3x500x400xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 500, 400>}> : (tensor<900x600xf32>, tensor<3x2xi32>) -> tensor<3x500x400xf32>
    return %0 : tensor<3x500x400xf32>
  }
}
)",
                              "stablehlo.gather");
  const std::vector<Array> operands = {counting({900, 600}), i32({3, 2}, {7, 11, 400, 200, 999, -3})};
  const std::vector<float> got = gather.instance.run(operands, Cut::kBackwards)[0].values<float>();
  const std::vector<std::pair<int64_t, int64_t>> starts = {{7, 11}, {400, 200}, {400, 0}};
  int64_t at = 0;
  for_each_index({3, 500, 400}, [&](const Dims& index) {
    const auto [row, column] = starts[static_cast<size_t>(index[0])];
    ASSERT_EQ(got[static_cast<size_t>(at++)], static_cast<float>((row + index[1]) * 600 + column + index[2]));
  });
}

/// A body with its meaning.
struct Body {
  std::string element;
  std::string text;
  int32_t (*combine)(int32_t, int32_t);
};

TEST(scatter, random_dimension_numbers_and_bodies_match_the_definition) {
  const std::vector<Body> bodies = {
      {"i32", "      stablehlo.return %arg4 : tensor<i32>\n", [](int32_t, int32_t b) { return b; }},
      {"i32", "      %1 = stablehlo.add %arg3, %arg4 : tensor<i32>\n      stablehlo.return %1 : tensor<i32>\n",
       [](int32_t a, int32_t b) { return a + b; }},
      {"i32", "      %1 = stablehlo.subtract %arg3, %arg4 : tensor<i32>\n      stablehlo.return %1 : tensor<i32>\n",
       [](int32_t a, int32_t b) { return a - b; }},
      {"i32",
       "      %1 = stablehlo.multiply %arg3, %arg4 : tensor<i32>\n      %2 = stablehlo.xor %1, %arg3 : tensor<i32>\n   "
       "   "
       "stablehlo.return %2 : tensor<i32>\n",
       [](int32_t a, int32_t b) {
         return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b)) ^ a;
       }}};
  for (const Body& body : bodies) {
    std::mt19937 random(22);
    for (int round = 0; round < 80; ++round) {
      const Windows windows(random);
      const std::vector<int64_t> numbers = random_numbers(random, windows.indices);
      std::vector<int32_t> values(static_cast<size_t>(tensor::element_count(windows.operand)));
      std::vector<int32_t> updates(static_cast<size_t>(tensor::element_count(windows.slices)));
      for (int32_t& value : values) value = static_cast<int32_t>(random() % 1000);
      for (int32_t& update : updates) update = static_cast<int32_t>(random() % 1000);
      std::vector<int32_t> expected = values;
      // Windows one after another in row-major order of their tuples.
      int64_t at = 0;
      struct Step {
        int64_t tuple, target;
        int32_t update;
      };
      std::vector<Step> steps;
      for_each_index(windows.slices, [&](const Dims& index) {
        Dims start;
        Dims within;
        windows.locate(numbers, index, start, within);
        Dims to(windows.operand.size());
        bool is_inside = true;
        for (size_t d = 0; d < to.size(); ++d) {
          to[d] = within[d] + (windows.is_batching(d) ? 0 : start[d]);
          is_inside &= windows.is_batching(d) || (start[d] >= 0 && start[d] + windows.sizes[d] <= windows.operand[d]);
        }
        Dims tuple = index;
        for (const int64_t d : windows.offset) tuple[static_cast<size_t>(d)] = 0;
        const int32_t update = updates[static_cast<size_t>(at++)];
        if (is_inside) steps.push_back({position(windows.slices, tuple), position(windows.operand, to), update});
      });
      std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.tuple < b.tuple; });
      for (const Step& step : steps) {
        int32_t& target = expected[static_cast<size_t>(step.target)];
        target = body.combine(target, step.update);
      }
      const ParsedInstance scatter(windows.scatter_text("i32", body.text), "stablehlo.scatter");
      const std::vector<Array> operands = {i32(windows.operand, values), as_array(numbers, windows.indices),
                                           i32(windows.slices, updates)};
      ASSERT_EQ(scatter.instance.run(operands)[0].values<int32_t>(), expected)
          << windows.scatter_text("i32", body.text);
      ASSERT_EQ(scatter.instance.run(operands, Cut::kOneCall, true)[0].values<int32_t>(), expected) << "in place";
    }
  }
}

TEST(scatter, float_sums_of_single_elements) {
  const ParsedInstance scatter(R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<6x1xi32>, %arg2: tensor<6xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4xf32>, tensor<6x1xi32>, tensor<6xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
                               "stablehlo.scatter");
  const auto got =
      scatter.instance.run({counting({4}), i32({6, 1}, {1, 1, -1, 3, 4, 0}), f32({6}, {1, 2, 100, 4, 100, 0.5F})});
  EXPECT_EQ(got[0].values<float>(), (std::vector<float>{0.5F, 4, 2, 7}));
}

/// Large scatters of rows, which are split by target rows. Shapes with "B" are batches: operand B x R x W, indices
/// B x T x 1, updates B x T x W; without, operand R x W, indices T x 1, and updates T x W or, `turned`, W x T.
struct RowScatter {
  int64_t batch, rows, width, tuples;
  bool turned;

  [[nodiscard]] Dims operand() const { return batch == 0 ? Dims{rows, width} : Dims{batch, rows, width}; }
  [[nodiscard]] Dims indices() const { return batch == 0 ? Dims{tuples, 1} : Dims{batch, tuples, 1}; }
  [[nodiscard]] Dims updates() const {
    if (batch != 0) return {batch, tuples, width};
    return turned ? Dims{width, tuples} : Dims{tuples, width};
  }
  [[nodiscard]] std::string text(const std::string& body) const {
    const std::string numbers =
        batch == 0 ? "update_window_dims = [" + std::string(turned ? "0" : "1") +
                         "], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
                   : "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
                     "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2";
    const std::string array = tensor_text(operand(), "f32");
    return "module @jit_f {\n  func.func public @main(%arg0: " + array + ", %arg1: " + tensor_text(indices(), "i32") +
           ", %arg2: " + tensor_text(updates(), "f32") + ") -> " + array +
           " {\n    %0 = \"stablehlo.scatter\"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = "
           "#stablehlo.scatter<" +
           numbers + ">}> ({\n    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):\n" + body + "    }) : (" + array +
           ", " + tensor_text(indices(), "i32") + ", " + tensor_text(updates(), "f32") + ") -> " + array +
           "\n    return %0 : " + array + "\n  }\n}\n";
  }
};

TEST(scatter, large_scatters_of_rows_have_the_bits_of_updates_one_by_one) {
  struct FloatBody {
    std::string text;
    float (*combine)(float, float);
  };
  const std::vector<FloatBody> bodies = {
      {"      stablehlo.return %arg4 : tensor<f32>\n", [](float, float b) { return b; }},
      {"      %1 = stablehlo.add %arg3, %arg4 : tensor<f32>\n      stablehlo.return %1 : tensor<f32>\n",
       [](float a, float b) { return a + b; }},
      {"      %1 = stablehlo.multiply %arg3, %arg4 : tensor<f32>\n      %2 = stablehlo.subtract %1, %arg4 : "
       "tensor<f32>\n      stablehlo.return %2 : tensor<f32>\n",
       [](float a, float b) {
         const float product = a * b;
         return product - b;
       }}};
  const std::vector<RowScatter> shapes = {
      {0, 20, 64, 9000, false}, {0, 2000, 64, 9000, false}, {0, 1000, 17, 2100, false}, {0, 5000, 17, 2100, false},
      {0, 2, 33, 1100, false},  {0, 77, 16, 2050, true},    {5, 31, 19, 500, false}};
  std::mt19937 random(31);
  for (const RowScatter& shape : shapes) {
    for (const FloatBody& body : bodies) {
      const ParsedInstance scatter(shape.text(body.text), "stablehlo.scatter");
      const std::vector<float> values = special_floats(random, tensor::element_count(shape.operand()));
      const std::vector<float> updates = special_floats(random, tensor::element_count(shape.updates()));
      std::vector<int32_t> numbers(static_cast<size_t>(tensor::element_count(shape.indices())));
      for (int32_t& number : numbers)
        number = static_cast<int32_t>(random() % static_cast<uint32_t>(shape.rows + 4)) - 2;
      std::vector<float> expected = values;
      for (size_t tuple = 0; tuple < numbers.size(); ++tuple) {
        if (numbers[tuple] < 0 || numbers[tuple] >= shape.rows) continue;
        const auto in_batch = static_cast<int64_t>(tuple) / shape.tuples;
        for (int64_t i = 0; i < shape.width; ++i) {
          const int64_t from = shape.turned ? i * shape.tuples + static_cast<int64_t>(tuple)
                                            : static_cast<int64_t>(tuple) * shape.width + i;
          float& to = expected[static_cast<size_t>((in_batch * shape.rows + numbers[tuple]) * shape.width + i)];
          to = body.combine(to, updates[static_cast<size_t>(from)]);
        }
      }
      const std::vector<Array> operands = {f32(shape.operand(), values), i32(shape.indices(), numbers),
                                           f32(shape.updates(), updates)};
      const ops::PreparedKernel kernel =
          std::get<ops::LocalKernel>(scatter.instance.def->body)
              .prepare(scatter.instance.view(scatter.operand_types, scatter.instance.declared));
      // Rows that stay in the cache are not sorted where a loop combines them.
      const bool is_cached = tensor::element_count(shape.operand()) * 4 <= 256 * 1024;
      const bool is_sorted = !is_cached || shape.turned || &body == &bodies.back();
      EXPECT_EQ(kernel.barriers.size(), is_sorted ? 1U : 0U);
      EXPECT_EQ(kernel.work_count > 2, is_sorted);
      for (const auto& [cut, in_place] : {std::pair(Cut::kOneCall, false), std::pair(Cut::kOneCall, true),
                                          std::pair(Cut::kBackwards, false), std::pair(Cut::kBackwards, true)}) {
        const std::vector<float> got = scatter.instance.run(operands, cut, in_place)[0].values<float>();
        for (size_t i = 0; i < got.size(); ++i) {
          const bool is_same =
              std::isnan(expected[i]) ? std::isnan(got[i]) : std::memcmp(&got[i], &expected[i], sizeof(float)) == 0;
          ASSERT_TRUE(is_same) << shape.text(body.text) << "element " << i << " is " << got[i] << ", not "
                               << expected[i];
        }
      }
    }
  }
}

TEST(scatter, shards_of_cut_rows_take_their_own_updates) {
  const ParsedInstance scatter(R"(module @jit_f {
  func.func public @main(%arg0: tensor<10x3xf32>, %arg1: tensor<6x1xi32>, %arg2: tensor<6x3xf32>) -> tensor<10x3xf32> {
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<10x3xf32>, tensor<6x1xi32>, tensor<6x3xf32>) -> tensor<10x3xf32>
    return %0 : tensor<10x3xf32>
  }
}
)",
                               "stablehlo.scatter");
  const Array indices = i32({6, 1}, {9, 2, 3, -1, 2, 10});
  const Array updates = counting({6, 3});
  const std::vector<float> whole = scatter.instance.run({counting({10, 3}), indices, updates})[0].values<float>();
  const std::vector<ir::Type> local_types = {ir::Type::of({DType::kFloat32, {4, 3}}), scatter.operand_types[1],
                                             scatter.operand_types[2]};
  const std::vector<ir::Type> local_results = {local_types[0]};
  for (int64_t shard = 0; shard < 3; ++shard) {
    std::vector<float> part(12, 0);
    for (int64_t i = 0; i < 12; ++i) {
      if (shard * 4 + i / 3 < 10) part[static_cast<size_t>(i)] = static_cast<float>(shard * 12 + i);
    }
    Instance local = scatter.local(local_results);
    local.attributes =
        scatter.instance.def->localize(scatter.instance.view(scatter.operand_types, scatter.instance.declared),
                                       scatter.instance.view(local_types, local_results));
    const std::vector<float> got =
        local.run({f32({4, 3}, part), indices, updates}, Cut::kOneCall, false, {shard * 4, 0})[0].values<float>();
    for (int64_t i = 0; i < 12 && shard * 12 + i < 30; ++i) {
      EXPECT_EQ(got[static_cast<size_t>(i)], whole[static_cast<size_t>(shard * 12 + i)])
          << "shard " << shard << " element " << i;
    }
  }
}

TEST(scatter, a_cut_window_is_whole_in_every_shard) {
  // Rows of 6 cut into 2 and 2 and 2 columns: the shard's own start says nothing about where windows begin.
  const ParsedInstance scatter(R"(module @jit_f {
  func.func public @main(%arg0: tensor<5x6xf32>, %arg1: tensor<2x2xi32>, %arg2: tensor<2x6xf32>) -> tensor<5x6xf32> {
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      stablehlo.return %arg4 : tensor<f32>
    }) : (tensor<5x6xf32>, tensor<2x2xi32>, tensor<2x6xf32>) -> tensor<5x6xf32>
    return %0 : tensor<5x6xf32>
  }
}
)",
                               "stablehlo.scatter");
  const std::vector<ir::Type> local_types = {ir::Type::of({DType::kFloat32, {5, 2}}), scatter.operand_types[1],
                                             ir::Type::of({DType::kFloat32, {2, 2}})};
  const std::vector<ir::Type> local_results = {local_types[0]};
  Instance local = scatter.local(local_results);
  local.attributes =
      scatter.instance.def->localize(scatter.instance.view(scatter.operand_types, scatter.instance.declared),
                                     scatter.instance.view(local_types, local_results));
  // The second tuple begins at column 1, where a window of six columns does not fit.
  const auto got =
      local.run({f32({5, 2}, std::vector<float>(10, 0)), i32({2, 2}, {3, 0, 1, 1}), f32({2, 2}, {1, 2, 3, 4})},
                Cut::kOneCall, false, {0, 4});
  EXPECT_EQ(got[0].values<float>(), (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 2, 0, 0}));
}

/// A gather of rows and a reduction of them, as text: operand R x W, indices BATCH x 1.
std::string gathered_reduction_text(const Dims& table, const Dims& batch, const std::string& element,
                                    const std::string& op) {
  Dims indices = batch;
  indices.push_back(1);
  Dims rows = batch;
  rows.push_back(table[1]);
  std::vector<int64_t> reduced(batch.size());
  std::iota(reduced.begin(), reduced.end(), 0);
  const auto count = static_cast<int64_t>(batch.size());
  const std::string in = tensor_text(table, element);
  const std::string picks = tensor_text(indices, "i32");
  const std::string made = tensor_text(rows, element);
  const std::string out = tensor_text({table[1]}, element);
  return "module @jit_f {\n  func.func public @main(%arg0: " + in + ", %arg1: " + picks + ", %arg2: tensor<" + element +
         ">) -> " + out + " {\n    %0 = \"stablehlo.gather\"(%arg0, %arg1) <{dimension_numbers = " +
         "#stablehlo.gather<offset_dims = [" + std::to_string(count) +
         "], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = " + std::to_string(count) +
         ">, slice_sizes = array<i64: 1, " + std::to_string(table[1]) + ">}> : (" + in + ", " + picks + ") -> " + made +
         "\n    %1 = stablehlo.reduce(%0 init: %arg2) applies stablehlo." + op + " across dimensions = [" +
         list(reduced) + "] : (" + made + ", tensor<" + element + ">) -> " + out + "\n    return %1 : " + out +
         "\n  }\n}\n";
}

/// The result of the kernel that reads the rows where they are, a work item at a time from the last on.
template <typename T>
std::vector<T> reduced_where_they_are(const ParsedInstance& gather, const ParsedInstance& reduce,
                                      const std::vector<Array>& operands) {
  const std::optional<ops::PreparedKernel> kernel =
      gather.instance.def->fuse.reduced(gather.instance.view(gather.operand_types, gather.instance.declared),
                                        reduce.instance.view(reduce.operand_types, reduce.instance.declared));
  if (!kernel) return {};
  Array result = Array::zeros(reduce.instance.declared[0].tensor);
  const std::byte* const in[] = {operands[0].bytes.data(), operands[1].bytes.data(), operands[2].bytes.data()};
  std::byte* const out[] = {result.bytes.data()};
  for (int64_t work_item = kernel->work_count; work_item-- > 0;)
    kernel->run({.operands = in, .results = out, .begin = work_item, .end = work_item + 1});
  return result.template values<T>();
}

template <typename T>
void expect_same_bits_as_gather_and_reduce(const std::string& text, const std::vector<Array>& operands) {
  const ParsedInstance gather(text, "stablehlo.gather");
  const ParsedInstance reduce(text, "stablehlo.reduce");
  const Array rows = gather.instance.run({operands[0], operands[1]})[0];
  const std::vector<T> expected = reduce.instance.run({rows, operands[2]})[0].template values<T>();
  const std::vector<T> got = reduced_where_they_are<T>(gather, reduce, operands);
  ASSERT_EQ(got.size(), expected.size()) << text;
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)), 0) << text;
}

TEST(gather, reduction_of_rows_where_they_are_has_the_bits_of_gather_and_reduce) {
  std::mt19937 random(41);
  for (const Dims& batch : std::vector<Dims>{{1}, {7}, {9, 5}, {1031}, {3, 2, 300}}) {
    for (const int64_t width : {64, 67, 200, 5000}) {
      const int64_t rows = 13;
      const int64_t picks = tensor::element_count(batch);
      std::vector<int32_t> numbers(static_cast<size_t>(picks));
      for (int32_t& number : numbers) number = static_cast<int32_t>(random() % 17) - 2;
      Dims indices = batch;
      indices.push_back(1);
      const Array at = i32(indices, numbers);
      const std::vector<float> table = special_floats(random, rows * width);
      for (const char* op : {"add", "maximum"}) {
        expect_same_bits_as_gather_and_reduce<float>(gathered_reduction_text({rows, width}, batch, "f32", op),
                                                     {f32({rows, width}, table), at, f32({}, {0.5F})});
      }
      expect_same_bits_as_gather_and_reduce<double>(
          gathered_reduction_text({rows, width}, batch, "f64", "add"),
          {Array::of<double>(DType::kFloat64, {rows, width}, std::vector<double>(table.begin(), table.end())), at,
           Array::of<double>(DType::kFloat64, {}, {-0.0})});
    }
  }
}

TEST(gather, reductions_without_a_kernel_of_their_own_are_left_alone) {
  const auto has_kernel = [](const std::string& text) {
    const ParsedInstance gather(text, "stablehlo.gather");
    const ParsedInstance reduce(text, "stablehlo.reduce");
    return gather.instance.def->fuse
        .reduced(gather.instance.view(gather.operand_types, gather.instance.declared),
                 reduce.instance.view(reduce.operand_types, reduce.instance.declared))
        .has_value();
  };
  EXPECT_TRUE(has_kernel(gathered_reduction_text({10, 64}, {6}, "f32", "add")));
  EXPECT_FALSE(has_kernel(gathered_reduction_text({10, 63}, {6}, "f32", "add"))) << "short rows";
  EXPECT_FALSE(has_kernel(gathered_reduction_text({10, 64}, {6}, "f32", "subtract"))) << "no direct loop";
  EXPECT_FALSE(has_kernel(gathered_reduction_text({10, 64}, {6}, "bf16", "add"))) << "widened elements";
  // Rows are reduced, not picks.
  EXPECT_FALSE(has_kernel(R"(module @jit_f {
  func.func public @main(%arg0: tensor<80x64xf32>, %arg1: tensor<70x1xi32>, %arg2: tensor<f32>) -> tensor<70xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}> : (tensor<80x64xf32>, tensor<70x1xi32>) -> tensor<70x64xf32>
    %1 = stablehlo.reduce(%0 init: %arg2) applies stablehlo.add across dimensions = [1] : (tensor<70x64xf32>, tensor<f32>) -> tensor<70xf32>
    return %1 : tensor<70xf32>
  }
}
)"));
}

TEST(gather, messages_name_the_constraint) {
  const ParsedInstance gather(R"(module @jit_f {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<3x1xi32>) -> tensor<3x4xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
)",
                              "stablehlo.gather");
  const auto message = [&](Dims operand, Dims indices) -> std::string {
    try {
      (void)gather.instance.infer(
          {ir::Type::of({DType::kFloat32, std::move(operand)}), ir::Type::of({DType::kInt32, std::move(indices)})});
    } catch (const core::Error& error) {
      return error.detail();
    }
    return "no error";
  };
  EXPECT_EQ(message({8, 4}, {3, 2}),
            "gather C3: start_index_map must have a dim for each of the 2 numbers of a tuple, got [0]");
  EXPECT_EQ(message({8, 3}, {3, 1}), "gather C21: slice size of dim 1 must be between 0 and 3, got 4");
  EXPECT_EQ(
      message({8, 4, 2}, {3, 1}),
      "gather C1: rank of operand must be the number of window, collapsed_slice_dims and batching dims (2), got 3");
}

}  // namespace
}  // namespace meshd::test
