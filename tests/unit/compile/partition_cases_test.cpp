// Text cases of the partitioner: a module with a mesh, and the program that every device runs, as :partition prints it.
// MESHD_UPDATE_CASES=1 rewrites the files; tests/README.md has the command.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "service/compile/explain/explain.h"

namespace meshd::compile {
namespace {

constexpr std::string_view kMark = "// ---- the device's program\n";

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::string device_program(const std::string& text) {
  Compiler compiler(1, 4);
  const ParsedRef parsed = compiler.parse("stablehlo", text);
  LowerRequest request;
  request.device_count = std::max(request.device_count, device_span(*parsed->module));
  return device_text(*parsed, request);
}

/// The lines around the first that differs.
std::string difference(const std::string& expected, const std::string& got) {
  std::istringstream left(expected), right(got);
  for (int line = 1;; ++line) {
    std::string a, b;
    const bool has_a = static_cast<bool>(std::getline(left, a));
    const bool has_b = static_cast<bool>(std::getline(right, b));
    if (!has_a && !has_b) return {};
    if (a != b || has_a != has_b) {
      return "line " + std::to_string(line) + " of the device's program\n- " + (has_a ? a : "(end)") + "\n+ " +
             (has_b ? b : "(end)") + "\n\nall of it:\n" + got;
    }
  }
}

class PartitionCase : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(PartitionCase, device_program_is_as_written) {
  const std::string file = read_file(GetParam());
  const size_t mark = file.find(kMark);
  const std::string module = file.substr(0, mark);
  const std::string got = device_program(module);
  if (std::getenv("MESHD_UPDATE_CASES") != nullptr) {
    std::ofstream(GetParam()) << module << kMark << got;
    return;
  }
  ASSERT_NE(mark, std::string::npos) << GetParam() << " has no '" << kMark << "'";
  EXPECT_EQ(difference(file.substr(mark + kMark.size()), got), "") << GetParam();
}

std::vector<std::filesystem::path> all_cases() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(MESHD_SOURCE_DIR "/tests/cases/partition"))
    out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Files, PartitionCase, testing::ValuesIn(all_cases()),
                         [](const auto& one) { return one.param.stem().string(); });

}  // namespace
}  // namespace meshd::compile
