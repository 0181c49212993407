// Open files of pending arrays: what one principal may hold, and all of them.
#include "service/zarr/open_files.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "service/core/error.h"

namespace meshd::testing {
namespace {

struct Refusal {
  std::string code, detail;
  int retry_after = 0;
};

Refusal refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const core::Error& error) {
    return {std::string(error.code().word()), error.detail(), error.retry_after_seconds()};
  }
  return {};
}

TEST(OpenFiles, one_principal_has_a_quarter_and_others_have_theirs) {
  zarr::OpenFiles files(40, 4);
  std::vector<zarr::FileCharge> held;
  held.push_back(files.charge("ann", 6));
  held.push_back(files.charge("ann", 4));
  const Refusal refused = refusal_of([&] { held.push_back(files.charge("ann", 1)); });
  EXPECT_EQ(refused.code, "limit_reached");
  EXPECT_EQ(refused.detail.find("mesh and spec: "), 0u) << refused.detail;
  EXPECT_NE(refused.detail.find("hold 10 files open, at most 10"), std::string::npos) << refused.detail;
  EXPECT_GT(refused.retry_after, 0);
  held.push_back(files.charge("bob", 10));
  held.erase(held.begin());
  held.push_back(files.charge("ann", 6));
  EXPECT_EQ(refusal_of([&] { held.push_back(files.charge("ann", 1)); }).code, "limit_reached");
}

TEST(OpenFiles, what_never_fits_is_not_worth_another_try) {
  zarr::OpenFiles files(40, 4);
  const Refusal refused = refusal_of([&] { auto charge = files.charge("ann", 11); });
  EXPECT_EQ(refused.code, "limit_reached");
  EXPECT_EQ(refused.retry_after, 0);
  EXPECT_NE(refused.detail.find("durability=memory"), std::string::npos) << refused.detail;
}

TEST(OpenFiles, all_principals_together_have_no_more_than_all) {
  zarr::OpenFiles files(40, 4);
  std::vector<zarr::FileCharge> held;
  for (const char* principal : {"ann", "bob", "cleo", "dan"}) held.push_back(files.charge(principal, 10));
  const Refusal refused = refusal_of([&] { held.push_back(files.charge("eve", 1)); });
  EXPECT_EQ(refused.code, "overloaded");
  EXPECT_GT(refused.retry_after, 0);
  held.back().reset();
  held.back().reset();  // once
  held.push_back(files.charge("eve", 10));
  EXPECT_EQ(refusal_of([&] { held.push_back(files.charge("dan", 1)); }).code, "overloaded");
}

TEST(OpenFiles, charges_move_and_outlive_their_counter) {
  zarr::FileCharge kept;
  {
    zarr::OpenFiles files(8, 4);
    zarr::FileCharge charge = files.charge("ann", 2);
    kept = std::move(charge);
    EXPECT_EQ(refusal_of([&] { auto more = files.charge("ann", 1); }).code, "limit_reached");
    kept = files.charge("bob", 2);
    charge = files.charge("ann", 2);
  }
  kept.reset();
}

TEST(OpenFiles, threads_at_once_get_what_fits_and_no_more) {
  zarr::OpenFiles files(40, 4);
  std::vector<zarr::FileCharge> held(16);
  std::vector<std::thread> threads;
  std::atomic<int> refused = 0;
  for (zarr::FileCharge& one : held) {
    threads.emplace_back([&files, &one, &refused] {
      try {
        one = files.charge("ann", 1);
      } catch (const core::Error&) {
        ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 6);
}

}  // namespace
}  // namespace meshd::testing
