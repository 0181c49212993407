#include "service/jobs/execution/machine_limits.h"

#include <exception>

namespace meshd::jobs {

kernels::MachineRates MachineLimits::get() {
  const std::lock_guard held(mutex_);
  if (rates_) return *rates_;
  const std::string name = kernels::machine_name(threads_);
  const auto kept = catalog_.read([](storage::Reader& reader) { return reader.machine_rates(); });
  if (kept && kept->machine == name) {
    rates_ = {static_cast<double>(kept->bytes), static_cast<double>(kept->operations)};
    return *rates_;
  }
  rates_ = kernels::measure_machine(threads_);
  catalog_.write_async([row = storage::MachineRatesRow{name, static_cast<int64_t>(rates_->bytes_per_second),
                                                       static_cast<int64_t>(rates_->operations_per_second)}](
                           storage::Transaction& transaction) { transaction.set_machine_rates(row); },
                       [](const std::exception_ptr&) {});  // measured again after the next start
  return *rates_;
}

}  // namespace meshd::jobs
