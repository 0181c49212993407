// The manual page meshd(1), made from the table of commands and options and the table of exit codes.
#pragma once

#include <string>
#include <vector>

#include "api/app/command_line/command_table.h"

namespace meshd::api {

/// In the language of man(7).
std::string man_page(const std::vector<CommandRow>& commands, const std::string& version);

}  // namespace meshd::api
