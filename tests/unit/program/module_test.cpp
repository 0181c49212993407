// The module: its head, functions and what their arguments carry.
#include "service/ops/op_def.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

TEST(Module, head_and_signature) {
  const ir::ModuleRef module =
      parse_stablehlo(R"(module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<2xf32> {jax.buffer_donor = true}, %arg2: tensor<0xi1> {jax.token = true}, %arg3: !stablehlo.token) -> (tensor<2xf32> {jax.result_info = "result['a']}) -> ("}, tensor<0xi1> {jax.token = true}) {
    return %arg0, %arg2 : tensor<2xf32>, tensor<0xi1>
  }
})");
  EXPECT_EQ(module->name, "jit_f");
  EXPECT_EQ(module->num_partitions, 8);
  const ir::Function& main = module->main();
  EXPECT_TRUE(main.is_public);
  EXPECT_EQ(main.arguments[0].aliases_output, 0);
  EXPECT_TRUE(main.arguments[1].is_donor);
  EXPECT_TRUE(main.arguments[2].is_token);
  EXPECT_TRUE(main.arguments[3].is_token);
  EXPECT_FALSE(main.arguments[0].is_token);
  EXPECT_EQ(main.results[0].result_info, "result['a']}) -> (");
  EXPECT_TRUE(main.results[1].is_token);
}

TEST(Module, tokens_are_tokens_or_booleans_without_elements) {
  const auto refused = [](const std::string& type) {
    return refusal("func.func @main(%a: " + type + " {jax.token = true}) -> " + type + " {\n  return %a : " + type +
                   "\n}");
  };
  EXPECT_EQ(refused("!stablehlo.token"), "none");
  EXPECT_EQ(refused("tensor<0xi1>"), "none");
  EXPECT_NE(refused("tensor<4xf32>").find("jax.token is of !stablehlo.token or tensor<0xi1>, got tensor<4xf32>"),
            std::string::npos);
}

TEST(Module, names_with_quotes_and_escapes) {
  const ir::ModuleRef module = parse_stablehlo(R"(module @"jit_\C3\B6" {
  func.func @main() {
    call @"call_exported_<lambda>"() : () -> ()
    return
  }
  func.func private @"call_exported_<lambda>"() {
    return
  }
})");
  EXPECT_EQ(module->name, "jit_\xC3\xB6");
  EXPECT_NE(module->find_function("call_exported_<lambda>"), nullptr);
  expect_round_trip(print_generic(*module));
}

TEST(Module, stands_without_its_braces_too) {
  EXPECT_EQ(parse_stablehlo("func.func @main() {\n  return\n}")->main().name, "main");
}

TEST(Module, generic_form_means_the_same) {
  const std::filesystem::path folder = std::filesystem::path(MESHD_SOURCE_DIR) / "tests/conformance/programs";
  // JAX printed these two from one function; beside locations and their aliases, only one has a mesh and annotations.
  const auto ops = [&](const char* name) {
    std::istringstream text(print_generic(parse_unverified(read_text(folder / name))));
    std::string out;
    for (std::string line; std::getline(text, line);) {
      const bool annotated = line.find("sdy.mesh") != std::string::npos ||
                             line.find("func.func") != std::string::npos ||
                             line.find("mhlo.num_partitions") != std::string::npos;
      if (!annotated) out += line + '\n';
    }
    return out;
  };
  const std::string generic = ops("generic_form.mlir");
  EXPECT_GT(generic.size(), 10000U);
  EXPECT_EQ(generic, ops("generic_with_locations.mlir"));
}

TEST(Module, crlf_and_tabs_are_space) {
  EXPECT_EQ(refusal("module {\r\n\tfunc.func @main() {\r\n\treturn\r\n\t}\r\n}\r\n"), "none");
}

}  // namespace
}  // namespace meshd::program
