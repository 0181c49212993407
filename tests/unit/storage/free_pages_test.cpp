// What the database takes of the disk: it gives back the pages that rows have left, and does not grow without the
// reserve of a full disk.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <future>
#include <thread>

#include "tests/support/eventually.h"
#include "tests/support/old_database.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_file_system.h"

namespace meshd::testing {
namespace {

using namespace storage;

constexpr int kSessions = 40;
constexpr size_t kDocumentBytes = 400'000;

class FreePages : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return database_path(folder_.path()); }
  [[nodiscard]] int64_t bytes() const { return static_cast<int64_t>(std::filesystem::file_size(path())); }

  /// The number that a pragma of the closed file has.
  [[nodiscard]] int64_t pragma(const std::string& name) const {
    sqlite3* handle = nullptr;
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_open(path().c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_prepare_v2(handle, ("PRAGMA " + name).c_str(), -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return number;
  }

  static SessionRow large_session(int number) {
    SessionRow row = session_row("ses_" + std::to_string(number));
    row.document = std::string(kDocumentBytes, static_cast<char>('a' + number % 26));
    return row;
  }
  static void insert_sessions(Store& store) {
    for (int i = 0; i < kSessions; ++i)
      store.catalog().write([&](Transaction& t) { t.insert_session(large_session(i)); });
  }
  static void delete_session(Store& store, int number) {
    store.catalog().write(
        [&](Transaction& t) {
          t.delete_session("ses_" + std::to_string(number));
          t.remove_deleted_sessions();
        },
        Space::kFrees);
  }
  static std::string document_of(Store& store, int number) {
    const auto row = store.catalog().read([&](Reader& r) { return r.session("ses_" + std::to_string(number)); });
    return row ? row->document : "";
  }

  const TempFolder folder_{TempFolder::Where::kMemory};
};

TEST_F(FreePages, what_deleted_rows_had_is_given_back_and_the_others_stay) {
  int64_t largest = 0;
  {
    OpenStore store(folder_.path());
    insert_sessions(*store);
    store->collect_garbage();
    // The last one stays, at the end of the file.
    for (int i = 0; i < kSessions - 1; ++i) delete_session(*store, i);
    EXPECT_TRUE(store->catalog().read([](Reader& r) { return r.needs_vacuum(); }));
    largest = bytes();
    for (int i = 0; i < 100; ++i) store->collect_garbage();
    EXPECT_FALSE(store->catalog().read([](Reader& r) { return r.needs_vacuum(); }));
    EXPECT_EQ(document_of(*store, kSessions - 1), large_session(kSessions - 1).document);
  }
  EXPECT_GT(largest, kSessions / 2 * static_cast<int64_t>(kDocumentBytes));
  EXPECT_LT(bytes(), largest / 2);
  EXPECT_EQ(pragma("auto_vacuum"), 2);
  OpenStore store(folder_.path());
  EXPECT_EQ(document_of(*store, kSessions - 1), large_session(kSessions - 1).document);
}

TEST_F(FreePages, a_file_of_an_earlier_version_is_written_anew_so_that_it_can_shrink) {
  { const OpenStore store(folder_.path()); }
  std::filesystem::remove(path());
  make_database(
      path(), 20,
      "INSERT INTO meta VALUES('clean', '1');"
      "INSERT INTO mesh_contents VALUES('mesh_1', '{\"m\": 1}'); INSERT INTO meshes VALUES('ann', 'mesh_1', 4);");
  ASSERT_EQ(pragma("auto_vacuum"), 0);
  {
    OpenStore store(folder_.path());
    EXPECT_TRUE(store->catalog().read([](Reader& r) { return r.mesh("mesh_1", "ann"); }));
  }
  EXPECT_EQ(pragma("auto_vacuum"), 2);
}

TEST_F(FreePages, without_the_reserve_rows_take_the_place_of_others_alone) {
  {
    OpenStore store(folder_.path());
    insert_sessions(*store);
  }
  const auto files = real_file_system();
  const core::SystemClock clock;
  StoreOptions options{folder_.path(), {}, [](const std::string& reason) { ADD_FAILURE() << reason; }};
  options.reserve_bytes = int64_t{1} << 60;  // no disk has so much
  Store store(options, *files, clock);
  const auto insert = [&](int number) {
    return error_word([&] { store.catalog().write([&](Transaction& t) { t.insert_session(large_session(number)); }); });
  };
  EXPECT_EQ(insert(100), "disk_full");
  EXPECT_FALSE(store.health().writable);
  EXPECT_EQ(document_of(store, 100), "");
  EXPECT_EQ(document_of(store, 1), large_session(1).document);
  delete_session(store, 0);
  EXPECT_EQ(insert(101), "");
  EXPECT_TRUE(store.health().writable);
  EXPECT_EQ(document_of(store, 101), large_session(101).document);
  EXPECT_EQ(insert(102), "disk_full");
}

class Unfailing final : public SystemWatcher {
 public:
  [[nodiscard]] bool fails(const std::string& /*operation*/) override { return false; }
};

/// Holds the moment that it reads until it is destroyed: no checkpoint passes it.
class LongReader {
 public:
  explicit LongReader(Store& store) {
    std::promise<void> reads;
    thread_ = std::thread([this, &store, &reads] {
      store.catalog().read([&](Reader& reader) {
        (void)reader.session("ses_0");
        reads.set_value();
        end_.get_future().wait();
        return 0;
      });
    });
    reads.get_future().wait();
  }
  LongReader(const LongReader&) = delete;
  LongReader& operator=(const LongReader&) = delete;
  ~LongReader() {
    end_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> end_;
  std::thread thread_;
};

TEST_F(FreePages, what_the_log_still_has_to_bring_to_the_database_counts_as_taken) {
  constexpr int64_t kFree = int64_t{8} << 20;
  Unfailing watcher;
  WatchedFileSystem files(watcher);
  const core::SystemClock clock;
  Store store({folder_.path(), {}, [](const std::string& reason) { ADD_FAILURE() << reason; }}, files, clock);
  files.told_free = kFree;
  // Each of them would fit.
  const auto insert = [&](int number) {
    return error_word([&] { store.catalog().write([&](Transaction& t) { t.insert_session(large_session(number)); }); });
  };
  int inserted = 0;
  {
    const LongReader reader(store);
    while (inserted < kSessions && insert(inserted).empty()) ++inserted;
  }
  EXPECT_LT(inserted, kFree / static_cast<int64_t>(kDocumentBytes));
  EXPECT_GT(inserted, kFree / 2 / static_cast<int64_t>(kDocumentBytes));
  // The first commit after the reader brings them there.
  delete_session(store, 0);
  EXPECT_EQ(insert(inserted), "");
}

TEST_F(FreePages, what_is_refused_for_its_size_does_not_take_its_group_with_it) {
  Unfailing watcher;
  WatchedFileSystem files(watcher);
  const core::SystemClock clock;
  Store store({folder_.path(), {}, [](const std::string& reason) { ADD_FAILURE() << reason; }}, files, clock);
  files.told_free = int64_t{1} << 20;
  const auto write = [&](SessionRow row, std::promise<std::string>& word) {
    store.catalog().write_async([row = std::move(row)](Transaction& t) { t.insert_session(row); },
                                [&word](const std::exception_ptr& error) {
                                  word.set_value(error_word([&] {
                                    if (error) std::rethrow_exception(error);
                                  }));
                                });
  };
  store.catalog().write([](Transaction& t) { t.insert_session(session_row("first")); });  // it looks how much is free
  std::promise<void> begun, go_on;
  std::promise<std::string> small, large, last;
  store.catalog().write_async(
      [&](Transaction& /*t*/) {
        begun.set_value();
        go_on.get_future().wait();
      },
      [](const std::exception_ptr&) {});
  begun.get_future().wait();
  // These are one group.
  write(session_row("small"), small);
  SessionRow row = large_session(0);
  row.document = std::string(1 << 20, 'a');
  write(row, large);
  write(session_row("last"), last);
  go_on.set_value();
  EXPECT_EQ(small.get_future().get(), "");
  EXPECT_EQ(large.get_future().get(), "disk_full");
  EXPECT_EQ(last.get_future().get(), "");
  EXPECT_FALSE(store.health().writable);
  EXPECT_EQ(document_of(store, 0), "");
}

TEST_F(FreePages, a_checkpoint_that_a_reader_held_up_is_made_after_it) {
  {
    OpenStore store(folder_.path());
    insert_sessions(*store);
  }
  const auto files = real_file_system();
  const core::SystemClock clock;
  StoreOptions options{folder_.path(), {}, [](const std::string& reason) { ADD_FAILURE() << reason; }};
  options.reserve_bytes = int64_t{1} << 60;  // no disk has so much
  Store store(options, *files, clock);
  const auto checkpoints = [&] { return store.health().catalog.checkpoints; };
  // A change is acknowledged before the checkpoint that it makes due.
  const auto are_made = [&](int64_t count) { return eventually([&] { return checkpoints() == count; }); };
  // It adds nothing to the log.
  const auto insert_too_much = [&] {
    SessionRow row = large_session(100);
    row.document += row.document;
    return error_word([&] { store.catalog().write([&](Transaction& t) { t.insert_session(row); }); });
  };
  {
    const LongReader reader(store);
    const int64_t before = checkpoints();
    delete_session(store, 0);
    EXPECT_TRUE(are_made(before + 1));
  }
  const int64_t held_up = checkpoints();
  EXPECT_EQ(insert_too_much(), "disk_full");
  EXPECT_TRUE(are_made(held_up + 1));
  EXPECT_EQ(insert_too_much(), "disk_full");
  EXPECT_EQ(checkpoints(), held_up + 1) << "all of it is copied";
}

}  // namespace
}  // namespace meshd::testing
