// What this machine can do at most, measured by kernels of ours: the limits that profiles hold steps to.
#pragma once

#include <string>

namespace meshd::kernels {

/// Of all threads together.
struct MachineRates {
  double bytes_per_second = 0;       ///< read and written, of arrays that no cache holds
  double operations_per_second = 0;  ///< of f32 products in the second level cache
};

/// Takes some 30 ms on `threads` threads of its own, and 128 MiB of memory. Other work on the machine makes the rates
/// lower: the best of several rounds counts.
MachineRates measure_machine(int threads);

/// Model of the processor.
std::string processor_name();
/// Model of the processor and number of threads: rates that were measured for another name do not hold here.
std::string machine_name(int threads);

}  // namespace meshd::kernels
