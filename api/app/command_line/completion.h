// Completion scripts for shells, made from the table of commands and options: commands, options, the words that an
// option takes, files and folders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/app/command_line/command_table.h"

namespace meshd::api {

/// `shell`: "bash", "zsh" or "fish".
std::string completion_script(const std::vector<CommandRow>& commands, std::string_view shell);

}  // namespace meshd::api
