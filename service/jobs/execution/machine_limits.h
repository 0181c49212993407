// The rates of this machine for profiles: measured once, when the first profile is asked for, and kept in the data
// folder for the next start on the same machine. Plans do not depend on them, so bits do not either.
#pragma once

#include <mutex>
#include <optional>

#include "service/kernels/machine_rates.h"
#include "storage/catalog.h"

namespace meshd::jobs {

/// Any thread; the first call takes some 30 ms.
class MachineLimits {
 public:
  MachineLimits(storage::Catalog& catalog, int threads) : catalog_(catalog), threads_(threads) {}
  kernels::MachineRates get();

 private:
  storage::Catalog& catalog_;
  const int threads_;
  std::mutex mutex_;
  std::optional<kernels::MachineRates> rates_;
};

}  // namespace meshd::jobs
