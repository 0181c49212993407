// What the writer and the reader of stored jobs agree on. Private to service/jobs.
#pragma once

#include <array>
#include <string_view>

namespace meshd::jobs {

/// In the order of ResultMode.
inline constexpr std::array<std::string_view, 3> kResultModes = {"inline", "array", "none"};

/// Between the document and the bytes behind it in a row: the document is one line.
inline constexpr char kEndOfDocument = '\n';

}  // namespace meshd::jobs
