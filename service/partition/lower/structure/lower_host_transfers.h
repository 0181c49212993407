// Lowers infeed, outfeed, send and recv. Between a program and its client they are effects that dequeue or enqueue; a
// send and a recv of the same program are a collective_permute.
//
// Example: send %0 on channel 1, recv on channel 1 with source_target_pairs [[0, 1]] -> nothing at the send (it waits
// in LoweringContext::unmatched_sends), a group of device 0 and 1 at the recv.
#pragma once

#include "service/partition/lower/context.h"

namespace meshd::partition {

/// Throws invalid_program where a recv does not fit its send.
void lower_host_transfer(LoweringContext& context, const ir::Op& op, const Scope& scope);

}  // namespace meshd::partition
