// A network between ranks of one process, for tests: each rank has a thread that takes messages. Of one peer they come
// in order; of several, and between the first and the last byte of one, the order is drawn from a seed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "service/hosts/network/network.h"

namespace meshd::testing {

/// The ends of `rank_count` ranks. Each is closed or destroyed by its owner.
std::vector<std::unique_ptr<hosts::Network>> make_fake_network(int rank_count, uint32_t seed = 1);

}  // namespace meshd::testing
