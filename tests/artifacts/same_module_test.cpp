// What jaxlib writes of a module is the module that its text is.
#include <gtest/gtest.h>

#include <set>

#include "service/core/error.h"
#include "service/program/bytecode/artifact.h"
#include "service/program/parse_stablehlo.h"
#include "tests/artifacts/artifact_files.h"
#include "tests/artifacts/canonical_text.h"

namespace meshd::test {
namespace {

TEST(Artifacts, are_the_modules_of_their_texts) {
  std::set<std::string> programs;
  for (const ArtifactPair& pair : artifact_pairs()) {
    SCOPED_TRACE(pair.name);
    programs.insert(pair.name.substr(0, pair.name.find(' ')));
    const program::ArtifactProgram read = program::read_artifact(pair.artifact);
    EXPECT_EQ(canonical_text(read.text), canonical_text(pair.text));
  }
  EXPECT_GE(programs.size(), 60U);
}

TEST(Artifacts, print_the_same_text_from_the_same_bytes) {
  for (const ArtifactPair& pair : artifact_pairs())
    ASSERT_EQ(program::read_artifact(pair.artifact).text, program::read_artifact(pair.artifact).text) << pair.name;
}

TEST(VhloText, is_the_module_of_its_artifact) {
  const std::vector<ArtifactPair> texts = vhlo_texts();
  EXPECT_GE(texts.size(), 40U);
  for (const ArtifactPair& pair : texts) {
    SCOPED_TRACE(pair.name);
    EXPECT_EQ(canonical_text(pair.artifact), canonical_text(pair.text));
  }
}

TEST(Exports, are_verified_programs) {
  for (const ArtifactPair& pair : exports()) {
    SCOPED_TRACE(pair.name);
    if (pair.name == "refused_platform") continue;
    const program::ArtifactProgram read = program::read_artifact(pair.artifact);
    EXPECT_NO_THROW(program::parse_stablehlo(read.text));
    EXPECT_FALSE(read.in_tree.empty());
    EXPECT_FALSE(read.out_tree.empty());
  }
}

TEST(Exports, have_the_trees_and_dropped_arguments_of_the_function) {
  for (const ArtifactPair& pair : exports()) {
    if (pair.name != "trees_and_dropped_arguments") continue;
    const program::ArtifactProgram read = program::read_artifact(pair.artifact);
    EXPECT_EQ(read.in_tree, R"([{"b": "*", "w": "*"}, "*", "-"])");
    EXPECT_EQ(read.out_tree, R"({"sums": ["*", null, ["*"]], "y": "*"})");
  }
}

TEST(Exports, for_several_platforms_take_no_platform) {
  for (const ArtifactPair& pair : exports()) {
    if (pair.name != "platforms") continue;
    const ir::ModuleRef module = program::parse_stablehlo(program::read_artifact(pair.artifact).text);
    ASSERT_EQ(module->main().arguments.size(), 1U);
    const ir::Op& platform = module->main().body.ops.at(0);
    EXPECT_EQ(ir::dense_ints(*ir::find(platform.attributes, "value")->as<ir::DenseAttr>()),
              std::vector<int64_t>{1});  // tpu, cpu, cuda
  }
}

TEST(Exports, of_other_platforms_are_refused_by_name) {
  for (const ArtifactPair& pair : exports()) {
    if (pair.name != "refused_platform") continue;
    try {
      program::read_artifact(pair.artifact);
      FAIL() << "an export for tpu was taken";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code().word(), "unsupported_format");
      EXPECT_NE(error.detail().find("exported for tpu and not for cpu"), std::string::npos) << error.detail();
    }
  }
}

// Bytes that begin in the middle of others, as in a form, may not lie where numbers can be read.
TEST(Exports, are_read_wherever_they_lie) {
  for (const ArtifactPair& pair : exports()) {
    if (pair.name != "loops") continue;
    const std::string moved = "x" + pair.artifact;
    EXPECT_EQ(program::read_artifact(std::string_view(moved).substr(1)).text,
              program::read_artifact(pair.artifact).text);
  }
}

}  // namespace
}  // namespace meshd::test
