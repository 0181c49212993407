// An op instance taken from program text, for rows with regions.
#pragma once

#include <string>
#include <string_view>

#include "service/program/parse_stablehlo.h"
#include "tests/support/row_runner.h"

namespace meshd::test {

/// The first op called `name` in @main of `text`, and the module that it points into.
struct ParsedInstance {
  ir::ModuleRef module;
  Instance instance;
  std::vector<ir::Type> operand_types;

  ParsedInstance(std::string_view text, std::string_view name) : module(program::parse_stablehlo(std::string(text))) {
    const ir::Function& main = module->main();
    for (const ir::Op& op : main.body.ops) {
      if (op.name != name) continue;
      instance = {.def = ops::find_op(name), .attributes = op.attributes, .regions = op.regions, .function = &main};
      instance.declared = main.types_of(op.results);
      operand_types = main.types_of(op.operands);
      return;
    }
    ADD_FAILURE() << "no " << name << " in the text";
  }

  /// Same op over other local types: results as given, nothing inferred.
  [[nodiscard]] Instance local(std::vector<ir::Type> results) const {
    Instance out = instance;
    out.skip_infer = true;
    out.declared = std::move(results);
    return out;
  }
};

}  // namespace meshd::test
