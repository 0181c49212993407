// Cuts the power at random calls while a store is opened, recovered and worked on, lets the disk lose, tear and reorder
// what was not synced, and compares what is there afterwards with what was acknowledged. SEED repeats the choices of
// one run (the threads still interleave as they like).
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "service/core/error.h"
#include "tests/recovery/kill_history.h"
#include "tests/recovery/store_worker.h"
#include "tests/support/effort.h"
#include "tests/support/forgetful_watcher.h"
#include "tests/support/power_disk.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_file_system.h"
#include "tests/support/watched_vfs.h"

namespace meshd::testing {
namespace {

using namespace storage;

constexpr int kCutsOfOneFolder = 10;  // then a fresh one, so that looking at all of it stays quick
constexpr int kWorkers = 3;

uint64_t choose_seed() {
  const char* given = std::getenv("SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

// Works in `folder` until the power is gone.
void work_until_cut(const std::string& folder, PowerDisk& disk, const std::string& name, KillHistory& history,
                    FolderSyncs folder_syncs) {
  ForgetfulWatcher forgetful(disk);
  WatchedFileSystem files(folder_syncs == FolderSyncs::kForgotten ? static_cast<SystemWatcher&>(forgetful) : disk);
  const WatchedVfs vfs(disk);
  const core::SystemClock clock;
  std::mutex mutex;
  const auto note = [&](const std::string& line) {
    const std::lock_guard<std::mutex> held(mutex);
    history.note(line);
  };
  try {
    Store store({folder, vfs.name(), [](const std::string&) {}}, files, clock);
    open_kill_session(store);
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] {
        try {
          StoreWorker work(store, name + "-" + std::to_string(worker), note);
          while (!disk.is_cut()) work.step();
        } catch (const core::Error&) {
          EXPECT_TRUE(disk.is_cut());
        }
      });
    }
    threads.clear();
  } catch (const core::Error& error) {
    EXPECT_TRUE(disk.is_cut()) << error.detail() << ": " << error.internal();
  }
  disk.cut();  // what closing the store has synced is not part of the story
}

void expect_integrity(const std::string& database) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open_v2(database.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  const auto expect_ok = [](void*, int, char** values, char**) {
    EXPECT_STREQ(values[0], "ok");
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(handle, "PRAGMA integrity_check", expect_ok, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
}

struct Cuts {
  int64_t acknowledged = 0;
  std::string wrong;  ///< empty: no rule is broken after any of the cuts
};

// Up to `cuts` cuts, or until something is wrong.
Cuts cut_often(uint64_t seed, int cuts, FolderSyncs folder_syncs) {
  std::mt19937_64 random(seed);
  Cuts out;
  for (int first = 0; first < cuts; first += kCutsOfOneFolder) {
    const TempFolder parent(TempFolder::Where::kMemory);
    std::string folder = parent.path() + "/0";
    std::filesystem::create_directory(folder);
    KillHistory history;
    for (int cut = 0; cut < kCutsOfOneFolder; ++cut) {
      // A few calls cut while it is opened or recovers, many while it works.
      const auto calls = static_cast<int64_t>(random() % (random() % 4 == 0 ? 300 : 4000));
      const std::string name = std::to_string(first + cut);
      PowerDisk disk(folder, calls);
      work_until_cut(folder, disk, name, history, folder_syncs);
      std::string after = parent.path() + "/" + std::to_string(cut + 1);
      disk.restore(after, random);
      std::filesystem::remove_all(folder);
      folder = std::move(after);
      if (random() % 3 == 0) continue;  // the next cut may hit the recovery
      {
        OpenStore store(folder);
        const std::vector<std::string> wrong = history.check(*store);
        if (!wrong.empty()) {
          out.wrong = std::to_string(wrong.size()) + " rules broken after cut " + name + ", first: " + wrong.front();
          return out;
        }
      }
      expect_integrity(folder + "/meshd.db");
    }
    out.acknowledged += history.acknowledged();
  }
  return out;
}

TEST(Power, nothing_acknowledged_is_lost_or_torn_by_a_power_cut) {
  const uint64_t seed = choose_seed();
  SCOPED_TRACE("SEED=" + std::to_string(seed));
  const int cuts = by_effort(150, 500, 20'000);
  const Cuts done = cut_often(seed, cuts, FolderSyncs::kDone);
  ASSERT_EQ(done.wrong, "");
  EXPECT_GT(done.acknowledged, cuts * 5);
  RecordProperty("acknowledged", static_cast<int>(done.acknowledged));
}

TEST(Power, forgotten_sync_of_a_folder_is_found) {
  const uint64_t seed = choose_seed();
  SCOPED_TRACE("SEED=" + std::to_string(seed));
  EXPECT_NE(cut_often(seed, 200, FolderSyncs::kForgotten).wrong, "");
}

}  // namespace
}  // namespace meshd::testing
