// Collectives as pure functions: no threads, no devices, only inputs in group order.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "service/ops/kernel_interface.h"
#include "tests/unit/ops/support.h"

namespace meshd::ops {
namespace {

using test::dense;
using test::error_of;
using test::Instance;
using test::types;
using Groups = std::vector<std::vector<int64_t>>;

const OpDef& row(std::string_view name) { return *find_op(name); }

ir::Attribute channel(int64_t handle) {
  return test::attribute(ir::DictAttr{"stablehlo.channel_handle",
                                      {{"handle", test::attribute(ir::IntegerAttr{handle, "i64"})},
                                       {"type", test::attribute(ir::IntegerAttr{1, "i64"})}}});
}

ir::Attribute number(int64_t value) { return test::attribute(ir::IntegerAttr{value, "i64"}); }

/// Runs the op on every member of a group; `inputs` and the answer are [member][element].
template <typename T>
std::vector<std::vector<T>> run(const Instance& instance, std::string_view name,
                                const std::vector<std::vector<T>>& inputs) {
  const auto group_size = static_cast<int64_t>(inputs.size());
  const auto& body = std::get<GroupKernel>(row(name).body);
  const PreparedGroup group = body.prepare(instance.view(), group_size);
  std::vector<const std::byte*> first;
  for (const auto& input : inputs) first.push_back(reinterpret_cast<const std::byte*>(input.data()));
  std::vector<const std::byte* const*> members;
  for (const auto& pointer : first) members.push_back(&pointer);
  std::vector<std::vector<T>> outputs;
  for (int64_t member = 0; member < group_size; ++member) {
    std::vector<T> output(static_cast<size_t>(tensor::element_count(instance.results[0].tensor)));
    auto* result = reinterpret_cast<std::byte*>(output.data());
    group.run({.member_operands = members, .member = member, .results = &result});
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Instance with_groups(std::vector<ir::Type> operands, std::vector<ir::Type> results, const Groups& groups) {
  return {.operands = std::move(operands),
          .results = std::move(results),
          .attributes = {{"replica_groups", dense(groups)},
                         {"channel_handle", channel(1)},
                         {"use_global_device_ids", test::attribute(ir::Unit{})}}};
}

TEST(Collectives, all_gather_puts_members_behind_each_other) {
  Instance gather = with_groups(types({"2x1xi32"}), types({"2x3xi32"}), {{0, 1, 2}});
  gather.attributes.emplace_back("all_gather_dim", number(1));
  EXPECT_EQ(row("stablehlo.all_gather").infer(gather.view()), gather.results);
  const auto out = run<int32_t>(gather, "stablehlo.all_gather", {{1, 2}, {3, 4}, {5, 6}});
  for (const auto& member : out) EXPECT_EQ(member, (std::vector<int32_t>{1, 3, 5, 2, 4, 6}));
}

TEST(Collectives, all_gather_rule_needs_the_grown_dimension_whole) {
  Instance gather = with_groups(types({"4x16x32xf32"}), types({"8x16x32xf32"}), {{0, 1}});
  gather.attributes.emplace_back("all_gather_dim", number(0));
  EXPECT_EQ(sharding::to_sdy(*rule_of(row("stablehlo.all_gather"), gather.view())),
            "([k, i, j])->([l, i, j]) {i=16, j=32, k=4, l=8} need_replication={k, l}");
}

TEST(Collectives, all_reduce_sums_left_to_right) {
  Instance reduce = with_groups(types({"3xf32"}), types({"3xf32"}), {{0, 1, 2}});
  reduce.regions.push_back(test::binary_region(reduce.function, "stablehlo.add", test::type("f32")));
  EXPECT_EQ(row("stablehlo.all_reduce").infer(reduce.view()), reduce.results);
  // 1e8 + 1 - 1e8 is 0 from left to right in float32 and 1 in any order that cancels first.
  const auto out = run<float>(reduce, "stablehlo.all_reduce", {{1e8F, 1, 2}, {1, 10, 20}, {-1e8F, 100, 200}});
  for (const auto& member : out) EXPECT_EQ(member, (std::vector<float>{0, 111, 222}));
}

TEST(Collectives, all_reduce_of_many_elements_takes_any_reducer) {
  // max(a, b) + 0: no single operation, so that the general path runs; more elements than a tile has lanes.
  Instance reduce = with_groups(types({"5000xi32"}), types({"5000xi32"}), {{0, 1}});
  ir::Region region;
  const ir::Type scalar = test::type("i32");
  region.arguments = {reduce.function.add_value(scalar, "%a"), reduce.function.add_value(scalar, "%b")};
  const auto larger = test::append(reduce.function, region, "stablehlo.maximum", region.arguments, {scalar});
  const auto seven = test::append(reduce.function, region, "stablehlo.constant", {}, {scalar},
                                  {{"value", test::scalar(tensor::DType::kInt32, int32_t{7})}});
  const auto sum = test::append(reduce.function, region, "stablehlo.add", {larger, seven}, {scalar});
  test::append(reduce.function, region, "stablehlo.return", {sum}, {});
  reduce.regions.push_back(std::move(region));
  std::vector<int32_t> up(5000);
  std::iota(up.begin(), up.end(), 0);
  const std::vector<int32_t> down(up.rbegin(), up.rend());
  const auto out = run<int32_t>(reduce, "stablehlo.all_reduce", {up, down});
  for (size_t i = 0; i < up.size(); ++i) ASSERT_EQ(out[0][i], std::max(up[i], down[i]) + 7) << i;
}

TEST(Collectives, reduce_scatter_gives_each_member_its_block) {
  Instance scatter = with_groups(types({"2x4xi32"}), types({"2x2xi32"}), {{0, 1}});
  scatter.attributes.emplace_back("scatter_dimension", number(1));
  scatter.regions.push_back(test::binary_region(scatter.function, "stablehlo.add", test::type("i32")));
  EXPECT_EQ(row("stablehlo.reduce_scatter").infer(scatter.view()), scatter.results);
  const auto out =
      run<int32_t>(scatter, "stablehlo.reduce_scatter", {{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40, 50, 60, 70, 80}});
  EXPECT_EQ(out[0], (std::vector<int32_t>{11, 22, 55, 66}));
  EXPECT_EQ(out[1], (std::vector<int32_t>{33, 44, 77, 88}));
}

TEST(Collectives, all_to_all_swaps_blocks) {
  Instance swap = with_groups(types({"1x4xi32"}), types({"2x2xi32"}), {{0, 1}});
  swap.attributes.emplace_back("split_dimension", number(1));
  swap.attributes.emplace_back("concat_dimension", number(0));
  swap.attributes.emplace_back("split_count", number(2));
  EXPECT_EQ(row("stablehlo.all_to_all").infer(swap.view()), swap.results);
  const auto out = run<int32_t>(swap, "stablehlo.all_to_all", {{1, 2, 3, 4}, {5, 6, 7, 8}});
  EXPECT_EQ(out[0], (std::vector<int32_t>{1, 2, 5, 6}));
  EXPECT_EQ(out[1], (std::vector<int32_t>{3, 4, 7, 8}));
}

TEST(Collectives, all_to_all_along_one_dimension_transposes_blocks) {
  Instance swap = with_groups(types({"4xi32"}), types({"4xi32"}), {{0, 1}});
  swap.attributes.emplace_back("split_dimension", number(0));
  swap.attributes.emplace_back("concat_dimension", number(0));
  swap.attributes.emplace_back("split_count", number(2));
  const auto out = run<int32_t>(swap, "stablehlo.all_to_all", {{1, 2, 3, 4}, {5, 6, 7, 8}});
  EXPECT_EQ(out[0], (std::vector<int32_t>{1, 2, 5, 6}));
  EXPECT_EQ(out[1], (std::vector<int32_t>{3, 4, 7, 8}));
  swap.attributes[5].value = number(4);
  EXPECT_NE(error_of([&] { row("stablehlo.all_to_all").infer(swap.view()); }).find("all_to_all C8"), std::string::npos);
}

TEST(Collectives, permute_copies_from_the_source) {
  Instance permute{.operands = types({"2xi32"}), .results = types({"2xi32"})};
  permute.attributes = {{"source_target_pairs", dense({{0, 1}, {1, 2}})}};
  const auto& body = std::get<GroupKernel>(row("stablehlo.collective_permute").body);
  EXPECT_TRUE(body.is_permutation);
  EXPECT_EQ(body.groups(permute.view(), 4), (Groups{{0, 1}, {1, 2}}));
  EXPECT_EQ(run<int32_t>(permute, "stablehlo.collective_permute", {{1, 2}, {3, 4}})[1], (std::vector<int32_t>{1, 2}));
  EXPECT_NE(error_of([&] { body.groups(permute.view(), 2); }).find("collective_permute C4"), std::string::npos);
  permute.attributes = {{"source_target_pairs", dense({{0, 1}, {2, 1}})}};
  EXPECT_NE(error_of([&] { row("stablehlo.collective_permute").infer(permute.view()); }).find("collective_permute C3"),
            std::string::npos);
}

TEST(Collectives, broadcast_takes_the_first_members_operand) {
  const Instance broadcast = with_groups(types({"2xi32"}), types({"2xi32"}), {{1, 0}});
  const auto out = run<int32_t>(broadcast, "stablehlo.collective_broadcast", {{1, 2}, {3, 4}});
  EXPECT_EQ(out[0], (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(out[1], (std::vector<int32_t>{1, 2}));
}

/// Only the mesh says how large groups of replica ids and empty ones are; groups of a list may differ.
TEST(Collectives, results_that_groups_of_this_size_do_not_give_are_refused) {
  const auto refused = [](const char* name, const char* result, std::vector<const char*> dims, int64_t group_size) {
    Instance call = with_groups(types({"4xi32"}), types({result}), {});
    for (const char* dim : dims) call.attributes.emplace_back(dim, number(0));
    call.attributes.emplace_back("split_count", number(2));
    const std::string op = std::string("stablehlo.") + name;
    if (std::string_view(name) == "reduce_scatter")
      call.regions.push_back(test::binary_region(call.function, "stablehlo.add", test::type("i32")));
    EXPECT_EQ(row(op).infer(call.view()), call.results) << name;
    return !error_of([&] { std::get<GroupKernel>(row(op).body).prepare(call.view(), group_size); }).empty();
  };
  EXPECT_FALSE(refused("all_gather", "8xi32", {"all_gather_dim"}, 2));
  EXPECT_TRUE(refused("all_gather", "8xi32", {"all_gather_dim"}, 3));
  EXPECT_TRUE(refused("all_gather", "8xi32", {"all_gather_dim"}, 1));
  EXPECT_FALSE(refused("reduce_scatter", "2xi32", {"scatter_dimension"}, 2));
  EXPECT_TRUE(refused("reduce_scatter", "2xi32", {"scatter_dimension"}, 1));
  EXPECT_TRUE(refused("reduce_scatter", "2xi32", {"scatter_dimension"}, 3));
  EXPECT_FALSE(refused("all_to_all", "4xi32", {"split_dimension", "concat_dimension"}, 2));
  EXPECT_TRUE(refused("all_to_all", "4xi32", {"split_dimension", "concat_dimension"}, 3));
}

Groups groups_of(const Groups& written, int64_t channel_handle, bool global, int64_t positions) {
  Instance reduce{.operands = types({"f32"}), .results = types({"f32"})};
  reduce.attributes = {{"replica_groups", dense(written)}};
  if (channel_handle > 0) reduce.attributes.emplace_back("channel_handle", channel(channel_handle));
  if (global) reduce.attributes.emplace_back("use_global_device_ids", test::attribute(ir::Unit{}));
  return std::get<GroupKernel>(row("stablehlo.all_reduce").body).groups(reduce.view(), positions);
}

TEST(CollectiveGroups, padding_is_dropped) {
  EXPECT_EQ(groups_of({{0, 2, 3}, {1, -1, -1}}, 1, true, 4), (Groups{{0, 2, 3}, {1}}));
}

TEST(CollectiveGroups, no_groups_are_all_devices) { EXPECT_EQ(groups_of({}, 1, true, 3), (Groups{{0, 1, 2}})); }

TEST(CollectiveGroups, one_replica_means_all_partitions_or_each_alone) {
  EXPECT_EQ(groups_of({{0}}, 1, false, 3), (Groups{{0, 1, 2}}));
  EXPECT_EQ(groups_of({{0}}, 0, false, 3), (Groups{{0}, {1}, {2}}));
}

TEST(CollectiveGroups, ids_are_checked) {
  EXPECT_NE(error_of([&] {
              groups_of({{0, 1}, {2, 4}}, 1, true, 4);
            }).find("all_reduce C3: ids in replica_groups must be devices below 4, got 4"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              groups_of({{0, 1}, {1, 2}}, 1, true, 4);
            }).find("all_reduce C1: ids in replica_groups must be distinct, got 1 twice"),
            std::string::npos);
  EXPECT_NE(error_of([&] { groups_of({{0, 1}}, 1, true, 4); }).find("all_reduce C2"), std::string::npos);
  EXPECT_NE(error_of([&] { groups_of({{0, 1}}, 0, true, 2); }).find("all_reduce C4"), std::string::npos);
}

}  // namespace
}  // namespace meshd::ops
