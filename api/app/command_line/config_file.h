// The configuration file: TOML with a table for the server and one for the client, whose keys are the names of options.
// What it says takes the place of an option's default, so that the environment and the command line win.
//
//   [serve]
//   listen = "0.0.0.0:8443"
//   allowed-host = ["meshd.example.org"]
//   [client]
//   url = "https://meshd.example.org:8443"
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace meshd::api {

/// What a table of the file configures: every option of `serve`, the options of the group kServerGroup of each of the
/// client's commands.
struct ConfiguredCommands {
  CLI::App* serve = nullptr;
  std::vector<CLI::App*> client;
};

/// Reads `path` and applies it. Throws core::Error whose detail is a line for a terminal with the place in the file:
/// "meshd.toml:3: serve has no option 'device'; did you mean 'devices'?".
void apply_config_file(const std::string& path, const ConfiguredCommands& commands);

/// The effective options of a command that was parsed, as a file that apply_config_file reads: each with what it is for
/// and where its value comes from. Tokens are left out. `arguments` are those of the command line.
std::string config_text(const CLI::App& command, const std::string& table, const std::vector<std::string>& arguments,
                        const std::string& path);

}  // namespace meshd::api
