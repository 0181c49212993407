// JSON pretty printer: the same tokens with line breaks and two spaces a level. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace meshd::api {

/// `json` is a valid document. Numbers and strings stay byte for byte; empty lists and objects stay "[]" and "{}", and
/// lists of plain values stay on one line. Ends with a newline.
std::string pretty_json(std::string_view json);

}  // namespace meshd::api
