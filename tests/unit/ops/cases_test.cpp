// The case files of single ops and the examples of all rows, run op by op without the engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "service/core/error.h"
#include "service/ops/op_def.h"
#include "service/program/parse_stablehlo.h"
#include "tests/support/case_values.h"
#include "tests/support/interpreter.h"
#include "tests/support/not_interpreted.h"

namespace meshd {
namespace {

namespace fs = std::filesystem;

fs::path case_folder() { return fs::path(MESHD_SOURCE_DIR) / "tests/cases/ops"; }

std::vector<std::string> case_names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(case_folder())) {
    if (entry.path().extension() == ".mlir") out.push_back(entry.path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class OpCase : public testing::TestWithParam<std::string> {};

TEST_P(OpCase, results_are_as_written) {
  std::ifstream in(case_folder() / (GetParam() + ".mlir"));
  std::stringstream text;
  std::vector<test::Value> arguments;
  std::vector<nlohmann::json> expected;
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view kArgument = "// argument ";
    constexpr std::string_view kResult = "// result ";
    if (line.starts_with(kArgument))
      arguments.push_back(test::value_of(nlohmann::json::parse(line.substr(kArgument.size()))));
    if (line.starts_with(kResult)) expected.push_back(nlohmann::json::parse(line.substr(kResult.size())));
    text << line << '\n';
  }
  const ir::ModuleRef module = program::parse_stablehlo(text.str());
  std::vector<test::Value> results;
  try {
    results = test::interpret(*module, std::move(arguments));
  } catch (const core::Error& error) {
    // The engine runs all cases again.
    const std::string_view reason = test::why_not_interpreted(error.detail());
    if (reason.empty()) throw;
    GTEST_SKIP() << reason;
  }
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(test::difference(results[i], test::value_of(expected[i].at("value")), expected[i].at("compare")), "")
        << "result " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpCase, testing::ValuesIn(case_names()), [](const auto& name) { return name.param; });

std::vector<std::string> row_names() {
  std::vector<std::string> out;
  for (const ops::OpDef& def : ops::all_ops()) out.emplace_back(def.name);
  return out;
}

class OpExample : public testing::TestWithParam<std::string> {};

TEST_P(OpExample, is_a_program_that_runs) {
  const ops::OpDef& def = *ops::find_op(GetParam());
  const ir::ModuleRef module = program::parse_stablehlo(def.example);
  std::vector<test::Value> arguments;
  for (const ir::Parameter& parameter : module->main().arguments) {
    arguments.push_back(
        {parameter.type, std::vector<std::byte>(static_cast<size_t>(tensor::byte_count(parameter.type.tensor))), {}});
  }
  try {
    const std::vector<test::Value> results = test::interpret(*module, std::move(arguments));
    ASSERT_EQ(results.size(), module->main().results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(ir::to_string(results[i].type), ir::to_string(module->main().results[i].type));
    }
  } catch (const core::Error& error) {
    // The engine runs all examples again.
    const std::string_view reason = test::why_not_interpreted(error.detail());
    if (reason.empty()) throw;
    GTEST_SKIP() << reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpExample, testing::ValuesIn(row_names()), [](const auto& row) {
  std::string name = row.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
});

}  // namespace
}  // namespace meshd
