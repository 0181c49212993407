#include "service/jobs/stored/environment.h"

#include "service/kernels/kernel_choices.h"
#include "service/kernels/machine_rates.h"

namespace meshd::jobs {

std::string environment_text(const std::string& build, const compile::PlanSettings& settings) {
  std::string out = "meshd " + build + "; " + kernels::processor_name() + "; " + kernels::kernel_choices();
  for (const compile::PlanPass& pass : compile::kPlanPasses) {
    if (!(settings.*pass.is_on)) out += "; without " + std::string(pass.name);
  }
  return out;
}

}  // namespace meshd::jobs
