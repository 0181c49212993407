// Helpers for tests of the parser: bodies wrapped into modules, errors as text.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "service/core/error.h"
#include "service/program/parse/parse.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/print.h"

namespace meshd::program {

/// A module whose @main takes `arguments` and holds `body` (with its return).
inline std::string in_main(const std::string& arguments, const std::string& results, const std::string& body) {
  return "module @m {\n  sdy.mesh @mesh = <[\"x\"=2, \"y\"=4, \"z\"=8]>\n  func.func public @main(" + arguments +
         ") -> (" + results + ") {\n" + body + "\n  }\n}\n";
}

/// The first op of @main of a module with this body.
inline ir::Op first_op(const std::string& arguments, const std::string& results, const std::string& body) {
  return parse_unverified(in_main(arguments, results, body)).main().body.ops.at(0);
}

/// The constant that `dense` says, as JAX writes it behind stablehlo.constant.
inline ir::DenseAttr constant(const std::string& dense) {
  const ir::Module module = parse_unverified("module {\n  func.func @main() {\n    %0 = stablehlo.constant " + dense +
                                             "\n    return\n  }\n}\n");
  return *ir::find(module.main().body.ops.at(0).attributes, "value")->as<ir::DenseAttr>();
}

/// "code: text" of the error that parsing gives, or "none".
inline std::string refusal(const std::string& text) {
  try {
    parse_stablehlo(text);
    return "none";
  } catch (const core::Error& error) {
    return std::string(error.code().word()) + ": " + error.detail();
  }
}

inline std::string read_text(const std::filesystem::path& path) {
  std::stringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

/// printed(text) parses back to what prints the same.
inline void expect_round_trip(const std::string& text) {
  const std::string once = print_generic(parse_unverified(text));
  EXPECT_EQ(print_generic(parse_unverified(once)), once);
}

}  // namespace meshd::program
