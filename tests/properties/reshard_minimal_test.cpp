// A reshard copies each element of the target once, in as few blocks as can be: one for each pair of shards that have
// something in common.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "service/compile/stages.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/transform/inline_calls.h"

namespace meshd::compile {
namespace {

constexpr int kRounds = 300;

struct Cut {
  std::string text;                        // [{"x"}, {}]
  std::vector<std::vector<int64_t>> axes;  // by dimension
};

struct Case {
  std::vector<int64_t> mesh, dims;
  Cut from, to;
  std::string program;
};

Cut random_cut(std::mt19937& random, size_t rank, size_t axis_count) {
  Cut out;
  out.axes.resize(rank);
  for (size_t a = 0; a < axis_count; ++a) {
    const size_t dim = random() % (rank + 1);
    if (dim < rank) out.axes[dim].push_back(static_cast<int64_t>(a));
  }
  out.text = "[";
  for (size_t d = 0; d < rank; ++d) {
    if (random() % 2) std::reverse(out.axes[d].begin(), out.axes[d].end());
    out.text += d ? ", {" : "{";
    for (size_t i = 0; i < out.axes[d].size(); ++i)
      out.text += (i ? ", \"a" : "\"a") + std::to_string(out.axes[d][i]) + "\"";
    out.text += "}";
  }
  out.text += "]";
  return out;
}

Case random_case(std::mt19937& random) {
  Case out;
  const size_t axes = 1 + random() % 3;
  const size_t rank = 1 + random() % 3;
  std::string mesh, type;
  for (size_t a = 0; a < axes; ++a) {
    out.mesh.push_back(static_cast<int64_t>(2 + random() % 3));
    mesh += (a ? ", \"a" : "\"a") + std::to_string(a) + "\"=" + std::to_string(out.mesh.back());
  }
  for (size_t d = 0; d < rank; ++d) {
    out.dims.push_back(static_cast<int64_t>(1 + random() % 13));
    type += std::to_string(out.dims.back()) + "x";
  }
  type = "tensor<" + type + "f32>";
  out.from = random_cut(random, rank, axes);
  out.to = random_cut(random, rank, axes);
  out.program = "sdy.mesh @mesh = <[" + mesh + "]>\nfunc.func @main(%arg0: " + type +
                " {sdy.sharding = #sdy.sharding<@mesh, " + out.from.text + ">}) -> (" + type +
                " {sdy.sharding = #sdy.sharding<@mesh, " + out.to.text + ">}) {\n  return %arg0 : " + type + "\n}\n";
  return out;
}

// Distinct blocks of a cut: {start, stop} by dimension, empty ones left out.
std::set<std::vector<std::pair<int64_t, int64_t>>> blocks_of(const Case& one, const Cut& cut) {
  std::set<std::vector<std::pair<int64_t, int64_t>>> out{{}};
  for (size_t d = 0; d < one.dims.size(); ++d) {
    int64_t parts = 1;
    for (const int64_t axis : cut.axes[d]) parts *= one.mesh[static_cast<size_t>(axis)];
    const int64_t size = (one.dims[d] + parts - 1) / parts;
    std::set<std::vector<std::pair<int64_t, int64_t>>> longer;
    for (const auto& before : out) {
      for (int64_t start = 0; start < one.dims[d]; start += size) {
        auto block = before;
        block.emplace_back(start, std::min(start + size, one.dims[d]));
        longer.insert(std::move(block));
      }
    }
    out = std::move(longer);
  }
  return out;
}

TEST(ReshardProperties, copies_are_one_block_for_each_pair_of_shards_that_meet) {
  std::mt19937 random(5);
  int checked = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Case one = random_case(random);
    ParsedProgram parsed;
    parsed.module = program::parse_stablehlo(one.program);
    parsed.flat = std::make_shared<const ir::Module>(program::inline_calls(*parsed.module));
    parsed.arguments = parsed.results = {0};
    LowerRequest request;
    request.device_count = parsed.module->meshes[0].mesh->position_count();
    const auto local = partition_for(propagate_for(parsed, request), request);
    const PlanRef plan = plan_for(local, request, 1);
    // The blocks that must be brought together, told from the two cuts alone.
    int64_t expected = 0;
    for (const auto& to : blocks_of(one, one.to)) {
      for (const auto& from : blocks_of(one, one.from)) {
        bool meet = true;
        for (size_t d = 0; d < to.size(); ++d)
          meet = meet && std::max(to[d].first, from[d].first) < std::min(to[d].second, from[d].second);
        expected += meet ? 1 : 0;
      }
    }
    for (const Step& step : plan->blocks[0].steps) {
      if (step.kind != StepKind::kCollective) continue;
      const Collective& collective = step.collective->get(*plan);
      int64_t copies = 0;
      for (const auto& sources : collective.sources) {
        std::set<std::pair<int32_t, tensor::Dims>> seen;
        for (const CollectiveSource& source : sources) {
          const CollectiveBlock& block = collective.blocks.at(static_cast<size_t>(source.block));
          EXPECT_TRUE(seen.emplace(source.shard, block.start).second) << one.program;
          for (const int64_t rows : block.extent) EXPECT_GT(rows, 0) << one.program;
        }
        copies += static_cast<int64_t>(sources.size());
      }
      EXPECT_EQ(copies, expected) << one.program;
      ++checked;
    }
  }
  EXPECT_GT(checked, kRounds / 4);
}

}  // namespace
}  // namespace meshd::compile
