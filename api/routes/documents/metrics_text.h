// All metrics in Prometheus' text format. One row each: name, help, type, samples.
#pragma once

#include <string>

#include "api/routes/routes.h"

namespace meshd::api {

std::string metrics_text(Services& services, const ProcessFacts& facts);

}  // namespace meshd::api
