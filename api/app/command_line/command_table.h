// The one table of commands and options: the tree of CLI::App that is declared in serve_options.cpp,
// client_commands.cpp and command_line.cpp, as rows. Parsing and --help use the tree itself; the configuration file,
// the manual page, the completions of shells and the check of environment variables read these rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace meshd::api {

/// What an option's value is, as its type name: shells complete it then.
inline constexpr const char* kFile = "FILE";
inline constexpr const char* kFolder = "FOLDER";
/// The group of the options by which the client finds its server; the configuration file has them.
inline constexpr const char* kServerGroup = "Server";

struct OptionRow {
  std::string name;        ///< "--listen"; of a positional one "file"
  std::string short_name;  ///< "-o", or empty
  std::string negated;     ///< "--no-mesh-stack", or empty
  std::string about;
  std::string value;                 ///< "FILE", "TEXT", "INT"; empty: a flag
  std::vector<std::string> choices;  ///< the values that there are; empty: any
  std::string variable;              ///< "MESHD_LISTEN", or empty
  std::string usual;                 ///< its default, or empty
  std::string group;
  bool is_required = false;
  bool is_repeated = false;
};

struct CommandRow {
  std::vector<std::string> path;  ///< {"tokens", "hash"}; empty: the binary itself
  std::string about;
  std::string group;
  std::vector<OptionRow> options;
  std::vector<OptionRow> positionals;
  std::vector<std::string> subcommands;

  /// "tokens hash".
  [[nodiscard]] std::string name() const;
};

/// All of them, a command before its subcommands.
std::vector<CommandRow> command_rows(const CLI::App& cli);

/// All environment variables that an option of some command reads.
std::vector<std::string> variables_of(const std::vector<CommandRow>& commands);

}  // namespace meshd::api
