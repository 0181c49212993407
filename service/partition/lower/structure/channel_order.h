// Pairs send and recv ops of one program: a recv yields the values that its send takes, so the send is ordered first.
#pragma once

#include <vector>

#include "service/ir/program.h"

namespace meshd::partition {

/// The ops of a block in their order, but each recv behind its send (the k-th recv of a channel belongs to the k-th
/// send), and what needs a recv that moved behind it. The order of anything else stays. Example: recv, send, add of the
/// two -> send, recv, add. Throws invalid_program for a recv whose send does not come, or waits for the recv itself.
std::vector<const ir::Op*> in_channel_order(const ir::Region& region);

}  // namespace meshd::partition
