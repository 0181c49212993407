// Unsupported ops of a program, found when it is registered: custom calls with an unknown target. Such a program can be
// registered and explained; a run fails with unsupported_custom_call.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/ir/program.h"

namespace meshd::compile {

struct NotRun {
  ir::Location location;
  std::string op;
  std::string detail;  ///< "custom call '@mark_tensor' is not known here; ..."
};

inline constexpr size_t kMostNotRun = 100;

/// At most `limit`, in the order of the text, each place once. Empty: every op has something that runs it.
std::vector<NotRun> find_not_run(const ParsedProgram& parsed, size_t limit = kMostNotRun);

}  // namespace meshd::compile
