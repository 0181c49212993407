// An effect of a log as a line for people: its values in the places that the name leaves open.
//
//   log "loss {} at {}" with values 0.5 and 3 -> loss 0.5 at 3
#pragma once

#include <string>

#include "api/client/text/json.h"

namespace meshd::client {

std::string effect_text(const Json& effect);

/// "2 of 10 iterations, cosine in line 3, 0:12 left" of a running job.
std::string progress_text(const Json& progress);

}  // namespace meshd::client
