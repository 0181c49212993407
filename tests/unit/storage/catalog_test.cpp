// The writer thread: one commit for many, each member on its own, nothing told before it is durable.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include "tests/support/fault_plan.h"
#include "tests/support/held_writer.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_vfs.h"

namespace meshd::testing {
namespace {

using namespace storage;

TEST(StorageCatalog, waiting_transactions_share_one_commit_and_one_sync) {
  const TempFolder folder;
  FaultPlan plan;
  const WatchedVfs vfs(plan);
  Database database({folder.path() + "/meshd.db", vfs.name(), [](const std::string&) {}});
  Catalog catalog(database);
  constexpr int kTransactions = 200;
  std::latch done(kTransactions);
  int64_t syncs_before = 0;
  CatalogCounters before;
  {
    const HeldWriter held(catalog);
    syncs_before = plan.calls("sql_sync");
    before = catalog.counters();
    for (int i = 0; i < kTransactions; ++i) {
      catalog.write_async([i](Transaction& t) { t.insert_array(array_row("arr_" + std::to_string(i))); },
                          [&](const std::exception_ptr& error) {
                            EXPECT_FALSE(error);
                            done.count_down();
                          });
    }
  }
  done.wait();
  const CatalogCounters after = catalog.counters();
  EXPECT_EQ(after.transactions - before.transactions, kTransactions + 1);
  EXPECT_EQ(after.commits - before.commits, 2);  // the held one, and all others
  const int64_t syncs = plan.calls("sql_sync") - syncs_before;
  EXPECT_GE(syncs, 1);  // the held one has changed nothing and needs none
  EXPECT_LE(syncs, 2);
  EXPECT_EQ(catalog.read([](Reader& r) { return r.arrays("ann", {}, {.limit = 1000, .cursor = {}}); }).items.size(),
            static_cast<size_t>(kTransactions));
}

TEST(StorageCatalog, member_that_throws_undoes_its_own_part_only) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  std::vector<std::future<void>> outcomes;
  {
    const HeldWriter held(catalog);
    for (int i = 0; i < 9; ++i) {
      auto outcome = std::make_shared<std::promise<void>>();
      outcomes.push_back(outcome->get_future());
      catalog.write_async(
          [i](Transaction& t) {
            t.insert_array(array_row("arr_" + std::to_string(i)));
            if (i % 3 == 1) throw std::runtime_error("no");
          },
          [outcome](const std::exception_ptr& error) { error ? outcome->set_exception(error) : outcome->set_value(); });
    }
  }
  for (int i = 0; i < 9; ++i) {
    if (i % 3 == 1) {
      EXPECT_THROW(outcomes[static_cast<size_t>(i)].get(), std::runtime_error);
    } else {
      EXPECT_NO_THROW(outcomes[static_cast<size_t>(i)].get());
    }
    EXPECT_EQ(catalog.read([&](Reader& r) { return r.array("arr_" + std::to_string(i)); }).has_value(), i % 3 != 1);
  }
}

TEST(StorageCatalog, member_that_throws_drops_no_blobs) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  catalog.write([](Transaction& t) {
    t.insert_array(array_row("arr_1"));
    t.put_shard({"arr_1", 0, {"arr_1.s0", 1, 1}});
  });
  EXPECT_THROW(catalog.write([](Transaction& t) {
    t.delete_array("arr_1");
    throw std::runtime_error("no");
  }),
               std::runtime_error);
  EXPECT_TRUE(catalog.take_dropped_blobs().empty());
  EXPECT_TRUE(catalog.read([](Reader& r) { return r.names_blob("arr_1.s0"); }));
}

TEST(StorageCatalog, dropped_blobs_are_for_the_collector_once_memory_has_followed) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  catalog.write([](Transaction& t) {
    t.insert_array(array_row("arr_1"));
    t.put_shard({"arr_1", 0, {"arr_1.s0", 1, 1}});
  });
  std::vector<std::string> dropped_before = {"not asked"};
  catalog.write_then([](Transaction& t) { t.delete_array("arr_1"); },
                     [&] { dropped_before = catalog.take_dropped_blobs(); });
  EXPECT_TRUE(dropped_before.empty());
  EXPECT_EQ(catalog.take_dropped_blobs(), std::vector<std::string>{"arr_1.s0"});
}

TEST(StorageCatalog, effects_of_8_concurrent_writers_are_dense_and_in_each_writers_order) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  catalog.write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
  constexpr int kWriters = 8;
  constexpr int kBatches = 60;
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&catalog, writer] {
        for (int batch = 0; batch < kBatches; ++batch) {
          std::vector<EffectRow> rows;
          for (int i = 0; i < 1 + batch % 3; ++i) rows.push_back(effect_row("job", -1, std::to_string(writer)));
          if (batch % 7 == 6) {
            EXPECT_THROW(catalog.write([&](Transaction& t) {
              t.append_effects("ses_1", rows);
              throw std::runtime_error("no");
            }),
                         std::runtime_error);
          } else {
            catalog.write([&](Transaction& t) { t.append_effects("ses_1", rows); });
          }
        }
      });
    }
  }
  int64_t expected = 0;
  for (;;) {
    const auto log = catalog.read([&](Reader& r) { return r.effects("ses_1", expected, 1000); });
    if (log.empty()) break;
    for (const EffectRow& row : log) ASSERT_EQ(row.sequence, ++expected);
  }
  int64_t kept = 0;
  for (int batch = 0; batch < kBatches; ++batch) kept += batch % 7 == 6 ? 0 : 1 + batch % 3;
  EXPECT_EQ(expected, kept * kWriters);
  EXPECT_EQ(catalog.read([](Reader& r) { return r.session("ses_1"); })->last_sequence, expected);
}

TEST(StorageCatalog, write_inside_a_write_is_refused) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  EXPECT_EQ(error_word([&] { catalog.write([&](Transaction&) { catalog.write([](Transaction&) {}); }); }), "internal");
}

TEST(StorageCatalog, snapshot_does_not_see_what_is_committed_meanwhile) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  catalog.read([&](Reader& reader) {
    EXPECT_FALSE(reader.array("arr_1"));
    catalog.write([](Transaction& t) { t.insert_array(array_row("arr_1")); });
    EXPECT_FALSE(reader.array("arr_1"));
  });
  EXPECT_TRUE(catalog.read([](Reader& reader) { return reader.array("arr_1"); }));
}

TEST(StorageCatalog, uncommitted_rows_are_not_seen_by_readers) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  catalog.write([&](Transaction& t) {
    t.insert_array(array_row("arr_1"));
    EXPECT_FALSE(std::async(std::launch::async, [&] {
                   return catalog.read([](Reader& reader) { return reader.array("arr_1").has_value(); });
                 }).get());
  });
}

TEST(StorageCatalog, connections_are_one_writer_and_few_readers) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  constexpr int kThreads = 40;
  std::latch inside(16);
  std::latch leave(1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      catalog.read([&](Reader& reader) {
        EXPECT_FALSE(reader.array("arr_" + std::to_string(i)));
        if (i < 16) inside.count_down();
        leave.wait();
      });
    });
    if (i == 15) inside.wait();
  }
  EXPECT_EQ(catalog.counters().reader_connections, 16);
  EXPECT_EQ(catalog.counters().writer_connections, 1);
  leave.count_down();
  threads.clear();
  EXPECT_EQ(catalog.counters().reader_connections, 16);
}

TEST(StorageCatalog, readers_of_large_rows_keep_little_of_them) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  catalog.write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    std::vector<EffectRow> rows;
    for (int i = 0; i < 6; ++i) rows.push_back(effect_row("job", i, std::string(1 << 20, 'x')));
    t.append_effects("ses_1", rows);
  });
  const int64_t before = sqlite3_memory_used();
  constexpr int kReaders = 16;
  std::latch all_have_read(kReaders);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kReaders; ++i) {
      threads.emplace_back([&] {
        catalog.read([&](Reader& reader) {
          EXPECT_EQ(reader.effects("ses_1", 0, 10).size(), 6u);
          all_have_read.arrive_and_wait();
        });
      });
    }
  }
  EXPECT_EQ(catalog.counters().reader_connections, kReaders);
  // Each has read 6 MiB and keeps one, and its schema and statements.
  EXPECT_LT(sqlite3_memory_used() - before, int64_t{kReaders} * (2 << 20));
}

TEST(StorageCatalog, log_is_checkpointed_by_the_writer_and_does_not_grow_without_end) {
  const TempFolder folder;
  OpenStore store(folder.path());
  Catalog& catalog = store->catalog();
  catalog.write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 100; ++i) {
    catalog.write([&](Transaction& t) {
      std::vector<EffectRow> rows = {effect_row("job", i, megabyte)};
      t.append_effects("ses_1", rows);
    });
  }
  EXPECT_GT(catalog.counters().checkpoints, 3);
  EXPECT_LT(catalog.counters().wal_bytes, 64 << 20);
  EXPECT_EQ(store.fatal(), "");
}

TEST(StorageCatalog, histogram_counts_every_commit) {
  const TempFolder folder;
  OpenStore store(folder.path());
  for (int i = 0; i < 5; ++i) store->catalog().write([](Transaction&) {});
  const CatalogCounters counters = store->catalog().counters();
  EXPECT_EQ(counters.commit_seconds.count(), counters.commits);
  EXPECT_GE(counters.commits, 5);
}

}  // namespace
}  // namespace meshd::testing
