// Forms with files (multipart/form-data, RFC 7578) that are in memory whole: what `curl -F` sends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace meshd::api {

/// A part; `data` is in the body that it was read from.
struct FormPart {
  std::string name;
  std::string filename;    ///< empty: none was given
  std::string media_type;  ///< in lower case without parameters; empty: none was given
  std::string_view data;
};

/// The parts of `body` in their order. Throws malformed_body for a Content-Type without a boundary (1 to 70
/// characters), a form that has no part or does not end with its last boundary, a part without a name, and a name that
/// comes twice.
std::vector<FormPart> read_form(std::string_view content_type, std::string_view body);

/// The part named `file`. Throws as read_form, and malformed_body for a form without one.
FormPart file_of_form(std::string_view content_type, std::string_view body);

}  // namespace meshd::api
