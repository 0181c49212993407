// The writer thread: the only one that writes, commits and checkpoints. Group commit: it runs all waiting members
// inside one SQLite transaction with a savepoint for each, commits once, and only then acknowledges the members. Inside
// storage only.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "storage/catalog.h"
#include "storage/database/connection.h"
#include "storage/database/database.h"
#include "storage/disk_reserve.h"

namespace meshd::storage {

/// Any thread may submit. The queue's mutex is a leaf: neither members nor completions run under it.
class Writer {
 public:
  /// `reserve` has the space that a full disk gives to members that free more, and to checkpoints. From the start it
  /// is the owner's to keep. Null: there is none.
  Writer(Database& database, DiskReserve* reserve);
  /// Finishes what is queued.
  ~Writer();

  /// `then` follows the rows in memory, and `done` acknowledges (Catalog::write_then); between the two the collector
  /// may take what the group has dropped. `then` may be null.
  void submit(std::function<void(Transaction&)> f, std::function<void()> then,
              std::function<void(std::exception_ptr)> done, Space space);
  [[nodiscard]] bool is_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }
  [[nodiscard]] std::vector<std::string> take_dropped_blobs();
  [[nodiscard]] bool writable() const;
  [[nodiscard]] CatalogCounters counters() const;

 private:
  struct Member {
    std::function<void(Transaction&)> f;
    std::function<void()> then;
    std::function<void(std::exception_ptr)> done;
    Space space = Space::kTakes;
    std::exception_ptr error = nullptr;
    std::vector<std::string> dropped_blobs = {};
  };
  /// Everything that other threads access, under one mutex.
  struct Shared {
    std::deque<Member> queue;
    bool stopping = false;
    bool disk_full = false;
    std::vector<std::string> dropped_blobs;
    CatalogCounters counters;
  };

  void loop();
  void run_group(std::span<Member> group);
  void run_member(Member& member);
  /// After the group: memory follows, then its blobs are dropped, then its members are acknowledged.
  void end_group(std::span<Member> group);
  /// After a group that a full disk refused: its members that free space run once more, each by itself, and where that
  /// is not enough with the space of the reserve.
  void retry_alone(std::span<Member> group);
  /// False: it could not be written, and all members have an error.
  bool commit(std::span<Member> group);
  /// Pages of the database, as the open transaction leaves it.
  [[nodiscard]] int64_t page_count();
  /// The transaction, which adds so many pages to the database, would leave no room for it to take them from the log.
  [[nodiscard]] bool grows_too_far(std::span<const Member> group, int64_t pages);
  /// The reserve is given: the database must not grow.
  [[nodiscard]] bool is_short() const { return reserve_ != nullptr && !reserve_->is_kept(); }
  void overwrite_refused_commit();
  void note_commit(double seconds);
  /// Ends the transaction after a failure that affects the entire group.
  void abandon(std::span<Member> group, const std::exception_ptr& error);
  void checkpoint_when_due();
  void checkpoint();

  Database& database_;
  DiskReserve* const reserve_;
  Connection& connection_;          ///< touched by the writer thread only
  int wal_pages_ = 0;               ///< as the last commit left it; writer thread only
  int checkpointed_pages_ = 0;      ///< how long the log was at the last checkpoint; writer thread only
  bool is_checkpointed_ = true;     ///< all that the log had at the last checkpoint; writer thread only
  bool is_scarce_ = false;          ///< the disk had little room left after the last group; writer thread only
  bool is_growth_refused_ = false;  ///< to a member of this group; writer thread only
  int64_t owed_pages_ = 0;          ///< by which the database grew in the log alone, since the last checkpoint
  int64_t vacuumed_pages_ = 0;      ///< since the last checkpoint: until the next one the file has them
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  Shared shared_;  ///< guarded by mutex_
  std::thread thread_;
};

}  // namespace meshd::storage
