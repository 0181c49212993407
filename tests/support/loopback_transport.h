// Ranks within one process: a message waits for its receiver or the receiver for it, whoever comes first.
#pragma once

#include <memory>
#include <vector>

#include "service/device/transport.h"

namespace meshd::testing {

/// The ends of `rank_count` ranks. Any thread.
std::vector<std::shared_ptr<device::Transport>> make_loopback(int rank_count);

}  // namespace meshd::testing
