// Where the server listens, and which hosts and origins it accepts.
#pragma once

#include "api/app/serving/options.h"
#include "api/server/server.h"

namespace meshd::api {

/// The front's options. Throws core::Error internal, fit for a terminal, where an option is wrong, and where the server
/// would listen on a network without tokens and without --insecure.
ServerOptions server_options(const AppOptions& options);

}  // namespace meshd::api
