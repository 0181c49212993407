#include "service/jobs/inspect.h"

#include <algorithm>
#include <functional>

#include "service/core/error.h"
#include "service/jobs/admission/device_assignment.h"

namespace meshd::jobs {
namespace {

// By flat device, where a run would be on devices of several processes; empty where it would not, or the server has not
// the devices of the request.
std::vector<int> processes_of_run(const JobRequest& request, const mesh::Processes& processes) {
  if (processes.count == 1) return {};
  std::vector<int> out;
  try {
    for (const int64_t device : assign_devices(request, processes.devices).devices)
      out.push_back(static_cast<int>(processes.of(device)));
  } catch (const core::Error&) {
    return {};
  }
  const bool is_one = std::adjacent_find(out.begin(), out.end(), std::not_equal_to<>()) == out.end();
  return is_one && (out.empty() || out.front() == 0) ? std::vector<int>() : out;
}

}  // namespace

Inspection explain(const JobRequest& request, const compile::PlanSettings& settings,
                   const std::vector<std::string_view>& stages, const mesh::Processes& processes) {
  const compile::LowerRequest lower = assign_abstract(request);
  const std::vector<int> owners = processes_of_run(request, processes);
  // As it would be planned there, where processes are labels, too.
  compile::PlanSettings planned = settings;
  planned.shares_memory = settings.shares_memory && owners.empty();
  Inspection out{compile::explain(request.program, lower, planned), {}};
  compile::Explanation& explanation = out.explanation;
  if (explanation.plan != nullptr && static_cast<int64_t>(owners.size()) == explanation.plan->device_count)
    explanation.traffic = compile::find_traffic(*explanation.plan, owners);
  out.snapshots = compile::snapshots(out.explanation, lower, stages);
  return out;
}

DeviceProgram device_program(const JobRequest& request) {
  const compile::LowerRequest lower = assign_abstract(request);
  return {lower.device_count, compile::device_text(*request.program, lower)};
}

std::string stablehlo_text(const JobRequest& request) { return compile::module_text(*request.program); }

compile::Suggestions suggest(const JobRequest& request, const compile::PlanSettings& settings,
                             const std::function<bool()>& stop) {
  return compile::suggest(request.program, assign_abstract(request), settings, stop);
}

}  // namespace meshd::jobs
