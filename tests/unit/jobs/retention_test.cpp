#include "service/jobs/retention.h"

#include <gtest/gtest.h>

#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace std::chrono_literals;

TEST(Retention, keys_of_finished_jobs_go_after_a_day) {
  const TempFolder folder(TempFolder::Where::kMemory);
  OpenStore store(folder.path());
  constexpr int kMany = 2500;
  store->catalog().write([](storage::Transaction& t) {
    t.insert_job(job_row("job_queued"));
    t.insert_idempotency({"ann", "run", "of a job that waits", "f", "job_queued", at(0)});
    for (int i = 0; i < kMany; ++i) t.insert_idempotency({"ann", "run", std::to_string(i), "f", "job_gone", at(0)});
  });
  EXPECT_EQ(jobs::expire_idempotency_keys(store->catalog(), at(0) + 24h), 0);
  EXPECT_EQ(jobs::expire_idempotency_keys(store->catalog(), at(1) + 24h), kMany);
  EXPECT_TRUE(
      store->catalog().read([](storage::Reader& r) { return r.idempotency("ann", "run", "of a job that waits"); }));
}

}  // namespace
}  // namespace meshd::testing
