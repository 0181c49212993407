// Where the server listens and whom it answers there.
#pragma once

#include "api/app/options.h"
#include "api/server/server.h"

namespace meshd::api {

/// The front's options. Throws core::Error internal, fit for a terminal, where an option is wrong, and where everybody
/// in the network could use the server without a token and --insecure does not say that this is meant.
ServerOptions server_options(const AppOptions& options);

}  // namespace meshd::api
