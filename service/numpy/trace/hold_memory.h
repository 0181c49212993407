// The memory that a trace takes is held by whoever asked for it, so that no program takes what others need.
#pragma once

#include <cstdint>
#include <functional>

namespace meshd::numpy {

/// Told of the memory that a trace takes, as it grows: so many bytes more, about. What it throws ends the trace. Empty:
/// nobody is told.
using HoldMemory = std::function<void(int64_t bytes)>;

}  // namespace meshd::numpy
