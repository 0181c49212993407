// The options of `meshd serve`: a row each, with its environment variable MESHD_..., limits and default.
#pragma once

#include "api/app/serving/options.h"

namespace CLI {
class App;
}

namespace meshd::api {

/// Declares them; they are read into `options`.
void declare_serve_options(CLI::App& serve, AppOptions& options);

}  // namespace meshd::api
