// Finds out whether a launcher started this process as one of several ranks, and loads the module that knows MPI. The
// binary itself does not link MPI: without a launcher nothing is loaded.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "service/hosts/network/network.h"

namespace meshd::hosts {

/// By environment variable: its value, or null.
using Environment = std::function<const char*(const char*)>;

/// What shows that a launcher started several ranks, such as "OMPI_COMM_WORLD_SIZE is 4"; empty: none did. Open MPI,
/// MPICH and Intel MPI (PMI), and Slurm's srun with PMI or PMIx set these variables. Pure.
std::string launcher_of(const Environment& environment);

/// Opens the network of the module. `why`: why it is wanted, for the message. `folder`: that of the binary, where the
/// module is looked for, beside it and in ../lib/meshd. Throws core::Error internal with a line that says what to
/// install.
std::unique_ptr<Network> open_mpi(const std::string& why, const std::string& folder);

}  // namespace meshd::hosts
