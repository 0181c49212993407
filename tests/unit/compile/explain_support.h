// Programs parsed and explained without a server.
#pragma once

#include <string>

#include "service/compile/explain/explain.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/transform/inline_calls.h"

namespace meshd::compile {

inline ParsedRef parsed(const std::string& text) {
  auto out = std::make_shared<ParsedProgram>();
  out->id = "prog";
  out->text = text;
  out->module = program::parse_stablehlo(out->text);
  out->flat = std::make_shared<const ir::Module>(program::inline_calls(*out->module));
  for (size_t i = 0; i < out->module->main().arguments.size(); ++i) out->arguments.push_back(i);
  for (size_t i = 0; i < out->module->main().results.size(); ++i) out->results.push_back(i);
  return out;
}

inline LowerRequest request_for(const ParsedProgram& program) {
  LowerRequest out;
  out.device_count = program.module->meshes.front().mesh->position_count();
  return out;
}

/// `shares_memory`: PlanSettings::shares_memory, false where devices are of several processes.
inline Explanation explained(const std::string& text, bool shares_memory = true) {
  const ParsedRef program = parsed(text);
  PlanSettings settings(1);
  settings.shares_memory = shares_memory;
  return explain(program, request_for(*program), settings);
}

/// A mesh for the modules of the cases.
inline const std::string kMesh = "sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\n";

}  // namespace meshd::compile
