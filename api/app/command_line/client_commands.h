// The rows of the client's commands in the table of commands: names, arguments, options, and what runs.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "api/client/commands/commands.h"

namespace CLI {
class App;
}

namespace meshd::api {

/// Where the client's options are read into; the rows refer to it.
struct ClientOptions {
  client::CommonOptions server;
  client::PutOptions put;
  client::GetOptions get;
  client::ListOptions list;
  client::RemoveOptions remove;
  client::RunOptions run;
  client::ExplainOptions explain;
  client::SessionOptions session;
  client::JobFilter jobs;
  client::WatchOptions watch;
  std::string id, name, mesh, program, format, config;
  bool is_abstract = false;
  bool prints_config = false;
};

/// A command that asks a server, and what it does.
using ClientCommands = std::vector<std::pair<CLI::App*, std::function<int()>>>;

/// The options of the group kServerGroup, --json and those of the configuration file.
void declare_server_options(CLI::App& command, ClientOptions& options);

ClientCommands declare_client_commands(CLI::App& cli, ClientOptions& options);

}  // namespace meshd::api
