// Examples of errors, a row for each code: error_examples.yaml, which error_table.py makes a table when the server is
// built.
#pragma once

#include <span>
#include <string_view>

namespace meshd::api {

/// An entry of a problem's `errors`, as core::Diagnostic.
struct ExamplePlace {
  std::string_view pointer, detail;
  int line = 0, column = 0;
  std::string_view excerpt;
};

/// What a request is like that is answered with this code, and the answer.
struct ErrorExample {
  std::string_view code, detail;
  std::string_view command;    ///< a shell line with this answer ($URL is the server); empty where none has it alone
  std::string_view only_when;  ///< then: what it takes
  std::span<const ExamplePlace> errors;
};

}  // namespace meshd::api
