#include "storage/writer.h"

#include <fmt/core.h>

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <utility>

#include "service/core/error.h"
#include "service/core/keep_trying.h"
#include "service/core/planted_bugs.h"

namespace meshd::storage {
namespace {

constexpr size_t kMaxGroup = 512;
// 4 KiB pages. Each time the log has grown by so many it is copied into the database; above the second figure readers
// are waited for, so that the log can start over.
constexpr int kCheckpointPages = 2000;
constexpr int kRestartPages = 8000;
constexpr int kRestartWaitMilliseconds = 20;
// Where the disk has little room the log is copied sooner, so that the reserve is enough for what it holds; and what
// adds much to the database has to leave room for it.
constexpr int64_t kScarceBytes = int64_t{64} << 20;
constexpr int kScarcePages = 128;
constexpr int64_t kPageBytes = 4096;
// At most about so many pages of the database are in the log alone, unless a reader holds the checkpoint up: half of
// the reserve, since something else may take all of the disk that is free at any time.
constexpr int64_t kOwedPages = 512;

int note_wal_pages(void* wal_pages, sqlite3*, const char*, int pages) {
  *static_cast<int*>(wal_pages) = pages;
  return SQLITE_OK;
}

std::exception_ptr stopped_error() {
  return std::make_exception_ptr(
      core::Error("storage_failed", "storage has failed before and takes no more changes; the server has to restart"));
}

// An exception object of its own for each member: they are read and released on different threads.
std::exception_ptr copy_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const core::Error& e) {
    return std::make_exception_ptr(core::Error(e));
  } catch (const std::bad_alloc&) {
    return std::make_exception_ptr(std::bad_alloc());
  } catch (...) {
    return std::make_exception_ptr(core::Error("storage_failed", "the transaction was lost with its group"));
  }
}

std::string internal_text(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const core::Error& e) {
    return e.detail() + " (" + e.internal() + ")";
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

}  // namespace

Writer::Writer(Database& database, DiskReserve* reserve)
    : database_(database), reserve_(reserve), connection_(database.writer()) {
  sqlite3_wal_hook(connection_.handle(), note_wal_pages, &wal_pages_);
  shared_.counters.writer_connections = 1;
  thread_ = std::thread([this] { loop(); });
}

Writer::~Writer() {
  {
    const std::lock_guard<std::mutex> held(mutex_);
    shared_.stopping = true;
  }
  arrived_.notify_all();
  thread_.join();
  sqlite3_wal_hook(connection_.handle(), nullptr, nullptr);
}

void Writer::submit(std::function<void(Transaction&)> f, std::function<void()> then,
                    std::function<void(std::exception_ptr)> done, Space space) {
  {
    const std::lock_guard<std::mutex> held(mutex_);
    shared_.queue.push_back({std::move(f), std::move(then), std::move(done), space});
  }
  arrived_.notify_one();
}

std::vector<std::string> Writer::take_dropped_blobs() {
  const std::lock_guard<std::mutex> held(mutex_);
  return std::exchange(shared_.dropped_blobs, {});
}

bool Writer::writable() const {
  if (database_.failed()) return false;
  const std::lock_guard<std::mutex> held(mutex_);
  return !shared_.disk_full;
}

CatalogCounters Writer::counters() const {
  const int64_t wal_bytes = database_.wal_bytes();
  const std::lock_guard<std::mutex> held(mutex_);
  CatalogCounters counters = shared_.counters;
  counters.queued = static_cast<int64_t>(shared_.queue.size());
  counters.wal_bytes = wal_bytes;
  return counters;
}

void Writer::loop() {
  for (;;) {
    std::vector<Member> group;
    {
      std::unique_lock<std::mutex> held(mutex_);
      arrived_.wait(held, [&] { return shared_.stopping || !shared_.queue.empty(); });
      if (shared_.queue.empty()) return;
      // What is refused for its size must not take others with it.
      const size_t take = is_short() ? 1 : std::min(kMaxGroup, shared_.queue.size());
      // Nobody else would run them: without memory the thread tries until there is some.
      core::keep_trying([&] { group.reserve(take); });
      const auto end = shared_.queue.begin() + static_cast<std::ptrdiff_t>(take);
      group.assign(std::make_move_iterator(shared_.queue.begin()), std::make_move_iterator(end));
      shared_.queue.erase(shared_.queue.begin(), end);
    }
    run_group(group);
    retry_alone(group);
    end_group(group);
    checkpoint_when_due();
  }
}

void Writer::end_group(std::span<Member> group) {
  for (const Member& member : group) {
    if (!member.error && member.then) member.then();
  }
  {
    const std::lock_guard<std::mutex> held(mutex_);
    for (Member& member : group) {
      if (!member.error) ++shared_.counters.transactions;
      for (std::string& blob : member.dropped_blobs)
        core::keep_trying([&] { shared_.dropped_blobs.push_back(std::move(blob)); });
    }
  }
  for (Member& member : group) {
    member.f = nullptr;  // release its captures before its caller is notified
    member.then = nullptr;
    member.done(std::move(member.error));
  }
}

void Writer::run_group(std::span<Member> group) {
  if (database_.failed()) return abandon(group, stopped_error());
  connection_.forget_damage();
  is_growth_refused_ = false;
  int64_t grown = 0;
  try {
    connection_.statement("BEGIN IMMEDIATE").bind().run();
    const int64_t before = page_count();
    for (Member& member : group) run_member(member);
    grown = page_count() - before;
    if (grows_too_far(group, grown)) connection_.fail(SQLITE_FULL, "the database would have no room to grow");
  } catch (...) {
    return abandon(group, std::current_exception());
  }
  if (!commit(group)) return;
  vacuumed_pages_ += std::max<int64_t>(-grown, 0);
  owed_pages_ += std::max<int64_t>(grown, 0);
}

void Writer::retry_alone(std::span<Member> group) {
  if (connection_.damage() != Damage::kNoSpace || database_.failed()) return;
  for (Member& member : group) {
    if (member.space != Space::kFrees || member.error == nullptr) continue;
    member.error = nullptr;
    run_group(std::span(&member, 1));
    if (connection_.damage() != Damage::kNoSpace || reserve_ == nullptr || !reserve_->release()) continue;
    member.error = nullptr;
    run_group(std::span(&member, 1));
  }
}

// Throws only when the entire transaction is lost.
void Writer::run_member(Member& member) {
  connection_.statement("SAVEPOINT member").bind().run();
  try {
    const int64_t before = is_scarce_ ? page_count() : 0;
    Transaction transaction(connection_);
    member.f(transaction);
    // One that is refused for its size does not take the others of its group with it.
    if (is_scarce_ && grows_too_far(std::span(&member, 1), page_count() - before)) {
      is_growth_refused_ = true;
      throw core::Error("disk_full", "no space is left on the disk that keeps the data");
    }
    member.dropped_blobs = transaction.dropped_blobs();
  } catch (...) {
    // SQLite rolls back by itself after some failures: the other members are lost too.
    if (!connection_.in_transaction() || connection_.damage() == Damage::kLostWrite) throw;
    member.error = std::current_exception();
    connection_.statement("ROLLBACK TO member").bind().run();
  }
  connection_.statement("RELEASE member").bind().run();
}

int64_t Writer::page_count() {
  Statement statement = connection_.statement("PRAGMA page_count");
  return statement.bind().step() ? statement.integer(0) : 0;
}

bool Writer::grows_too_far(std::span<const Member> group, int64_t pages) {
  if (reserve_ == nullptr || pages <= 0) return false;
  if (std::ranges::all_of(group, [](const Member& member) { return member.space == Space::kFrees; })) return false;
  if (is_short()) return true;
  // A checkpoint has to write the pages that are in the log alone to the file, and a reader may hold it up.
  const int64_t owed = page_count() * kPageBytes - database_.bytes();
  return owed >= kScarcePages * kPageBytes && reserve_->free_bytes() < owed + pages * kPageBytes;
}

bool Writer::commit(std::span<Member> group) {
  const auto before = std::chrono::steady_clock::now();
  if (core::is_planted(core::PlantedBug::kAcknowledgeBeforeCommit)) {
    for (Member& member : group) {
      if (!member.error && member.then) std::exchange(member.then, nullptr)();
      std::exchange(member.done, [](const std::exception_ptr&) {})(std::move(member.error));
    }
  }
  try {
    connection_.statement("COMMIT").bind().run();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    // While committing, any failure but a full disk may have left half a commit behind.
    if (connection_.damage() != Damage::kNoSpace) database_.fail("commit failed: " + internal_text(error));
    abandon(group, error);
    if (!database_.failed()) overwrite_refused_commit();
    return false;
  }
  note_commit(std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
  return true;
}

// A commit can fail with a full disk after all of it is in the log: when the index beside the log cannot grow. A crash
// now would recover it, though its callers got an error. A small commit at its position in the log, which needs no new
// space, overwrites it; even if that one fails, it has damaged the old frames.
void Writer::overwrite_refused_commit() {
  try {
    connection_.statement("BEGIN IMMEDIATE").bind().run();
    connection_
        .statement(
            "INSERT INTO meta(key, value) VALUES('refusals', 1) "
            "ON CONFLICT DO UPDATE SET value = value + 1")
        .bind()
        .run();
    connection_.statement("COMMIT").bind().run();
  } catch (const core::Error&) {
    const std::exception_ptr error = std::current_exception();
    if (connection_.damage() != Damage::kNoSpace) database_.fail("commit failed: " + internal_text(error));
    abandon({}, error);
  }
}

void Writer::note_commit(double seconds) {
  const std::lock_guard<std::mutex> held(mutex_);
  shared_.disk_full = is_growth_refused_;
  ++shared_.counters.commits;
  shared_.counters.commit_seconds.add(seconds);
}

void Writer::abandon(std::span<Member> group, const std::exception_ptr& error) {
  if (connection_.damage() == Damage::kLostWrite) database_.fail("a write failed: " + internal_text(error));
  if (connection_.in_transaction()) {
    try {
      connection_.statement("ROLLBACK").bind().run();
    } catch (...) {
      database_.fail("rollback failed: " + internal_text(std::current_exception()));
    }
  }
  for (Member& member : group) {
    // Also those that had failed by themselves: what they saw of the others has not happened.
    member.error = copy_of(error);
    member.dropped_blobs.clear();
  }
  if (connection_.damage() != Damage::kNoSpace) return;
  const std::lock_guard<std::mutex> held(mutex_);
  shared_.disk_full = true;
}

void Writer::checkpoint_when_due() {
  if (database_.failed()) return;
  // The log restarts by itself once all of it is checkpointed and has no reader.
  if (wal_pages_ < checkpointed_pages_) checkpointed_pages_ = 0;
  const int logged = wal_pages_ - checkpointed_pages_;
  is_scarce_ = reserve_ != nullptr && reserve_->free_bytes() < kScarceBytes;
  if (logged >= kCheckpointPages || vacuumed_pages_ >= kCheckpointPages || owed_pages_ >= kOwedPages ||
      ((logged > 0 || !is_checkpointed_) && is_short()) || (logged >= kScarcePages && is_scarce_)) {
    checkpoint();
  }
}

void Writer::checkpoint() {
  sqlite3* handle = connection_.handle();
  bool restart = false;
  int logged = 0, copied_pages = 0;
  const auto copied = [&] {
    restart = wal_pages_ >= kRestartPages || is_short();
    if (restart) sqlite3_busy_timeout(handle, kRestartWaitMilliseconds);
    const int mode = restart ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
    const int code = sqlite3_wal_checkpoint_v2(handle, nullptr, mode, &logged, &copied_pages);
    if (restart) sqlite3_busy_timeout(handle, kBusyMilliseconds);
    return code;
  };
  int code = copied();
  // A log that cannot be copied grows, and in the end nothing can be deleted any more.
  if (classify(code) == Damage::kNoSpace && reserve_ != nullptr && reserve_->release()) code = copied();
  // The log still has everything, so a full disk or a busy reader only means: later. A write or sync that failed is
  // never repeated.
  if (classify(code) == Damage::kLostWrite) {
    return database_.fail(fmt::format("checkpoint failed: sqlite {}", code));
  }
  is_checkpointed_ = code == SQLITE_OK && copied_pages == logged;
  // A log that was restarted begins with the next commit.
  if (is_checkpointed_ && restart) wal_pages_ = 0;
  checkpointed_pages_ = wal_pages_;
  vacuumed_pages_ = 0;
  owed_pages_ = 0;
  const std::lock_guard<std::mutex> held(mutex_);
  ++shared_.counters.checkpoints;
}

}  // namespace meshd::storage
