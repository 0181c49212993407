// How long a job waits for memory before it looks again. Private to service/jobs.
#pragma once

#include <chrono>

namespace meshd::jobs {

/// Who gives memory back notifies nobody: answers leave with the packets of their clients.
inline constexpr std::chrono::milliseconds kMemoryAgain{20};

}  // namespace meshd::jobs
