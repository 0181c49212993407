// What a program would do where a request places it, told without running it and without data: the answers of
// :explain, :partition and :suggest. Any number of devices, abstract meshes among them (assign_abstract). Pure; any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "service/compile/explain/explain.h"
#include "service/compile/explain/snapshots.h"
#include "service/compile/explain/suggest.h"
#include "service/jobs/job_request.h"

namespace meshd::jobs {

/// An explanation, and the program after each of the stages that were asked for.
struct Inspection {
  compile::Explanation explanation;
  std::vector<compile::Snapshot> snapshots;
};

/// `threads`: those that plans are made for (Compiler::threads). `stages`: as compile::read_stage_names gives them.
/// `processes` have the server's devices: where a run would be on devices of several, Explanation::traffic is told.
/// Throws what assign_abstract throws, and what propagation throws; where a later stage stops,
/// Explanation::unplanned says why.
Inspection explain(const JobRequest& request, const compile::PlanSettings& settings,
                   const std::vector<std::string_view>& stages, const mesh::Processes& processes);

/// The program that each of so many devices runs, as MLIR text.
struct DeviceProgram {
  int64_t device_count = 1;
  std::string text;
};

/// Throws what assign_abstract and the stages up to partition throw.
DeviceProgram device_program(const JobRequest& request);

/// The program before it is placed, as StableHLO text in generic form.
std::string stablehlo_text(const JobRequest& request);

/// Cheaper shardings of the arguments that nobody annotated. The search ends when `stop` says so, with what it has
/// found by then.
compile::Suggestions suggest(const JobRequest& request, const compile::PlanSettings& settings,
                             const std::function<bool()>& stop);

}  // namespace meshd::jobs
