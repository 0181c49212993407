#include "api/app/command_line/completion.h"

#include <fmt/core.h>

#include <algorithm>

namespace meshd::api {
namespace {

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string out;
  for (const std::string& each : words) out += (out.empty() ? "" : separator) + each;
  return out;
}

std::string with_backslashes(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// In single quotes of a shell.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> names_of(const OptionRow& option) {
  std::vector<std::string> out;
  for (const std::string& name : {option.name, option.short_name, option.negated}) {
    if (!name.empty()) out.push_back(name);
  }
  return out;
}

bool takes_files(const OptionRow& option) { return option.value == kFile; }

// bash: the path of the command is found in the words before; then either the value of the option before the cursor is
// completed, or options, subcommands and files.
std::string bash_script(const std::vector<CommandRow>& commands) {
  std::string paths, values, words;
  for (const CommandRow& command : commands) {
    const std::string path = command.name();
    for (const std::string& each : command.subcommands) {
      const std::string below = path.empty() ? each : path + " " + each;
      paths += fmt::format("      {}) path={} ;;\n", shell_quoted(path + ":" + each), shell_quoted(below));
    }
    std::vector<std::string> all = command.subcommands;
    for (const OptionRow& option : command.options) {
      const std::vector<std::string> names = names_of(option);
      all.insert(all.end(), names.begin(), names.end());
      if (option.value.empty()) continue;
      const std::string how = !option.choices.empty() ? fmt::format("-W {}", shell_quoted(joined(option.choices, " ")))
                              : option.value == kFolder ? "-d"
                              : takes_files(option)     ? "-f"
                                                        : "-W ''";
      for (const std::string& name : names) {
        values += fmt::format("    {}) COMPREPLY=($(compgen {} -- \"$current\")); return ;;\n",
                              shell_quoted(path + ":" + name), how);
      }
    }
    const bool has_files = std::any_of(command.positionals.begin(), command.positionals.end(), takes_files);
    words += fmt::format("    {}) words={}{} ;;\n", shell_quoted(path), shell_quoted(joined(all, " ")),
                         has_files ? " files=1" : "");
  }
  return fmt::format(
      R"(# bash completion of meshd, made by `meshd completion bash`.
_meshd() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} path= words= files= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path:${{COMP_WORDS[i]}}" in
{}    esac
  done
  case "$path:$before" in
{}  esac
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ -n $files && $current != -* ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}}
complete -F _meshd meshd
)",
      paths, values, words);
}

std::string zsh_action(const OptionRow& option) {
  const std::string what = with_backslashes(option.value, ":");
  if (!option.choices.empty()) return fmt::format(":{}:({})", what, joined(option.choices, " "));
  if (option.value == kFolder) return fmt::format(":{}:_files -/", what);
  return takes_files(option) ? fmt::format(":{}:_files", what) : fmt::format(":{}: ", what);
}

std::string zsh_function(const CommandRow& command) {
  return "_meshd" + (command.path.empty() ? "" : "_" + joined(command.path, "_"));
}

// zsh: a function for each command; those with subcommands call theirs for the rest of the words.
std::string zsh_script(const std::vector<CommandRow>& commands) {
  std::string out = "#compdef meshd\n# zsh completion of meshd, made by `meshd completion zsh`.\n";
  for (const CommandRow& command : commands) {
    const std::string function = zsh_function(command);
    std::string specs;
    for (const OptionRow& option : command.options) {
      const std::string about = with_backslashes(option.about, "\\[]:");
      for (const std::string& name : names_of(option)) {
        const std::string spec = fmt::format("{}{}[{}]{}", option.is_repeated ? "*" : "", name, about,
                                             option.value.empty() ? "" : zsh_action(option));
        specs += fmt::format(" \\\n    {}", shell_quoted(spec));
      }
    }
    if (command.subcommands.empty()) {
      for (const OptionRow& positional : command.positionals) {
        specs += fmt::format(" \\\n    {}", shell_quoted((positional.is_repeated ? "*" : "") + zsh_action(positional)));
      }
      out += fmt::format("{}() {{\n  _arguments -s{}\n}}\n", function, specs);
      continue;
    }
    std::string described, cases;
    for (const std::string& each : command.subcommands) {
      const auto found = std::find_if(commands.begin(), commands.end(), [&](const CommandRow& row) {
        return row.path.size() == command.path.size() + 1 && row.path.back() == each &&
               std::equal(command.path.begin(), command.path.end(), row.path.begin());
      });
      described += fmt::format(" {}", shell_quoted(with_backslashes(each, ":") + ":" + found->about));
      cases += fmt::format("      {}) {} ;;\n", each, zsh_function(*found));
    }
    out += fmt::format(
        "{}() {{\n  local context state state_descr line\n  typeset -A opt_args\n  local -a commands=({})\n"
        "  _arguments -C{} \\\n    '1: :->command' '*:: :->rest'\n  case $state in\n"
        "    command) _describe command commands ;;\n    rest) case $words[1] in\n{}    esac ;;\n  esac\n}}\n",
        function, described, specs, cases);
  }
  return out + "if [ \"$funcstack[1]\" = \"_meshd\" ]; then _meshd \"$@\"; else compdef _meshd meshd; fi\n";
}

// fish: a line for each command and option, with the condition under which it is offered.
std::string fish_script(const std::vector<CommandRow>& commands) {
  std::string out = "# fish completion of meshd, made by `meshd completion fish`.\ncomplete -c meshd -f\n";
  for (const CommandRow& command : commands) {
    std::string condition = command.path.empty() ? "__fish_use_subcommand" : "";
    for (const std::string& each : command.path) {
      condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", each);
    }
    if (!command.subcommands.empty() && !command.path.empty()) {
      condition += fmt::format("; and not __fish_seen_subcommand_from {}", joined(command.subcommands, " "));
    }
    const std::string when = shell_quoted(condition);
    for (const CommandRow& each : commands) {
      if (each.path.size() != command.path.size() + 1 ||
          !std::equal(command.path.begin(), command.path.end(), each.path.begin())) {
        continue;
      }
      out += fmt::format("complete -c meshd -n {} -a {} -d {}\n", when, each.path.back(), shell_quoted(each.about));
    }
    for (const OptionRow& option : command.options) {
      const std::string value = option.value.empty() ? ""
                                : !option.choices.empty()
                                    ? fmt::format(" -x -a {}", shell_quoted(joined(option.choices, " ")))
                                : option.value == kFolder ? " -x -a '(__fish_complete_directories)'"
                                : takes_files(option)     ? " -r -F"
                                                          : " -x";
      const std::string letter = option.short_name.empty() ? "" : " -s " + option.short_name.substr(1);
      out += fmt::format("complete -c meshd -n {} -l {}{}{} -d {}\n", when, option.name.substr(2), letter, value,
                         shell_quoted(option.about));
      if (!option.negated.empty()) {
        out += fmt::format("complete -c meshd -n {} -l {} -d {}\n", when, option.negated.substr(2),
                           shell_quoted("not: " + option.about));
      }
    }
    if (std::any_of(command.positionals.begin(), command.positionals.end(), takes_files)) {
      out += fmt::format("complete -c meshd -n {} -F\n", when);
    }
  }
  return out;
}

}  // namespace

std::string completion_script(const std::vector<CommandRow>& commands, std::string_view shell) {
  return shell == "bash" ? bash_script(commands) : shell == "zsh" ? zsh_script(commands) : fish_script(commands);
}

}  // namespace meshd::api
