// The conformance cases of single ops, run op by op without the engine: whether rows and kernels mean what JAX means.
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

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Runs a case; empty when it is right, "skip: ..." for what not_interpreted.h lists.
std::string verdict(const fs::path& program) {
  fs::path description = program;
  description.replace_extension(".json");
  const auto json = nlohmann::json::parse(text_of(description));
  try {
    const ir::ModuleRef module = program::parse_stablehlo(text_of(program));
    std::vector<test::Value> arguments;
    for (const ir::Parameter& parameter : module->main().arguments) {
      // Tokens are not listed in cases.
      const size_t listed = static_cast<size_t>(std::count_if(
          arguments.begin(), arguments.end(), [](const test::Value& value) { return !value.type.is_token(); }));
      arguments.push_back(parameter.is_token ? test::Value{ir::Type::token(), {}, {}}
                                             : test::value_of(json.at("arguments").at(listed)));
    }
    std::vector<test::Value> results = test::interpret(*module, std::move(arguments));
    // Tokens are not listed in cases.
    std::erase_if(results, [](const test::Value& value) { return value.type.is_token(); });
    for (size_t i = 0; i < results.size(); ++i) {
      const auto& expected = json.at("results").at(i);
      const std::string error =
          test::difference(results[i], test::value_of(expected.at("value")), expected.at("compare"));
      if (!error.empty()) return "result " + std::to_string(i) + " " + error;
    }
  } catch (const core::Error& error) {
    const std::string_view reason = test::why_not_interpreted(error.detail());
    if (!reason.empty()) return "skip: " + std::string(reason);
    return std::string(error.code().word()) + ": " + error.detail();
  }
  return {};
}

/// JAX multiplies by the reciprocal of a broadcast divisor; the answer differs by a unit in the last place from the
/// division that the program asks for, which is what runs here.
bool is_rewritten_by_jax(const fs::path& program) {
  return program.stem() == "div_broadcast_lhs_float32_2_4_3_rhs_float32_2_1_3_734ad2";
}

std::vector<std::string> folders() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(MESHD_SOURCE_DIR) / "tests/conformance/ops")) {
    if (entry.is_directory()) out.push_back(entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class OpConformance : public testing::TestWithParam<std::string> {};

TEST_P(OpConformance, answers_are_jaxs) {
  int run = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(MESHD_SOURCE_DIR) / "tests/conformance/ops" / GetParam())) {
    if (entry.path().extension() != ".mlir" || is_rewritten_by_jax(entry.path())) continue;
    const std::string error = verdict(entry.path());
    ++run;
    EXPECT_EQ(error, "") << entry.path().filename();
  }
  EXPECT_GT(run, 0);
}

/// Whole programs, unsharded: those for several devices that keep to shardings say the same on one.
class ProgramConformance : public testing::TestWithParam<std::string> {};

TEST_P(ProgramConformance, answers_are_jaxs) {
  const std::string error = verdict(fs::path(MESHD_SOURCE_DIR) / "tests/conformance/programs" / (GetParam() + ".mlir"));
  if (error.starts_with("skip: ")) GTEST_SKIP() << error;
  EXPECT_EQ(error, "");
}

TEST(NotInterpreted, each_entry_names_what_the_interpreter_cannot_run) {
  for (const test::NotInterpreted& entry : test::kNotInterpreted) {
    const ops::OpDef* row = ops::find_op(entry.witness);
    if (row == nullptr) {
      const std::string name(entry.witness);
      EXPECT_EQ(verdict(fs::path(MESHD_SOURCE_DIR) / "tests/conformance/programs" / (name + ".mlir")),
                "skip: " + std::string(entry.reason))
          << name;
      continue;
    }
    const ir::ModuleRef module = program::parse_stablehlo(row->example);
    std::vector<test::Value> arguments;
    for (const ir::Parameter& parameter : module->main().arguments) {
      arguments.push_back(
          {parameter.type, std::vector<std::byte>(static_cast<size_t>(tensor::byte_count(parameter.type.tensor))), {}});
    }
    std::string detail = "it runs";
    try {
      test::interpret(*module, std::move(arguments));
    } catch (const core::Error& error) {
      detail = error.detail();
    }
    EXPECT_NE(detail.find(entry.what), std::string::npos) << entry.witness << ": " << detail;
  }
}

std::vector<std::string> programs() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(MESHD_SOURCE_DIR) / "tests/conformance/programs")) {
    if (entry.path().extension() == ".mlir") out.push_back(entry.path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Programs, ProgramConformance, testing::ValuesIn(programs()),
                         [](const auto& name) { return name.param; });

INSTANTIATE_TEST_SUITE_P(Ops, OpConformance, testing::ValuesIn(folders()),
                         [](const auto& folder) { return folder.param; });

}  // namespace
}  // namespace meshd
