// Every case that is listed in tests/conformance/passing/propagation.txt gives the shardings that Shardy gives. The
// list only grows.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "service/core/error.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/print.h"
#include "service/program/transform/inline_calls.h"
#include "service/propagation/propagate.h"

#include "tests/properties/propagation_cases.h"

namespace meshd::propagation {
namespace {

TEST(PropagationConformance, listed_cases_give_shardys_shardings) {
  const std::vector<std::string> names = passing_names();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) EXPECT_EQ(judge(name), "") << name;
}

/// Texts of all conformance programs that parse.
std::vector<std::filesystem::path> texts() {
  std::vector<std::filesystem::path> out;
  for (const char* folder : {"propagation", "programs", "digits"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(conformance_folder() / folder)) {
      const std::string name = entry.path().string();
      const bool is_stage = name.find(".propagated.") != std::string::npos ||
                            name.find(".resharded.") != std::string::npos ||
                            name.find(".collectives.") != std::string::npos;
      if (entry.path().extension() == ".mlir" && !is_stage) out.push_back(entry.path());
    }
  }
  return out;
}

TEST(PropagationPrograms, what_comes_out_is_a_program_that_verifies) {
  int checked = 0;
  for (const std::filesystem::path& path : texts()) {
    std::ifstream in(path);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    ir::Module flat;
    try {
      flat = program::inline_calls(*program::parse_stablehlo(text));
    } catch (const core::Error&) {
      continue;  // refused, or an op without a row
    }
    const Propagated out = propagate(flat);
    const ir::Function& main = out.module->main();
    ASSERT_EQ(out.values.size(), main.values.size()) << path;
    ASSERT_EQ(out.results.size(), main.results.size()) << path;
    for (size_t i = 0; i < out.values.size(); ++i) {
      if (!out.values[i] || out.values[i]->mesh->is_maximal()) continue;
      EXPECT_NO_THROW(sharding::verify(*out.values[i], main.values[i].type.rank())) << path;
    }
    ir::Module again = *out.module;
    again.inlined_calls.clear();
    const std::string printed = program::print_generic(again);
    try {
      EXPECT_EQ(program::print_generic(*program::parse_stablehlo(printed)), printed) << path;
    } catch (const core::Error& error) {
      ADD_FAILURE() << path << ": " << error.detail();
    }
    ++checked;
  }
  EXPECT_GT(checked, 400);
}

}  // namespace
}  // namespace meshd::propagation
