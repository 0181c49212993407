// Memory that a piece of work takes is held by whoever asked for the work, so that none takes what others need.
#pragma once

#include <cstdint>
#include <functional>

namespace meshd::core {

/// Told of the memory that the work takes, as it grows: so many bytes more, about. What it throws ends the work. Empty:
/// nobody is told.
using HoldMemory = std::function<void(int64_t bytes)>;

}  // namespace meshd::core
