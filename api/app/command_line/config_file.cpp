#include "api/app/command_line/config_file.h"

#include <fmt/core.h>
#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "api/app/command_line/command_table.h"
#include "service/core/error.h"
#include "service/core/near_names.h"

namespace meshd::api {
namespace {

constexpr const char* kServeTable = "serve";
constexpr const char* kClientTable = "client";

[[noreturn]] void refuse(const std::string& path, const toml::source_region& place, const std::string& what) {
  throw core::Error("invalid_request", fmt::format("{}:{}: {}", path, place.begin.line, what));
}

bool is_configured(const CLI::Option& option, bool is_client) {
  if (option.get_positional() || option.get_lnames().empty()) return false;
  if (is_client) return option.get_group() == kServerGroup;
  const std::string& name = option.get_lnames()[0];
  return name != "help" && name != "config" && name != "print-config";
}

/// "listen" of an option that the file may have.
std::vector<std::string> keys_of(const CLI::App& command, bool is_client) {
  std::vector<std::string> out;
  for (const CLI::Option* option : command.get_options()) {
    if (is_configured(*option, is_client)) out.push_back(option->get_lnames()[0]);
  }
  return out;
}

/// As it would be typed behind the option; nothing for what no option takes (a date, a table).
std::string scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return "";
}

std::string option_text(const std::string& path, const std::string& key, const toml::node& node, bool is_list) {
  const bool is_scalar = node.is_string() || node.is_number() || node.is_boolean();
  if (is_scalar && !is_list) return scalar_text(node);
  if (is_scalar) return "[" + scalar_text(node) + "]";
  const toml::array* list = node.as_array();
  if (list == nullptr || !is_list) {
    refuse(
        path, node.source(),
        fmt::format("{}: expected {}", key, is_list ? "a text or a list of texts" : "a text, a number or a boolean"));
  }
  std::string out;
  for (const toml::node& each : *list) {
    if (!each.is_string() && !each.is_number()) refuse(path, each.source(), fmt::format("{}: expected texts", key));
    out += (out.empty() ? "" : ",") + scalar_text(each);
  }
  return "[" + out + "]";
}

void apply_table(const std::string& path, const toml::table& table, CLI::App& command, const char* name) {
  const std::vector<std::string> keys = keys_of(command, name == std::string_view(kClientTable));
  for (const auto& [key_node, value] : table) {
    const std::string key(key_node.str());
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      refuse(path, key_node.source(), fmt::format("{} has no option '{}'{}", name, key, core::did_you_mean(key, keys)));
    }
    CLI::Option& option = *command.get_option("--" + key);
    const bool is_list = option.get_items_expected_max() > 1;
    const std::string text = option_text(path, key, value, is_list);
    if (is_list && text == "[]") continue;
    try {
      option.run_callback_for_default()->default_val(text);
    } catch (const CLI::Error& error) {
      refuse(path, value.source(), fmt::format("{}: {}", key, error.what()));
    }
  }
}

bool is_typed(const CLI::Option& option, const std::vector<std::string>& arguments) {
  const std::vector<std::string>& names = option.get_lnames();
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    const std::string name = argument.substr(0, argument.find('='));
    return std::any_of(names.begin(), names.end(), [&](const std::string& each) { return name == "--" + each; });
  });
}

std::string toml_text(const std::string& value, bool is_flag) {
  if (is_flag) return value.empty() || value == "0" || value == "false" ? "false" : "true";
  const bool is_number = !value.empty() && value.size() < 18 &&
                         std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
                         (value.size() == 1 || value[0] != '0');
  if (is_number) return value;
  std::ostringstream out;
  out << toml::value<std::string>(value);
  return out.str();
}

std::string list_text(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& each : values) out += (out.empty() ? "" : ", ") + toml_text(each, false);
  return "[" + out + "]";
}

}  // namespace

void apply_config_file(const std::string& path, const ConfiguredCommands& commands) {
  toml::table file;
  try {
    file = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    refuse(path, error.source(), std::string(error.description()));
  }
  const std::vector<std::string> tables = {kServeTable, kClientTable};
  for (const auto& [key, value] : file) {
    const std::string name(key.str());
    const toml::table* table = value.as_table();
    if (std::find(tables.begin(), tables.end(), name) == tables.end() || table == nullptr) {
      refuse(
          path, key.source(),
          fmt::format("expected the tables [serve] and [client], got '{}'{}", name, core::did_you_mean(name, tables)));
    }
    if (name == kServeTable) {
      apply_table(path, *table, *commands.serve, kServeTable);
    } else {
      for (CLI::App* each : commands.client) apply_table(path, *table, *each, kClientTable);
    }
  }
}

std::string config_text(const CLI::App& command, const std::string& table, const std::vector<std::string>& arguments,
                        const std::string& path) {
  std::vector<std::string> from_file;
  if (!path.empty()) {
    const toml::table file = toml::parse_file(path);
    if (const toml::table* found = file[table].as_table()) {
      for (const auto& [key, value] : *found) from_file.emplace_back(key.str());
    }
  }
  std::string out = fmt::format("[{}]\n", table);
  for (const CLI::Option* option : command.get_options()) {
    if (!is_configured(*option, table == kClientTable)) continue;
    const std::string& key = option->get_lnames()[0];
    const bool is_flag = option->get_items_expected_max() == 0;
    const bool is_list = option->get_items_expected_max() > 1;
    const bool is_default =
        option->count() == 0 && std::find(from_file.begin(), from_file.end(), key) == from_file.end();
    const char* source = is_default                     ? "default"
                         : option->count() == 0         ? "file"
                         : is_typed(*option, arguments) ? "command line"
                                                        : "environment";
    out += fmt::format("\n# {}\n", option->get_description());
    std::string usual = option->get_default_str();
    if (is_list && usual.starts_with('[')) usual = usual.substr(1, usual.size() - 2);
    const std::vector<std::string> values = option->count() > 0 ? option->results()
                                            : is_list           ? CLI::detail::split(usual, ',')
                                                                : std::vector{usual};
    const bool is_unset = !is_flag && (values.empty() || (values.size() == 1 && values[0].empty()));
    if (key == "token" && !is_unset) {
      out += fmt::format("# {} is given by the {} and not shown\n", key, source);
    } else if (is_unset) {
      out += fmt::format("# {} is not given\n", key);
    } else {
      out += fmt::format("{} = {}  # {}\n", key, is_list ? list_text(values) : toml_text(values[0], is_flag), source);
    }
  }
  return out;
}

}  // namespace meshd::api
