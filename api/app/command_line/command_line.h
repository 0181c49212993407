// The command line: declares the table of commands and options, reads configuration file, environment and arguments
// into it, and runs one command. Each option of `serve` has an environment variable MESHD_...; the command line wins
// over the environment, and that over the file.
#pragma once

#include <functional>

#include "api/app/serving/options.h"

namespace meshd::api {

/// The exit code of the process. Prints help to standard output and mistakes to standard error, with the nearest name
/// for a command or an option that there is not. `serve` runs the server.
int run_command_line(int argc, const char* const* argv, const std::function<int(const AppOptions&)>& serve);

}  // namespace meshd::api
