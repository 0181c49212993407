#include "api/app/command_line/command_line.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/app/command_line/client_commands.h"
#include "api/app/command_line/command_table.h"
#include "api/app/command_line/completion.h"
#include "api/app/command_line/config_file.h"
#include "api/app/command_line/environment.h"
#include "api/app/command_line/man_page.h"
#include "api/app/command_line/serve_options.h"
#include "api/app/local_commands/data_command.h"
#include "api/app/local_commands/probe.h"
#include "api/app/local_commands/tokens_command.h"
#include "api/app/serving/app.h"
#include "api/app/serving/build.h"
#include "api/client/commands/run_client.h"
#include "api/client/text/failure.h"
#include "service/core/error.h"
#include "service/core/near_names.h"

namespace meshd::api {
namespace {

const char* const kMaintenance = "Running a server";
const char* const kShell = "This program";

/// Files are private from their creation on: those of a data folder, not those that the client writes.
void make_files_private() { umask(S_IRWXG | S_IRWXO); }

/// Variables that no option reads, a line each. The options are the list: a new one is known at once.
std::vector<std::string> unread_variables(const std::vector<CommandRow>& commands) {
  std::vector<std::string_view> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return unknown_variables(entries, variables_of(commands));
}

/// Where the client's configuration is, unless it is told.
std::string own_config_file() {
  const char* folder = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  std::string path;
  if (folder != nullptr && *folder != '\0') {
    path = std::string(folder) + "/meshd/config.toml";
  } else if (home != nullptr && *home != '\0') {
    path = std::string(home) + "/.config/meshd/config.toml";
  }
  return !path.empty() && ::access(path.c_str(), F_OK) == 0 ? path : "";
}

/// All that is parsed and run; one a process.
class CommandLine {
 public:
  CommandLine(std::vector<std::string> arguments, const std::function<int(const AppOptions&)>& serve)
      : arguments_(std::move(arguments)), serve_(serve) {
    declare();
  }

  int run() {
    // `meshd help get` is `meshd get --help`.
    if (!arguments_.empty() && arguments_[0] == "help") {
      arguments_.erase(arguments_.begin());
      arguments_.emplace_back("--help");
    }
    try {
      read_config_file();
    } catch (const core::Error& error) {
      std::fprintf(stderr, "%s\n", error.detail().c_str());
      return client::kUsage;
    }
    protect_lists();
    try {
      std::vector<std::string> reversed(arguments_.rbegin(), arguments_.rend());
      cli_.parse(reversed);
    } catch (const CLI::Success& help) {
      return cli_.exit(help);
    } catch (const CLI::ParseError& error) {
      std::fprintf(stderr, "%s\n", mistake_text(error).c_str());
      return client::kUsage;
    }
    if (serve_command_->parsed()) return run_server();
    const CLI::App* chosen = &leaf();
    for (const auto& [command, run] : client_) {
      if (command == chosen) return run_client_command(*command, run);
    }
    for (const auto& [command, run] : local_) {
      if (command == chosen) return run();
    }
    return client::kUsage;
  }

 private:
  void declare();
  void declare_data_commands();
  void declare_shell_commands();

  /// The command that was chosen, of several levels the last.
  const CLI::App& leaf() const {
    const CLI::App* out = &cli_;
    while (!out->get_subcommands().empty()) out = out->get_subcommands().front();
    return *out;
  }

  std::string name_of(const CLI::App& command) const {
    if (&command == &cli_) return "";
    std::string out = command.get_name();
    for (const CLI::App* above = command.get_parent(); above != nullptr && above != &cli_;
         above = above->get_parent()) {
      out = above->get_name() + " " + out;
    }
    return out;
  }

  /// CLI11 takes a repeated argument in brackets apart: [1, 2] would be two arguments of a run. A space before it,
  /// which JSON passes over, keeps it whole.
  void protect_lists() {
    if (arguments_.empty() || (arguments_[0] != "run" && arguments_[0] != "explain")) return;
    for (std::string& each : arguments_) {
      if (each.starts_with('[')) each.insert(0, 1, ' ');
    }
  }

  /// What --config says: before the parser, whose defaults it changes.
  std::optional<std::string> given_config() const {
    constexpr std::string_view kOption = "--config";
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i] == kOption && i + 1 < arguments_.size()) return arguments_[i + 1];
      if (arguments_[i].starts_with("--config=")) return arguments_[i].substr(kOption.size() + 1);
    }
    const char* variable = std::getenv("MESHD_CONFIG");
    return variable != nullptr && *variable != '\0' ? std::optional<std::string>(variable) : std::nullopt;
  }

  void read_config_file() {
    if (arguments_.empty()) return;
    const bool is_serve = arguments_[0] == serve_command_->get_name();
    const bool is_client = std::any_of(client_.begin(), client_.end(), [&](const auto& each) {
      return each.first->get_parent() == &cli_ && each.first->get_name() == arguments_[0];
    });
    if (!is_serve && !is_client) return;
    config_path_ = given_config().value_or(is_client ? own_config_file() : "");
    ConfiguredCommands commands{serve_command_, {}};
    for (const auto& [command, run] : client_) {
      commands.client.push_back(command);
      // What is printed needs no arguments.
      if (std::find(arguments_.begin(), arguments_.end(), "--print-config") == arguments_.end()) continue;
      for (CLI::Option* option : command->get_options()) option->required(false);
    }
    if (!config_path_.empty()) apply_config_file(config_path_, commands);
  }

  std::string mistake_text(const CLI::ParseError& error) const {
    const CLI::App& command = leaf();
    const std::string name = name_of(command);
    const std::string help = fmt::format("\nmeshd {}--help tells more", name.empty() ? "" : name + " ");
    const std::vector<std::string> rest = cli_.remaining(true);
    const std::vector<CommandRow> rows = command_rows(cli_);
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const CommandRow& each) { return each.name() == name; });
    const std::string who = name.empty() ? "meshd" : "meshd " + name;
    for (const std::string& given : rest) {
      if (given.starts_with('-') && given.size() > 1) {
        const std::string option = given.substr(0, given.find('='));
        std::vector<std::string> known;
        for (const OptionRow& each : row->options) known.push_back(each.name);
        return fmt::format("{}: no option '{}'{}", who, option, core::did_you_mean(option, known)) + help;
      }
      if (!row->subcommands.empty()) {
        return fmt::format("{}: no command '{}'{}", who, given, core::did_you_mean(given, row->subcommands)) + help;
      }
    }
    if (!rest.empty()) return fmt::format("{}: '{}' was not expected", who, rest.front()) + help;
    return fmt::format("{}: {}", who, error.what()) + help;
  }

  int run_server() {
    if (prints_serve_config_) {
      std::printf("%s", config_text(*serve_command_, "serve", arguments_, config_path_).c_str());
      return client::kDone;
    }
    std::vector<std::string> wrong = unread_variables(command_rows(cli_));
    if (options_.tls_certificate.empty() != options_.tls_key.empty()) {
      wrong.emplace_back("--tls-cert and --tls-key are given together or not at all");
    }
    for (const std::string& line : wrong) std::fprintf(stderr, "%s\n", line.c_str());
    if (!wrong.empty()) return client::kUsage;
    // A name that is near, and a server that would not ask for tokens.
    if (options_.tokens_file.empty() && std::getenv("MESHD_TOKEN") != nullptr) {
      std::fprintf(stderr, "MESHD_TOKEN is the token of a client; a file of tokens for the server is MESHD_TOKENS\n");
    }
    make_files_private();
    return serve_(options_);
  }

  int run_client_command(const CLI::App& command, const std::function<int()>& run) {
    if (client_options_.prints_config) {
      std::printf("%s", config_text(command, "client", arguments_, config_path_).c_str());
      return client::kDone;
    }
    return client::run_client(client_options_.server, name_of(command).c_str(), run);
  }

  std::vector<std::string> arguments_;
  const std::function<int(const AppOptions&)>& serve_;
  CLI::App cli_{"meshd keeps sharded arrays and runs sharded array programs over HTTP", "meshd"};
  CLI::App* serve_command_ = nullptr;
  AppOptions options_;
  ClientOptions client_options_;
  ClientCommands client_;
  ClientCommands local_;
  ProbeOptions probe_;
  std::string adopt_name_, adopt_token_, backup_, folder_, shell_, config_path_;
  bool prints_serve_config_ = false;
};

void CommandLine::declare() {
  cli_.set_version_flag("--version", version());
  cli_.require_subcommand(1);
  serve_command_ = cli_.add_subcommand("serve", "serve HTTP until SIGTERM");
  serve_command_->group(kMaintenance);
  serve_command_->add_option("--config", client_options_.config, "configuration file in TOML; its table [serve] counts")
      ->envname("MESHD_CONFIG")
      ->type_name(kFile);
  serve_command_->add_flag("--print-config", prints_serve_config_, "print the options in effect as such a file");
  declare_serve_options(*serve_command_, options_);
  client_ = declare_client_commands(cli_, client_options_);
  declare_data_commands();
  declare_shell_commands();
}

void CommandLine::declare_data_commands() {
  const auto add = [this](const char* name, const char* about, std::function<int()> run,
                          CLI::App* above = nullptr) -> CLI::App& {
    CLI::App& command = *(above != nullptr ? above : &cli_)->add_subcommand(name, about);
    command.group(above != nullptr ? "Subcommands" : kMaintenance);
    local_.emplace_back(&command, std::move(run));
    return command;
  };
  const auto with_data = [this](CLI::App& command) {
    command.add_option("--data", options_.data, "data folder")
        ->envname("MESHD_DATA")
        ->type_name(kFolder)
        ->capture_default_str();
  };
  CLI::App& health =
      add("health", "ask a server for /readyz; exit 0 when it is ready", [this] { return probe(probe_) ? 0 : 1; });
  health.add_option("address", probe_.address, "address and port, or https://address:port")->capture_default_str();
  health
      .add_option("--ca", probe_.ca_file,
                  "PEM file with the certificates that https:// trusts, instead of the system's")
      ->type_name(kFile);
  health.add_flag("--insecure-skip-verify", probe_.skips_verification, "take any certificate");

  CLI::App& tokens = *cli_.add_subcommand("tokens", "the file of tokens, and whose data is whose");
  tokens.group(kMaintenance);
  tokens.require_subcommand(1);
  add(
      "hash", "print sha256:HEX of the token on stdin, for the file of tokens", [] { return hash_token(); }, &tokens);
  CLI::App& adopt = add(
      "adopt", "give the data of a token that had no name to a name; no server may use the data folder meanwhile",
      [this] { return adopt_data(options_.data, adopt_name_, adopt_token_); }, &tokens);
  with_data(adopt);
  adopt.add_option("name", adopt_name_, "name in the file of tokens")->required();
  adopt.add_option("token", adopt_token_, "the token, its principal tok_..., or - to read it from stdin")->required();

  // With --data it is the folder's, else the server's: the variable of a server's data folder does not decide it.
  CLI::App& backup = *cli_.add_subcommand(
      "backup", "copy all data: a server's while it goes on, or with --data a folder's that no server uses");
  backup.group(kMaintenance);
  declare_server_options(backup, client_options_);
  backup.add_option("name", backup_, "name of the backup in the server's folder of backups; with --data a new folder");
  backup.add_option("--data", folder_, "data folder that no server uses")->type_name(kFolder);
  client_.emplace_back(&backup, [this] {
    if (folder_.empty()) return client::make_backup(client_options_.server, backup_);
    if (backup_.empty()) throw client::Failure(client::kUsage, "--data needs the name of a new folder for the copy");
    make_files_private();
    return back_up_data(folder_, backup_);
  });

  CLI::App& restore = add("restore", "check a backup and make a new data folder of it", [this] {
    make_files_private();
    return restore_data(backup_, options_.data);
  });
  with_data(restore);
  restore.add_option("folder", backup_, "the backup")->required()->type_name(kFolder);
  with_data(add("fsck", "read all of a data folder that no server uses; exit 1 when it is damaged",
                [this] { return check_data(options_.data); }));
}

void CommandLine::declare_shell_commands() {
  CLI::App& completion = *cli_.add_subcommand("completion", "print the completion script of a shell");
  completion.group(kShell);
  completion.add_option("shell", shell_, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  local_.emplace_back(&completion, [this] {
    std::printf("%s", completion_script(command_rows(cli_), shell_).c_str());
    return client::kDone;
  });
  CLI::App& man = *cli_.add_subcommand("man", "print the manual page, for man -l -");
  man.group(kShell);
  local_.emplace_back(&man, [this] {
    std::printf("%s", man_page(command_rows(cli_), version()).c_str());
    return client::kDone;
  });
}

}  // namespace

int run_command_line(int argc, const char* const* argv, const std::function<int(const AppOptions&)>& serve) {
  return CommandLine(std::vector<std::string>(argv + 1, argv + argc), serve).run();
}

}  // namespace meshd::api
