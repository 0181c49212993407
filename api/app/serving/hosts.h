// A server of several processes: which of them this is, and what is shared between those of one machine.
#pragma once

#include <memory>

#include "api/app/serving/log.h"
#include "api/app/serving/options.h"
#include "service/device/engine.h"
#include "service/hosts/coordinator.h"
#include "service/hosts/network/network.h"

namespace meshd::api {

/// The network to the other ranks, by --hosts; null: this is the only process. Throws core::Error internal with a line
/// fit for a terminal.
std::unique_ptr<hosts::Network> open_hosts(const AppOptions& options);

/// How many ranks share this machine; 1 without a network.
int ranks_here(const hosts::Network* network);
/// --threads, or this process's part of the cores: all that its launcher has bound it to.
int threads_of(const AppOptions& options, const hosts::Network* network);

/// Rank 0's executor. Waits until the other ranks are ready.
std::unique_ptr<hosts::Coordinator> make_coordinator(hosts::Network& network, const device::EngineOptions& engine,
                                                     const AppOptions& options,
                                                     std::shared_ptr<tensor::BufferPool> pool);
/// What another rank does until rank 0 stops it. Signals to drain are for rank 0: the first is ignored here, the second
/// ends the process.
void serve_rank(hosts::Network& network, const AppOptions& options, Log& log);

}  // namespace meshd::api
