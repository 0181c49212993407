// Every program of tests/conformance: it parses (or names an op that has no row), prints and parses again, flattens;
// what Shardy refuses is refused.
#include "service/program/transform/inline_calls.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

const std::filesystem::path kRoot = std::filesystem::path(MESHD_SOURCE_DIR) / "tests/conformance";

/// A module as Shardy printed it behind one of its stages.
bool is_stage(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".propagated.mlir") || name.ends_with(".resharded.mlir") || name.ends_with(".collectives.mlir");
}

std::vector<std::filesystem::path> texts(const std::string& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / folder)) {
    if (entry.path().extension() == ".mlir") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void expect_all_parse(const std::string& folder) {
  int count = 0;
  for (const auto& path : texts(folder)) {
    if (path.parent_path().filename() == "refused") continue;
    ++count;
    try {
      const ir::ModuleRef module = parse_stablehlo(read_text(path));
      const std::string once = print_generic(*module);
      EXPECT_EQ(print_generic(*parse_stablehlo(once)), once) << path;
      const std::string flat = print_generic(inline_calls(*module));
      EXPECT_EQ(flat.find("func.call"), std::string::npos) << path;
      EXPECT_EQ(print_generic(*parse_stablehlo(flat)), flat) << path;
    } catch (const core::Error& error) {
      // Reductions of Shardy stand only in the stages that Shardy prints, never in what is posted.
      const bool is_shardy_stage = is_stage(path) && error.detail().find("'sdy.") != std::string::npos;
      const bool has_no_row = error.code() == core::ErrorCode("unsupported_op");
      EXPECT_TRUE(has_no_row && is_shardy_stage) << path << ": " << error.code().word() << ": " << error.detail();
    }
  }
  EXPECT_GT(count, 0);
}

TEST(Conformance, ops_parse_and_print) { expect_all_parse("ops"); }
TEST(Conformance, programs_parse_and_print) { expect_all_parse("programs"); }
TEST(Conformance, digits_parse_and_print) { expect_all_parse("digits"); }
TEST(Conformance, propagation_parses_and_prints) { expect_all_parse("propagation"); }

TEST(Conformance, what_shardy_refuses_is_refused) {
  const auto paths = texts("propagation/refused");
  EXPECT_EQ(paths.size(), 30U);
  for (const auto& path : paths) EXPECT_NE(refusal(read_text(path)), "none") << path;
}

}  // namespace
}  // namespace meshd::program
