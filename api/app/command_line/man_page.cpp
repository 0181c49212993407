#include "api/app/command_line/man_page.h"

#include <fmt/core.h>

#include <map>

#include "api/client/text/failure.h"

namespace meshd::api {
namespace {

/// Text of a line: no control character of roff, no hyphen where a minus is meant.
std::string roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

/// The signature of a positional argument or an option: "[--mesh TEXT]".
std::string brief(const OptionRow& option) {
  const bool is_positional = !option.name.starts_with('-');
  const std::string shown =
      is_positional ? option.name : option.name + (option.value.empty() ? "" : " " + option.value);
  return (option.is_required ? shown : "[" + shown + "]") + (option.is_repeated ? "..." : "");
}

std::string option_text(const OptionRow& option) {
  std::string head;
  if (!option.short_name.empty()) head = fmt::format("\\fB{}\\fR, ", roff(option.short_name));
  head += fmt::format("\\fB{}\\fR", roff(option.name));
  if (!option.negated.empty()) head += fmt::format(", \\fB{}\\fR", roff(option.negated));
  if (!option.value.empty() && option.name.starts_with('-')) head += fmt::format(" \\fI{}\\fR", roff(option.value));
  std::string about = roff(option.about);
  if (!option.choices.empty()) {
    std::string words;
    for (const std::string& each : option.choices) words += (words.empty() ? "" : ", ") + each;
    about += fmt::format(" ({})", roff(words));
  }
  if (!option.usual.empty()) about += fmt::format(". Default: {}", roff(option.usual));
  if (!option.variable.empty()) about += fmt::format(". Variable: {}", option.variable);
  return fmt::format(".TP\n{}\n{}\n", head, about);
}

/// The options that every command of the client has are told of once.
bool is_common(const OptionRow& option) { return option.group == kServerGroup || option.name == "--help"; }

}  // namespace

std::string man_page(const std::vector<CommandRow>& commands, const std::string& version) {
  std::string out = fmt::format(
      ".TH MESHD 1 \"\" \"meshd {}\" \"User Commands\"\n.SH NAME\nmeshd \\- sharded arrays and sharded array programs "
      "over "
      "HTTP\n.SH SYNOPSIS\n.B meshd\n.I command\n.RI [ option ...]\n.RI [ argument ...]\n.SH DESCRIPTION\n"
      ".B meshd serve\nkeeps sharded arrays and runs sharded array programs for clients that speak HTTP. The other "
      "commands are a client of such a server, or maintain its data folder.\n.SH COMMANDS\n",
      version);
  std::map<std::string, OptionRow> variables;
  std::string common;
  for (const CommandRow& command : commands) {
    for (const OptionRow& option : command.options) {
      if (!option.variable.empty()) variables.emplace(option.variable, option);
      if (option.group == kServerGroup && common.find("\\fB" + roff(option.name) + "\\fR") == std::string::npos) {
        common += option_text(option);
      }
    }
    if (command.path.empty()) continue;
    std::string synopsis = "meshd " + command.name();
    if (!command.subcommands.empty()) synopsis += " COMMAND";
    for (const OptionRow& positional : command.positionals) synopsis += " " + brief(positional);
    out += fmt::format(".SS {}\n{}.\n", roff(synopsis), roff(command.about));
    for (const OptionRow& positional : command.positionals) out += option_text(positional);
    for (const OptionRow& option : command.options) {
      if (!is_common(option)) out += option_text(option);
    }
  }
  out += ".SH OPTIONS OF THE CLIENT\nEvery command that asks a server takes these.\n" + common;
  out += ".SH EXIT STATUS\n";
  for (const client::ExitCodeRow& row : client::kExitCodes)
    out += fmt::format(".TP\n.B {}\n{}\n", row.code, roff(row.when));
  out += ".SH ENVIRONMENT\nEach is the default of an option; the command line wins.\n";
  for (const auto& [name, option] : variables) {
    out += fmt::format(".TP\n.B {}\n{}: {}\n", name, roff(option.name), roff(option.about));
  }
  out += fmt::format(
      ".SH FILES\nA configuration file in TOML has a table [serve] with options of the server and a table [client] "
      "with "
      "those of the client, without the leading {0}{0}; the environment and the command line win. "
      ".B meshd serve {0}{0}print{0}config\nwrites one with what is in effect.\n.TP\n.I "
      "$XDG_CONFIG_HOME/meshd/config.toml\n"
      "is read by commands of the client where {0}{0}config and MESHD_CONFIG name no other; XDG_CONFIG_HOME is "
      "~/.config "
      "where it is not set.\n",
      "\\-");
  return out;
}

}  // namespace meshd::api
