// The server's problem documents (RFC 9457) as lines for a terminal.
//
//   the program cannot be read
//     line 2, column 8: unknown op 'stablehlo.ad'; did you mean 'stablehlo.add'?
//       |   %0 = stablehlo.ad %a, %a : tensor<4x2xf32>
//       |        ^
//   hint: ...
#pragma once

#include <string>
#include <string_view>

#include "api/client/text/failure.h"

namespace meshd::client {

/// The text of a problem document; of any other body its first line, with the status.
std::string problem_text(int status, std::string_view body);

/// The failure that a response of this status is: its exit code by the status, its text, its document.
Failure failure_of(int status, std::string_view body);

}  // namespace meshd::client
