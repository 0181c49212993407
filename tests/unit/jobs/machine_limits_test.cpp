// Rates of the machine are measured once and kept for the next start on it, and on no other machine.
#include "service/jobs/execution/machine_limits.h"

#include <gtest/gtest.h>

#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

storage::MachineRatesRow kept(storage::Catalog& catalog) {
  catalog.write([](storage::Transaction&) {});  // behind the row, which is written later
  return catalog.read([](storage::Reader& reader) { return reader.machine_rates(); }).value();
}

TEST(MachineLimits, are_measured_once_and_kept) {
  TempFolder folder(TempFolder::Where::kMemory);
  OpenStore store(folder.path());
  jobs::MachineLimits limits(store->catalog(), 2);
  const kernels::MachineRates rates = limits.get();
  EXPECT_GT(rates.bytes_per_second, 0);
  EXPECT_GT(rates.operations_per_second, 0);
  EXPECT_EQ(limits.get().bytes_per_second, rates.bytes_per_second);
  EXPECT_EQ(kept(store->catalog()).machine, kernels::machine_name(2));
  EXPECT_EQ(kept(store->catalog()).bytes, static_cast<int64_t>(rates.bytes_per_second));
  store->catalog().write([](storage::Transaction& transaction) {
    transaction.set_machine_rates({kernels::machine_name(2), 11, 22});
  });
  jobs::MachineLimits next_start(store->catalog(), 2);
  EXPECT_EQ(next_start.get().bytes_per_second, 11);
  EXPECT_EQ(next_start.get().operations_per_second, 22);
  jobs::MachineLimits other_machine(store->catalog(), 1);
  EXPECT_GT(other_machine.get().bytes_per_second, 22);
  EXPECT_EQ(kept(store->catalog()).machine, kernels::machine_name(1));
}

}  // namespace
}  // namespace meshd::testing
