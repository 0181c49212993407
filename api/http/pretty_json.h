// JSON pretty printer: the same tokens with line breaks and two spaces a level. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace meshd::api {

/// `json` is a valid document. Numbers and strings stay byte for byte; empty lists and objects stay "[]" and "{}", and
/// lists of plain values stay on one line. Ends with a newline.
std::string pretty_json(std::string_view json);
/// Its bytes, without making it: lists in lists are indented, so that it may have a hundred times those of `json`.
size_t pretty_json_size(std::string_view json);
/// The same of a document of which pretty_json_size() is known.
std::string pretty_json(std::string_view json, size_t size);

}  // namespace meshd::api
