// The program after each stage of the compiler, as text: what a pass changed is the difference of two snapshots.
//
// Stages in order, and the form of their text:
//   parse             the text as read, in generic form (StableHLO, as all up to rewrite)
//   unpack_tuples     tuples among the arguments and results of @main are their leaves
//   import_gspmd      GSPMD annotations are Shardy's
//   static_arguments  static arguments are constants
//   inline_calls      callees are copied into @main
//   specialise        dynamic dimensions are numbers, ops with a decomposition are decomposed
//   propagate         every value that has a sharding is annotated with it
//   rewrite           batch norms over sharded batches are sums over shards, arguments' shardings are rounded
//   partition         the local program that every device runs, with its layouts and collectives
//   plan              steps, slots and memory
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "service/compile/explain/explain.h"

namespace meshd::compile {

/// Longer texts are truncated behind their last complete line; `bytes` is the length of the full text.
inline constexpr size_t kMostSnapshotBytes = size_t{1} << 20;

struct Snapshot {
  std::string_view name;
  std::string text;
  size_t bytes = 0;
  bool is_truncated = false;
};

/// The module of a program, as text in generic form.
std::string module_text(const ParsedProgram& parsed);

/// Names in a list "propagate,partition", or "all", each once and in the order of the stages. Throws invalid_query
/// naming the word that is no stage.
std::vector<std::string_view> read_stage_names(std::string_view list);

/// The program after each of these stages. A stage that planning did not reach (Explanation::unplanned holds the
/// reason) has no entry. `request` is the one that was explained.
std::vector<Snapshot> snapshots(const Explanation& explanation, const LowerRequest& request,
                                const std::vector<std::string_view>& names);

}  // namespace meshd::compile
