#include "service/jobs/inspect.h"

#include "service/jobs/admission/device_assignment.h"

namespace meshd::jobs {

Inspection explain(const JobRequest& request, const compile::PlanSettings& settings,
                   const std::vector<std::string_view>& stages) {
  const compile::LowerRequest lower = assign_abstract(request);
  Inspection out{compile::explain(request.program, lower, settings), {}};
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
