// Explains a program without running it: the shardings of all values and their origins, the communication, the cost,
// and what does not divide. Reads the outputs of the stages that a run goes through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "service/compile/explain/not_run.h"
#include "service/compile/explain/traffic.h"
#include "service/compile/stages.h"
#include "service/core/error.h"
#include "service/partition/moves.h"
#include "service/propagation/export/report.h"

namespace meshd::compile {

/// A dimension that the axes it has, or could have had, do not divide.
struct Indivisible {
  std::string value;  ///< name in the text
  int32_t line = 0;   ///< of the op that makes it; 0: an argument of @main
  int64_t dim = 0;
  int64_t size = 0;
  int64_t ways = 0;        ///< number of parts into which the axes would shard it
  std::string axes;        ///< {"x", "y"}
  bool is_sharded = true;  ///< false: replicated along the last of them; true: sharded unevenly, with padding
  int32_t op_line = 0;     ///< replicated: the op whose other tensors are sharded so
  std::string op;
  struct Choice {
    std::string axes;  ///< axes for this dimension that divide it
    int64_t ways = 1;
  };
  std::vector<Choice> nearest;         ///< nearest in parts first; empty: nothing of the mesh divides it
  std::vector<int64_t> nearest_sizes;  ///< sizes next to `size` that the axes divide
};

/// A move and the entry of `functions` that it belongs to.
struct ExplainedMove {
  partition::Move move;
  size_t function = 0;
  /// A second copy of the same function does the same again; sums by function leave it out.
  bool is_again = false;
  bool of_argument = false;  ///< what is moved is an argument of @main
  int64_t argument = 0;      ///< its token-free position
  int32_t of_line = 0;       ///< else the line that makes it
  int64_t of_result = 0;     ///< and which result
  std::string from, to;      ///< as sdy.sharding writes them
  std::string axes;
};

struct Explanation {
  ParsedRef parsed;
  int64_t device_count = 1;
  propagation::Propagated propagated;
  std::vector<propagation::FunctionReport> functions;
  std::vector<Indivisible> indivisible;
  /// Nothing where partition or plan failed; `unplanned` holds the reason.
  std::optional<partition::LocalProgram> local;
  std::vector<ExplainedMove> moves;
  PlanRef plan;
  std::optional<core::Error> unplanned;
  std::optional<Traffic> traffic;  ///< where several processes own the devices that it would run on
  std::vector<NotRun> not_run;     ///< what keeps it from running, wherever planning stopped

  [[nodiscard]] int64_t moved_bytes() const;  ///< of one device, loops counted once
  [[nodiscard]] double flops() const;         ///< of one device, loops counted once
  /// Bytes that a move sends from process to process, of all devices; nothing without `traffic`.
  [[nodiscard]] std::optional<int64_t> bytes_between_processes(const partition::Move& move) const;
};

/// Limit of devices for moves, plans and texts, as many as a server may have; shardings are explained for any mesh.
inline constexpr int64_t kMaxPlannedDevices = 4096;

/// Throws what propagate_for throws; a failure of partition or plan is part of the result. `settings`: of the plan.
Explanation explain(const ParsedRef& parsed, const LowerRequest& request, const PlanSettings& settings);

/// The program that every device runs, as StableHLO text (partition/export/device_module.h). Throws what the stages
/// throw, unsupported_partition for what StableHLO cannot express, and too_few_devices beyond kMaxPlannedDevices.
std::string device_text(const ParsedProgram& parsed, const LowerRequest& request);

/// Dimensions that are padded or replicated because nothing else divides; each value and dimension once.
std::vector<Indivisible> find_indivisible(const propagation::Propagated& propagated);

}  // namespace meshd::compile
