// Parses the command line and the environment: the command and its options. Each option of `serve` has an environment
// variable MESHD_...; the command line wins.
#pragma once

#include <string>

#include "api/app/options.h"
#include "api/app/probe.h"

namespace meshd::api {

struct CommandLine {
  enum class Command {
    kNone,    ///< nothing is left to do: help, the version or a mistake was printed
    kServe,   ///< with `options`
    kHealth,  ///< with `probe`
    kHashToken,
    kAdopt,    ///< gives the data of `adopt_token` in `options.data` to `adopt_name`
    kBackUp,   ///< copies `options.data` to `backup`
    kRestore,  ///< makes `options.data` of `backup`
    kCheck,    ///< of `options.data`
  };
  Command command = Command::kNone;
  int exit_code = 0;  ///< of kNone: 0 for help and the version
  AppOptions options;
  ProbeOptions probe;
  std::string adopt_name;
  std::string adopt_token;
  std::string backup;
};

/// Reads the arguments of main and the environment. Prints help to stdout and mistakes to stderr.
CommandLine read_command_line(int argc, const char* const* argv);

}  // namespace meshd::api
