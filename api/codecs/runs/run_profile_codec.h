// The profile of a run as JSON: a table of its steps, and a Chrome trace (the same object opens in Perfetto and in
// chrome://tracing, which read its traceEvents).
#pragma once

#include <optional>

#include "api/json/schema.h"
#include "service/compile/explain/traffic.h"
#include "service/compile/plan/plan.h"
#include "service/device/step_profile.h"
#include "service/kernels/machine_rates.h"

namespace meshd::api {

struct RunProfileDocument {
  const compile::Plan& plan;
  const device::RunProfile& profile;
  const kernels::MachineRates& machine;
  const std::optional<compile::Traffic>& traffic;  ///< where several processes took part
  int64_t argument_bytes = 0;                      ///< that went to others
  int64_t result_bytes = 0;                        ///< that came from others
};
template <>
Schema<compile::Traffic> make_schema();
template <>
Schema<RunProfileDocument> make_schema();

}  // namespace meshd::api
