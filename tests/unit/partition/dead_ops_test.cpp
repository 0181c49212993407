// Which ops of a local program stay: those whose results are read, in their block or in one within, and effects.
#include "service/partition/dead_ops.h"

#include <gtest/gtest.h>

#include <utility>

#include "service/partition/local_walk.h"
#include "service/program/limits.h"

namespace meshd::partition {
namespace {

LocalOp op(std::string name, std::vector<LocalId> operands, std::vector<LocalId> results) {
  LocalOp out;
  out.name = std::move(name);
  out.operands = std::move(operands);
  out.results = std::move(results);
  return out;
}

LocalOp effect(std::string name, bool has_side_effect) {
  LocalOp out = op(std::move(name), {}, {});
  out.kind = LocalKind::kEffect;
  out.effect.has_side_effect = has_side_effect;
  return out;
}

LocalOp choice(std::string name, std::vector<LocalId> results, LocalBlock branch) {
  LocalOp out = op(std::move(name), {}, std::move(results));
  out.kind = LocalKind::kCase;
  out.blocks.push_back(std::move(branch));
  return out;
}

std::vector<std::string> names_left(std::vector<LocalOp> ops, std::vector<LocalId> results) {
  LocalProgram program;
  program.values.resize(8);
  program.body.ops = std::move(ops);
  program.body.results = std::move(results);
  drop_dead_ops(program);
  std::vector<std::string> out;
  walk(program.body, [&](const LocalOp& each) { out.push_back(each.name); });
  return out;
}

using Names = std::vector<std::string>;

TEST(DeadOps, what_only_a_dead_op_reads_is_dead) {
  EXPECT_EQ(names_left({op("a", {}, {0}), op("b", {}, {1}), op("c", {1}, {2}), op("d", {0}, {3})}, {3}),
            (Names{"a", "d"}));
}

TEST(DeadOps, blocks_keep_what_they_read_around_them_and_lose_their_own_dead_ops) {
  EXPECT_EQ(
      names_left({op("outer", {}, {0}), choice("case", {2}, {{}, {op("inner", {0}, {1}), op("lost", {0}, {3})}, {1}})},
                 {2}),
      (Names{"outer", "case", "inner"}));
  EXPECT_EQ(names_left({op("outer", {}, {0}), choice("case", {2}, {{}, {op("inner", {0}, {1})}, {1}})}, {}), Names{});
}

TEST(DeadOps, side_effects_stay_with_the_ops_around_them) {
  EXPECT_EQ(names_left({effect("log", true), effect("pure", false)}, {}), Names{"log"});
  EXPECT_EQ(names_left({choice("case", {0}, {{}, {effect("log", true), op("lost", {}, {1})}, {}})}, {}),
            (Names{"case", "log"}));
}

TEST(DeadOps, blocks_as_deep_as_a_text_may_nest_them_are_read_a_few_times) {
  LocalOp nest = choice("case", {0}, {{}, {op("inner", {}, {0})}, {0}});
  for (int depth = 1; depth < program::kMaxRegionDepth; ++depth)
    nest = choice("case", {0}, {{}, {std::move(nest)}, {0}});
  std::vector<LocalOp> ops;
  ops.push_back(std::move(nest));
  EXPECT_EQ(names_left(std::move(ops), {0}).size(), static_cast<size_t>(program::kMaxRegionDepth) + 1);
}

}  // namespace
}  // namespace meshd::partition
