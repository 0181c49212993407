#include "tests/properties/propagation_cases.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "service/core/error.h"
#include "service/ops/op_def.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/transform/inline_calls.h"
#include "service/propagation/export/report.h"
#include "service/propagation/propagate.h"

namespace meshd::propagation {
namespace {

using nlohmann::json;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Mesh, dimensions and unreduced axes; empty where nothing is cut.
std::string canonical(const std::string& sharding) {
  if (sharding.find('"') == std::string::npos) return "";
  std::string out = sharding;
  if (const size_t at = out.find(", replicated="); at != std::string::npos) {
    out.erase(at, out.find('}', at) + 1 - at);
  }
  for (const char* open : {", ?", "?"}) {
    for (size_t at; (at = out.find(open)) != std::string::npos;) out.erase(at, std::string(open).size());
  }
  const bool cut = out.find('"') != std::string::npos;
  return cut ? out : "";
}

std::string canonical(const json& sharding) { return sharding.is_null() ? "" : canonical(sharding.get<std::string>()); }
std::string canonical(const MaybeSharding& sharding) { return sharding ? canonical(sharding::to_sdy(*sharding)) : ""; }

std::vector<std::string> all(const json& shardings) {
  std::vector<std::string> out;
  for (const json& each : shardings) out.push_back(canonical(each));
  return out;
}

std::vector<std::string> all(const std::vector<MaybeSharding>& shardings) {
  std::vector<std::string> out;
  for (const MaybeSharding& each : shardings) out.push_back(canonical(each));
  return out;
}

std::string shown(const std::vector<std::string>& shardings) {
  std::string out;
  for (const std::string& each : shardings) out += (out.empty() ? "" : " ; ") + (each.empty() ? "null" : each);
  return out;
}

std::string shown(const std::set<std::vector<std::string>>& copies) {
  std::string out;
  for (const auto& each : copies) out += (out.empty() ? "" : " / ") + shown(each);
  return out;
}

std::string differing_ends(const json& want, const FunctionReport& have) {
  for (const char* part : {"arguments", "results"}) {
    const std::vector<MaybeSharding>& got = std::string(part) == "arguments" ? have.arguments : have.results;
    if (got.size() != want[part].size()) return std::to_string(got.size()) + " " + part;
    const json unrounded = want.value("before_rounding", json::object()).value(part, json::object());
    for (size_t i = 0; i < got.size(); ++i) {
      const json expected = unrounded.value(std::to_string(i), want[part][i]);
      if (canonical(got[i]) == canonical(expected)) continue;
      return std::string(part) + " " + std::to_string(i) + " is " + canonical(got[i]) + ", expected " +
             canonical(expected);
    }
  }
  return "";
}

std::string differing_value(const json& want, const FunctionReport& have) {
  const auto found = std::find_if(have.values.begin(), have.values.end(),
                                  [&](const ValueReport& value) { return value.line == want["line"].get<int32_t>(); });
  const std::string where =
      "line " + std::to_string(want["line"].get<int>()) + " (" + want["op"].get<std::string>() + ") ";
  if (found == have.values.end()) return where + "is missing";
  std::set<std::vector<std::string>> got;
  for (const CopyReport& copy : found->copies) got.insert(all(copy.shardings));
  std::set<std::vector<std::string>> expected;
  if (want.contains("copies")) {
    for (const json& copy : want["copies"]) expected.insert(all(copy["shardings"]));
  } else {
    expected.insert(all(want["shardings"]));
  }
  if (got != expected) return where + "is " + shown(got) + ", expected " + shown(expected);
  if (want.contains("operands") && all(want["operands"]) != all(found->operands)) {
    return where + "operands are " + shown(all(found->operands)) + ", expected " + shown(all(want["operands"]));
  }
  return "";
}

std::string compare(const json& expected, const std::vector<FunctionReport>& reports) {
  std::map<std::string, int> names;
  for (const json& want : expected["functions"]) ++names[want["name"].get<std::string>()];
  std::string problems;
  for (const json& want : expected["functions"]) {
    const std::string name = want["name"];
    std::vector<std::vector<int32_t>> calls = want.value("calls", std::vector<std::vector<int32_t>>());
    std::sort(calls.begin(), calls.end());
    const FunctionReport* have = nullptr;
    for (const FunctionReport& report : reports) {
      std::vector<std::vector<int32_t>> own = report.calls;
      std::sort(own.begin(), own.end());
      if (report.name == name && (own == calls || (have == nullptr && names[name] == 1))) have = &report;
    }
    if (have == nullptr) {
      problems += "no function " + name + " called as expected, but:";
      for (const FunctionReport& report : reports) {
        if (report.name != name) continue;
        problems += "\n  calls";
        for (const auto& call : report.calls) problems += " " + json(call).dump();
        problems += " arguments " + shown(all(report.arguments)) + " results " + shown(all(report.results));
      }
      return problems;
    }
    const auto note = [&](const std::string& problem) {
      if (!problem.empty()) problems += (problems.empty() ? "" : "\n  ") + name + ": " + problem;
    };
    note(differing_ends(want, *have));
    for (const json& value : want["values"]) note(differing_value(value, *have));
  }
  return problems;
}

/// Rules of all ops of a function, by line.
class RuleReader {
 public:
  RuleReader(const ir::Function& function, std::map<std::pair<int32_t, std::string>, std::string>& rules)
      : function_(function), rules_(rules), definitions_(function.values.size(), nullptr) {
    visit(function.body);
  }

 private:
  void visit(const ir::Region& region) {
    for (const ir::Op& op : region.ops) {
      for (const ir::ValueId id : op.results) definitions_[static_cast<size_t>(id)] = &op;
      rules_.emplace(std::pair(op.location.line, op.name), rule_text(op));
      for (const ir::Region& inner : op.regions) visit(inner);
    }
  }

  std::string rule_text(const ir::Op& op) const {
    std::vector<const ir::Op*> definitions;
    for (const ir::ValueId id : op.operands) definitions.push_back(definitions_[static_cast<size_t>(id)]);
    ops::OpInstance instance(function_, op);
    ops::OpView& view = instance.view;
    view.op = &op;
    view.definitions = definitions;
    const std::optional<sharding::FactorRule> rule = ops::rule_of(ops::op(op.code), view);
    return rule ? sharding::to_sdy(*rule) : "none";
  }

  const ir::Function& function_;
  std::map<std::pair<int32_t, std::string>, std::string>& rules_;
  std::vector<const ir::Op*> definitions_;
};

}  // namespace

std::string differing_rules(const std::string& name) {
  const std::filesystem::path base = conformance_folder() / "propagation" / name;
  const json expected = json::parse(text_of(base.string() + ".json"));
  if (expected.contains("refused")) return "";
  std::map<std::pair<int32_t, std::string>, std::string> rules;
  ir::ModuleRef module;
  try {
    module = program::parse_stablehlo(text_of(base.string() + ".mlir"));
  } catch (const core::Error&) {
    return "";
  }
  for (const ir::Function& function : module->functions) RuleReader(function, rules);
  std::string problems;
  for (const json& function : expected["functions"]) {
    for (const json& value : function["values"]) {
      if (!value.contains("rule")) continue;
      const std::string& got = rules[{value["line"].get<int32_t>(), value["op"].get<std::string>()}];
      if (got == value["rule"].get<std::string>()) continue;
      problems += "\n  line " + value["line"].dump() + " " + value["op"].get<std::string>() + " has " + got +
                  ", Shardy " + value["rule"].get<std::string>();
    }
  }
  return problems;
}

std::filesystem::path conformance_folder() { return std::filesystem::path(MESHD_SOURCE_DIR) / "tests/conformance"; }

std::vector<std::string> case_names() {
  const std::filesystem::path base = conformance_folder() / "propagation";
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(base)) {
    if (entry.path().extension() == ".json") {
      out.push_back(std::filesystem::relative(entry.path(), base).replace_extension().string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> passing_names() {
  std::ifstream in(conformance_folder() / "passing/propagation.txt");
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') out.push_back(line);
  }
  return out;
}

std::string judge(const std::string& name) {
  const std::filesystem::path base = conformance_folder() / "propagation" / name;
  const json expected = json::parse(text_of(base.string() + ".json"));
  try {
    const ir::ModuleRef module = program::parse_stablehlo(text_of(base.string() + ".mlir"));
    const std::vector<FunctionReport> reports = report(propagate(program::inline_calls(*module)));
    return expected.contains("refused") ? "not refused: " + expected["refused"].get<std::string>()
                                        : compare(expected, reports);
  } catch (const core::Error& error) {
    return expected.contains("refused") ? "" : std::string(error.code().word()) + ": " + error.detail();
  }
}

}  // namespace meshd::propagation
