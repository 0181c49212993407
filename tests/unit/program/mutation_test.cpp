// Damaged texts never crash or hang the parser: they parse, or core::Error says what is wrong. Seeded; longer runs are
// tests/fuzz.
#include <chrono>

#include "service/program/transform/inline_calls.h"
#include "tests/support/mutate.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

std::vector<std::string> seeds() {
  constexpr uintmax_t kMaxSeedBytes = 12'000;
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"programs", "propagation", "ops"}) {
    const auto root = std::filesystem::path(MESHD_SOURCE_DIR) / "tests/conformance" / folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.path().extension() == ".mlir" && entry.file_size() < kMaxSeedBytes) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  constexpr size_t kStep = 7;
  for (size_t i = 0; i < paths.size(); i += kStep) out.push_back(read_text(paths[i]));
  return out;
}

TEST(Mutations, are_parsed_or_refused) {
  const std::vector<std::string> texts = seeds();
  ASSERT_FALSE(texts.empty());
  meshd::testing::Mutator mutator(20240229, meshd::testing::stablehlo_words());
  std::mt19937_64 choose(7);
  int refused = 0;
  int parsed = 0;
  constexpr int kRuns = 6000;
  for (int i = 0; i < kRuns; ++i) {
    const std::string text = mutator.mutate(texts[choose() % texts.size()], texts[choose() % texts.size()]);
    try {
      const ir::ModuleRef module = parse_stablehlo(text);
      ++parsed;
      const std::string once = print_generic(*module);
      ASSERT_EQ(print_generic(*parse_stablehlo(once)), once) << text;
    } catch (const core::Error& error) {
      ++refused;
      ASSERT_NE(error.code().word(), "internal") << error.detail() << "\n" << text;
      const bool has_place = error.detail().rfind("line ", 0) == 0 && error.diagnostics().at(0).line > 0;
      ASSERT_TRUE(has_place || error.detail() == "the module has no function @main") << error.detail() << "\n" << text;
    }
  }
  EXPECT_GT(refused, kRuns / 2);
  EXPECT_GT(parsed, 0);
}

}  // namespace
}  // namespace meshd::program
