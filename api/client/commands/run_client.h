// Runs a command of the client: what it throws becomes lines on standard error and the exit code.
#pragma once

#include <functional>

#include "api/client/transfer/connection.h"

namespace meshd::client {

/// With --json the problem document of the server is written instead of its text; what is not the server's is a
/// document of detail and exit_code.
int run_client(const CommonOptions& server, const char* name, const std::function<int()>& command);

}  // namespace meshd::client
