// The fatal handler, for a write that may be lost (a failed fsync, an I/O error while committing): nothing is
// acknowledged any more and the process has to end, because the state of the page cache is unknown.
#pragma once

#include <functional>
#include <string>

namespace meshd::storage {

/// Called once with text for the log, from the thread that saw the failure. The server logs it and leaves with a
/// non-zero status at once, without flushing; tests record it. It must not call storage and must not throw.
using FatalHandler = std::function<void(const std::string& reason)>;

}  // namespace meshd::storage
