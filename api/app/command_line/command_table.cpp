#include "api/app/command_line/command_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace meshd::api {
namespace {

/// {"a", "b"} of "TEXT:{a,b}".
std::vector<std::string> choices_of(const std::string& type) {
  const size_t open = type.find('{');
  const size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

OptionRow option_row(const CLI::Option& option) {
  OptionRow out;
  const bool is_positional = option.get_positional();
  if (is_positional) out.name = option.get_name(true);
  if (!option.get_lnames().empty()) out.name = "--" + option.get_lnames()[0];
  if (!option.get_snames().empty()) out.short_name = "-" + option.get_snames()[0];
  for (const std::string& name : option.get_fnames()) {
    if (option.get_flag_value(name, "") == "false") out.negated = "--" + name;
  }
  const std::string type = option.get_type_name();
  const bool is_flag = option.get_items_expected_max() == 0;
  if (!is_flag) {
    out.value = type.substr(0, type.find_first_of(":= "));
    out.choices = choices_of(type);
    out.usual = option.get_default_str();
  }
  out.about = option.get_description();
  out.variable = option.get_envname();
  out.group = option.get_group();
  out.is_required = option.get_required();
  out.is_repeated = option.get_items_expected_max() > 1;
  return out;
}

void append(const CLI::App& app, const std::vector<std::string>& path, std::vector<CommandRow>& out) {
  CommandRow row;
  row.path = path;
  row.about = app.get_description();
  row.group = app.get_group();
  for (const CLI::Option* option : app.get_options()) {
    (option->get_positional() ? row.positionals : row.options).push_back(option_row(*option));
  }
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* each : subcommands) row.subcommands.push_back(each->get_name());
  out.push_back(std::move(row));
  for (const CLI::App* each : subcommands) {
    std::vector<std::string> below = path;
    below.push_back(each->get_name());
    append(*each, below, out);
  }
}

}  // namespace

std::string CommandRow::name() const { return CLI::detail::join(path, " "); }

std::vector<CommandRow> command_rows(const CLI::App& cli) {
  std::vector<CommandRow> out;
  append(cli, {}, out);
  return out;
}

std::vector<std::string> variables_of(const std::vector<CommandRow>& commands) {
  std::vector<std::string> out;
  for (const CommandRow& command : commands) {
    for (const OptionRow& option : command.options) {
      if (!option.variable.empty()) out.push_back(option.variable);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace meshd::api
