// Factor rules of all rows against Shardy's, as the propagation cases list them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "service/core/error.h"
#include "service/ops/op_def.h"
#include "service/program/parse_stablehlo.h"

namespace meshd {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Rules of the ops of a function, by the line on which each begins.
class Rules {
 public:
  explicit Rules(const ir::Function& function) : function_(function) { visit(function.body); }
  [[nodiscard]] const std::map<int, std::string>& by_line() const { return by_line_; }

 private:
  void visit(const ir::Region& region) {
    for (const ir::Op& op : region.ops) {
      for (const ir::ValueId id : op.results) definitions_[id] = &op;
    }
    for (const ir::Op& op : region.ops) {
      std::vector<const ir::Op*> definitions;
      for (const ir::ValueId id : op.operands)
        definitions.push_back(definitions_.contains(id) ? definitions_.at(id) : nullptr);
      ops::OpInstance instance(function_, op);
      ops::OpView& view = instance.view;
      view.op = &op;
      view.definitions = definitions;
      if (const auto rule = ops::rule_of(ops::op(op.code), view))
        by_line_.emplace(op.location.line, sharding::to_sdy(*rule));
      for (const ir::Region& inner : op.regions) visit(inner);
    }
  }

  const ir::Function& function_;
  std::map<ir::ValueId, const ir::Op*> definitions_;
  std::map<int, std::string> by_line_;
};

/// Operands of a top-k along the searched dimension are pass-through to Shardy, because XLA merges partial answers;
/// here a shard alone cannot answer, so that the dimension is needed whole.
bool differs_on_purpose(const std::string& shardys) {
  return shardys.find("([i, j], [i, j], [], [])->([i, k], [i, k])") == 0;
}

class PropagationRules : public testing::TestWithParam<std::string> {};

TEST_P(PropagationRules, are_shardys) {
  int compared = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(MESHD_SOURCE_DIR) / "tests/conformance/propagation" / GetParam())) {
    if (entry.path().extension() != ".json") continue;
    fs::path text = entry.path();
    text.replace_extension(".mlir");
    const auto json = nlohmann::json::parse(text_of(entry.path()));
    if (!json.contains("functions")) continue;
    std::map<int, std::string> rules;
    const ir::ModuleRef module = program::parse_stablehlo(text_of(text));
    for (const ir::Function& function : module->functions) rules.merge(std::map(Rules(function).by_line()));
    for (const auto& function : json.at("functions")) {
      for (const auto& value : function.at("values")) {
        if (!value.contains("rule")) continue;
        const auto expected = value.at("rule").get<std::string>();
        if (differs_on_purpose(expected)) continue;
        ++compared;
        EXPECT_EQ(rules[value.at("line").get<int>()], expected)
            << entry.path().stem() << " line " << value.at("line") << " " << value.at("op");
      }
    }
  }
  EXPECT_GT(compared, 0);
}

std::vector<std::string> folders() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(MESHD_SOURCE_DIR) / "tests/conformance/propagation")) {
    // Those list no rules: programs and random modules by shardings alone, what is refused by its words.
    if (entry.path().filename() == "programs" || entry.path().filename() == "random" ||
        entry.path().filename() == "refused")
      continue;
    if (entry.is_directory()) out.push_back(entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Ops, PropagationRules, testing::ValuesIn(folders()),
                         [](const auto& folder) { return folder.param; });

}  // namespace
}  // namespace meshd
