// The report of propagation, by function and line: the source of conformance/propagation and of :explain.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "service/propagation/propagate.h"

namespace meshd::propagation {

using MaybeSharding = std::optional<sharding::TensorSharding>;

/// One of several shardings that a line's op ended up with, and its uses: lines and operand numbers.
struct CopyReport {
  std::vector<MaybeSharding> shardings;  ///< by result
  std::vector<std::pair<int32_t, int>> users;
};

/// An op of the text.
struct ValueReport {
  int32_t line = 0;
  std::string value;  ///< name of its first result
  std::string op;
  std::vector<CopyReport> copies;       ///< one, unless uses of a constant differ
  std::vector<MaybeSharding> operands;  ///< of a manual computation: its in_shardings
  Origin origin;                        ///< of its first result
};

/// @main, or the copies of a called function that take and give the same shardings.
struct FunctionReport {
  std::string name;
  std::vector<std::vector<int32_t>> calls;  ///< call stacks: lines of calls, outermost first; empty for @main
  /// Entries of Module::inlined_calls that it covers (-1: @main itself); `values` are those of the first.
  std::vector<int32_t> frames;
  std::vector<Origin> argument_origins;  ///< of @main
  std::vector<MaybeSharding> arguments;
  std::vector<MaybeSharding> results;
  std::vector<ValueReport> values;  ///< in the order of the text; ops whose results are all scalars are left out
};

/// @main first, then callees in the order in which they are called.
std::vector<FunctionReport> report(const Propagated& propagated);

}  // namespace meshd::propagation
