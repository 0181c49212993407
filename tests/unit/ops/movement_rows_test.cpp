// Rows of the movement family against their definitions, element by element, on random shapes.
#include <gtest/gtest.h>

#include <random>

#include "service/core/error.h"
#include "tests/support/row_runner.h"

namespace meshd::test {
namespace {

using tensor::Dims;
using Cut = Instance::Cut;

Instance movement(const std::string& name, ir::AttributeList attributes) {
  return {.def = ops::find_op("stablehlo." + name), .attributes = std::move(attributes)};
}
ir::Type f32_type(Dims dims) { return ir::Type::of({tensor::DType::kFloat32, std::move(dims)}); }

std::string message_of(const Instance& instance, const std::vector<ir::Type>& operands) {
  try {
    (void)instance.infer(operands);
  } catch (const core::Error& error) {
    return error.detail();
  }
  return "no error";
}

/// Checks result[index] == expected(index) for all indices, however the work is cut.
template <typename Expected>
void expect_elements(const Instance& instance, const std::vector<Array>& operands, Expected&& expected) {
  for (const Cut cut : {Cut::kOneCall, Cut::kBackwards}) {
    const Array result = instance.run(operands, cut)[0];
    const std::vector<float> values = result.values<float>();
    int64_t at = 0;
    for_each_index(result.type.dims, [&](const Dims& index) {
      ASSERT_EQ(values[static_cast<size_t>(at)], expected(index)) << tensor::to_string(index);
      ++at;
    });
  }
}

Dims random_dims(std::mt19937& random, size_t rank, int64_t most) {
  Dims dims(rank);
  for (int64_t& dim : dims)
    dim = static_cast<int64_t>(random() % static_cast<uint32_t>(most)) + (random() % 10 != 0 ? 1 : 0);
  return dims;
}

TEST(transpose, random_permutations_match_the_definition) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const Dims dims = random_dims(random, random() % 5, 9);
    std::vector<int64_t> permutation(dims.size());
    for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<int64_t>(i);
    std::shuffle(permutation.begin(), permutation.end(), random);
    const Array operand = counting(dims);
    expect_elements(movement("transpose", {{"permutation", ints_attribute(permutation)}}), {operand},
                    [&](const Dims& index) {
                      Dims from(dims.size());
                      for (size_t d = 0; d < dims.size(); ++d) from[static_cast<size_t>(permutation[d])] = index[d];
                      return static_cast<float>(position(dims, from));
                    });
  }
}

TEST(transpose, large_one_is_right_in_pieces) {
  const Dims dims = {700, 900};
  expect_elements(movement("transpose", {{"permutation", ints_attribute({1, 0})}}), {counting(dims)},
                  [&](const Dims& index) { return static_cast<float>(index[1] * 900 + index[0]); });
}

TEST(slice, random_bounds_match_the_definition) {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    const Dims dims = random_dims(random, random() % 4, 12);
    std::vector<int64_t> starts;
    std::vector<int64_t> limits;
    std::vector<int64_t> strides;
    for (const int64_t size : dims) {
      starts.push_back(static_cast<int64_t>(random() % static_cast<uint32_t>(size + 1)));
      limits.push_back(starts.back() +
                       static_cast<int64_t>(random() % static_cast<uint32_t>(size - starts.back() + 1)));
      strides.push_back(static_cast<int64_t>(random() % 3) + 1);
    }
    const Instance slice = movement("slice", {{"start_indices", ints_attribute(starts)},
                                              {"limit_indices", ints_attribute(limits)},
                                              {"strides", ints_attribute(strides)}});
    expect_elements(slice, {counting(dims)}, [&](const Dims& index) {
      Dims from(dims.size());
      for (size_t d = 0; d < dims.size(); ++d) from[d] = starts[d] + index[d] * strides[d];
      return static_cast<float>(position(dims, from));
    });
  }
}

TEST(pad, random_padding_matches_the_definition) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const Dims dims = random_dims(random, random() % 4, 7);
    std::vector<int64_t> low;
    std::vector<int64_t> high;
    std::vector<int64_t> interior;
    for (const int64_t size : dims) {
      interior.push_back(static_cast<int64_t>(random() % 3));
      const int64_t spread = size + std::max<int64_t>(size - 1, 0) * interior.back();
      low.push_back(static_cast<int64_t>(random() % 8) - 3);
      high.push_back(static_cast<int64_t>(random() % 8) - 3);
      if (spread + low.back() + high.back() < 0) high.back() = -spread - low.back();
    }
    const Instance pad = movement("pad", {{"edge_padding_low", ints_attribute(low)},
                                          {"edge_padding_high", ints_attribute(high)},
                                          {"interior_padding", ints_attribute(interior)}});
    expect_elements(pad, {counting(dims), f32({}, {-1})}, [&](const Dims& index) {
      Dims from(dims.size());
      for (size_t d = 0; d < dims.size(); ++d) {
        const int64_t place = index[d] - low[d];
        if (place < 0 || place % (interior[d] + 1) != 0 || place / (interior[d] + 1) >= dims[d]) return -1.0F;
        from[d] = place / (interior[d] + 1);
      }
      return static_cast<float>(position(dims, from));
    });
  }
}

TEST(pad, wide_rows_are_right_in_pieces) {
  const Instance pad = movement("pad", {{"edge_padding_low", ints_attribute({2, 5})},
                                        {"edge_padding_high", ints_attribute({3, -7})},
                                        {"interior_padding", ints_attribute({1, 0})}});
  expect_elements(pad, {counting({300, 1000}), f32({}, {-1})}, [&](const Dims& index) {
    if (index[0] < 2 || (index[0] - 2) % 2 != 0 || (index[0] - 2) / 2 >= 300 || index[1] < 5) return -1.0F;
    return static_cast<float>((index[0] - 2) / 2 * 1000 + index[1] - 5);
  });
}

TEST(reverse, random_dimensions_match_the_definition) {
  std::mt19937 random(4);
  for (int round = 0; round < 40; ++round) {
    const Dims dims = random_dims(random, random() % 4, 9);
    std::vector<int64_t> reversed;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (random() % 2 == 0) reversed.push_back(static_cast<int64_t>(d));
    }
    expect_elements(movement("reverse", {{"dimensions", ints_attribute(reversed)}}), {counting(dims)},
                    [&](const Dims& index) {
                      Dims from = index;
                      for (const int64_t d : reversed)
                        from[static_cast<size_t>(d)] = dims[static_cast<size_t>(d)] - 1 - index[static_cast<size_t>(d)];
                      return static_cast<float>(position(dims, from));
                    });
  }
}

TEST(concatenate, random_parts_match_the_definition) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const Dims dims = random_dims(random, random() % 3 + 1, 6);
    const size_t dim = random() % dims.size();
    std::vector<Array> parts;
    std::vector<std::pair<size_t, int64_t>> owner;  // part and index within it, for each index along dim
    for (size_t part = 0; part < random() % 4 + 1; ++part) {
      Dims own = dims;
      own[dim] = static_cast<int64_t>(random() % 5);
      parts.push_back(counting(own));
      for (int64_t i = 0; i < own[dim]; ++i) owner.emplace_back(part, i);
    }
    expect_elements(movement("concatenate", {{"dimension", int_attribute(static_cast<int64_t>(dim))}}), parts,
                    [&](const Dims& index) {
                      const auto [part, at] = owner[static_cast<size_t>(index[dim])];
                      Dims from = index;
                      from[dim] = at;
                      return static_cast<float>(position(parts[part].type.dims, from));
                    });
  }
}

TEST(broadcast_in_dim, repeats_along_new_and_one_sized_dims) {
  Instance broadcast = movement("broadcast_in_dim", {{"broadcast_dimensions", ints_attribute({2, 0})}});
  broadcast.declared = {f32_type({3, 5, 4})};
  expect_elements(broadcast, {counting({4, 3})},
                  [](const Dims& index) { return static_cast<float>(index[2] * 3 + index[0]); });
  broadcast.declared = {f32_type({3, 5, 4})};
  expect_elements(broadcast, {counting({1, 3})}, [](const Dims& index) { return static_cast<float>(index[0]); });
}

TEST(reshape, keeps_the_order_and_may_be_in_place) {
  Instance reshape = movement("reshape", {});
  reshape.declared = {f32_type({6, 4})};
  const Array operand = counting({2, 3, 4});
  EXPECT_EQ(reshape.run({operand})[0].bytes, operand.bytes);
  EXPECT_EQ(reshape.run({operand}, Cut::kOneCall, true)[0].bytes, operand.bytes);
}

TEST(dynamic_slice, starts_are_clamped) {
  const Instance slice = movement("dynamic_slice", {{"slice_sizes", ints_attribute({2, 3})}});
  for (const auto& [row, column] :
       std::vector<std::pair<int32_t, int32_t>>{{0, 0}, {1, 1}, {-5, 9}, {100, -1}, {3, 2}}) {
    const int64_t r = std::clamp<int64_t>(row, 0, 3);
    const int64_t c = std::clamp<int64_t>(column, 0, 2);
    expect_elements(slice, {counting({5, 5}), i32({}, {row}), i32({}, {column})},
                    [&](const Dims& index) { return static_cast<float>((r + index[0]) * 5 + c + index[1]); });
  }
}

TEST(dynamic_slice, unsigned_start_beyond_int64_is_clamped) {
  const Instance slice = movement("dynamic_slice", {{"slice_sizes", ints_attribute({2})}});
  const Array start = Array::of<uint64_t>(tensor::DType::kUint64, {}, {UINT64_MAX});
  expect_elements(slice, {counting({5}), start}, [](const Dims& index) { return static_cast<float>(3 + index[0]); });
}

TEST(dynamic_update_slice, replaces_a_clamped_window_in_place_or_not) {
  const Instance update = movement("dynamic_update_slice", {});
  for (const int64_t rows : {5, 3000}) {
    for (const auto& [row, column] : std::vector<std::pair<int32_t, int32_t>>{{1, 1}, {-5, 9}, {100000, -1}}) {
      const Array operand = counting({rows, 50});
      std::vector<float> values(3 * 20);
      for (size_t i = 0; i < values.size(); ++i) values[i] = -1.0F - static_cast<float>(i);
      const std::vector<Array> operands = {operand, f32({3, 20}, values), i32({}, {row}), i32({}, {column})};
      const int64_t r = std::clamp<int64_t>(row, 0, rows - 3);
      const int64_t c = std::clamp<int64_t>(column, 0, 30);
      const auto expected = [&](const Dims& index) {
        const int64_t i = index[0] - r;
        const int64_t j = index[1] - c;
        if (i < 0 || i >= 3 || j < 0 || j >= 20) return static_cast<float>(index[0] * 50 + index[1]);
        return -1.0F - static_cast<float>(i * 20 + j);
      };
      expect_elements(update, operands, expected);
      for (const Cut cut : {Cut::kOneCall, Cut::kBackwards}) {
        EXPECT_EQ(update.run(operands, cut, true)[0].bytes, update.run(operands)[0].bytes);
      }
    }
  }
}

TEST(dynamic_update_slice, shards_of_a_cut_operand_make_up_the_whole) {
  // 10x6 updated by 4x6 at a computed row, cut into shards of 3 rows (the last one padded) and 3 columns.
  const Instance update = movement("dynamic_update_slice", {});
  std::vector<float> values(4 * 6);
  for (size_t i = 0; i < values.size(); ++i) values[i] = -1.0F - static_cast<float>(i);
  for (const int32_t row : {-3, 0, 1, 2, 5, 6, 99}) {
    const std::vector<Array> operands = {counting({10, 6}), f32({4, 6}, values), i32({}, {row}), i32({}, {7})};
    const std::vector<float> whole = update.run(operands)[0].values<float>();
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t c = 0; c < 2; ++c) {
        std::vector<float> part(9, 0);
        std::vector<float> update_part;
        for (int64_t i = 0; i < 9; ++i) {
          if (r * 3 + i / 3 < 10)
            part[static_cast<size_t>(i)] = static_cast<float>((r * 3 + i / 3) * 6 + c * 3 + i % 3);
        }
        for (int64_t i = 0; i < 12; ++i) update_part.push_back(values[static_cast<size_t>(i / 3 * 6 + c * 3 + i % 3)]);
        Instance local = update;
        const std::vector<ir::Type> global_types = {f32_type({10, 6}), f32_type({4, 6})};
        const std::vector<ir::Type> local_types = {f32_type({3, 3}), f32_type({4, 3})};
        local.attributes = update.def->localize(update.view(global_types, {}), update.view(local_types, {}));
        local.skip_infer = true;
        local.declared = {f32_type({3, 3})};
        const std::vector<float> got = local
                                           .run({f32({3, 3}, part), f32({4, 3}, update_part), operands[2], operands[3]},
                                                Cut::kOneCall, false, {r * 3, c * 3})[0]
                                           .values<float>();
        for (int64_t i = 0; i < 9; ++i) {
          if (r * 3 + i / 3 >= 10) continue;
          EXPECT_EQ(got[static_cast<size_t>(i)], whole[static_cast<size_t>((r * 3 + i / 3) * 6 + c * 3 + i % 3)])
              << row << " " << r;
        }
      }
    }
  }
}

TEST(iota, counts_along_its_dimension_from_the_shard_on) {
  Instance iota = movement("iota", {{"iota_dimension", int_attribute(1)}});
  iota.declared = {f32_type({3, 700, 50})};
  for (const Cut cut : {Cut::kOneCall, Cut::kBackwards}) {
    const std::vector<float> values = iota.run({}, cut, false, {5, 70, 9})[0].values<float>();
    int64_t at = 0;
    for_each_index({3, 700, 50}, [&](const Dims& index) {
      ASSERT_EQ(values[static_cast<size_t>(at++)], static_cast<float>(index[1] + 70)) << tensor::to_string(index);
    });
  }
}

TEST(movement, messages_name_the_constraint) {
  EXPECT_EQ(message_of(movement("transpose", {{"permutation", ints_attribute({0, 0})}}), {f32_type({2, 3})}),
            "transpose C2: permutation must be distinct, got 0 twice");
  EXPECT_EQ(message_of(movement("slice", {{"start_indices", ints_attribute({1})},
                                          {"limit_indices", ints_attribute({9})},
                                          {"strides", ints_attribute({1})}}),
                       {f32_type({8})}),
            "slice C3: dim 0 must have 0 <= start <= limit <= 8, got [1:9]");
  EXPECT_EQ(
      message_of(movement("concatenate", {{"dimension", int_attribute(1)}}), {f32_type({2, 3}), f32_type({3, 3})}),
      "concatenate C2: shapes may differ in dim 1 only (operand 0 is tensor<2x3xf32>, operand 1 is tensor<3x3xf32>)");
  Instance reshape = movement("reshape", {});
  reshape.declared = {f32_type({5})};
  EXPECT_EQ(message_of(reshape, {f32_type({2, 3})}),
            "reshape C2: element counts differ (operand tensor<2x3xf32> has 6, result tensor<5xf32> has 5)");
}

TEST(movement, slice_localizes_cut_dims) {
  const Instance slice = movement("slice", {{"start_indices", ints_attribute({0, 2})},
                                            {"limit_indices", ints_attribute({8, 6})},
                                            {"strides", ints_attribute({1, 1})}});
  const std::vector<ir::Type> global = {f32_type({8, 8})};
  const std::vector<ir::Type> local = {f32_type({2, 8})};
  const std::vector<ir::Type> global_result = {f32_type({8, 4})};
  const std::vector<ir::Type> local_result = {f32_type({2, 4})};
  const ir::AttributeList attributes =
      slice.def->localize(slice.view(global, global_result), slice.view(local, local_result));
  EXPECT_EQ(ir::ints(attributes, "limit_indices"), (std::vector<int64_t>{2, 6}));
}

}  // namespace
}  // namespace meshd::test
