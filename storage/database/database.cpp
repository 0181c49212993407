#include "storage/database/database.h"

#include <fmt/core.h>

#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>

#include "service/core/error.h"
#include "storage/database/connection.h"
#include "storage/database/migrations.h"

namespace meshd::storage {
namespace {

// "mshd": identifies the file, to `file` too, as one of meshd's.
constexpr int64_t kApplicationId = 0x6d736864;
constexpr int64_t kJournalLimitBytes = 16 * 1024 * 1024;

int64_t pragma(Connection& connection, const char* sql) {
  Statement statement = connection.statement(sql);
  return statement.bind().step() ? statement.integer(0) : 0;
}

core::Error cannot_open(const std::string& why) {
  return {"storage_failed", "the data folder cannot be opened: " + why};
}

bool read_clean(Connection& connection) {
  Statement statement = connection.statement("SELECT value FROM meta WHERE key = 'clean'");
  return statement.bind().step() && statement.view(0) == "1";
}

void write_clean(Connection& connection, bool clean) {
  Statement statement = connection.statement("INSERT OR REPLACE INTO meta(key, value) VALUES('clean', ?1)");
  statement.bind(clean ? "1" : "0").run();
}

void quick_check(Connection& connection) {
  Statement statement = connection.statement("PRAGMA quick_check(1)");
  statement.bind();
  const std::string answer = statement.step() ? statement.text(0) : "no answer";
  if (answer != "ok") throw cannot_open("the database is damaged; restore a backup").with_internal(answer);
}

void migrate(Connection& connection, int64_t from) {
  const auto steps = migrations();
  for (auto version = static_cast<size_t>(from); version < steps.size(); ++version) {
    connection.execute("BEGIN IMMEDIATE");
    try {
      connection.execute(steps[version]);
      connection.execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
      connection.execute(fmt::format("PRAGMA user_version = {}", version + 1));
      connection.execute("COMMIT");
    } catch (...) {
      if (connection.in_transaction()) connection.execute("ROLLBACK");
      throw;
    }
  }
}

int64_t size_of(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

// Where SQLite keeps temporary files that PRAGMA temp_store=FILE allows, for as long as this lives. Of the process:
// while no other connection makes some.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& folder) {
    sqlite3_temp_directory = sqlite3_mprintf("%s", folder.c_str());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { sqlite3_free(std::exchange(sqlite3_temp_directory, nullptr)); }
};

// A file that an earlier version has made keeps its free pages until it is written anew, which needs room for it twice.
constexpr uintmax_t kMostRewritten = uintmax_t{1} << 30;  // a few seconds
void make_shrinkable(Connection& connection, const std::string& path) {
  if (pragma(connection, "PRAGMA auto_vacuum") != 0) return;
  std::error_code unknown;
  const uintmax_t bytes = std::filesystem::file_size(path, unknown);
  const auto space = std::filesystem::space(path, unknown);
  if (unknown || bytes > kMostRewritten || space.available < 4 * bytes) return;
  // The copy is a file beside this one: in memory it would be as large as the database, at the start of a server that
  // may have little.
  const TemporaryFolder beside(std::filesystem::path(path).parent_path().string());
  try {
    connection.execute("PRAGMA temp_store=FILE; PRAGMA auto_vacuum=INCREMENTAL; VACUUM");
  } catch (const core::Error&) {
    if (connection.damage() == Damage::kLostWrite) throw;
    connection.forget_damage();  // no room for it: the file is as it was
  }
  connection.execute("PRAGMA temp_store=MEMORY");
}

// Pages of 4 KiB that a backup copies before it waits for the disk. A commit of the writer waits for at most about as
// much: on a disk shared with the backup, its sync comes after what is being written, and where the log's file grows
// that is all that the copy has left to the kernel.
constexpr int kCopiedPages = 512;

// What the connection reads is of one moment, that of the constructor. Writers go on. Without it, each step of a backup
// would read a moment of its own, and start over after every commit.
class Snapshot {
 public:
  explicit Snapshot(Connection& connection) : connection_(connection) {
    connection_.execute("BEGIN");
    try {
      connection_.execute("SELECT 1 FROM sqlite_schema LIMIT 1");  // the first read is the moment, not BEGIN
    } catch (...) {
      end();
      throw;
    }
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() { end(); }

 private:
  void end() {
    try {
      if (connection_.in_transaction()) connection_.execute("ROLLBACK");
    } catch (const core::Error&) {
      // It has read only, and noted the damage.
    }
  }

  Connection& connection_;
};

// The pages that the open transaction has changed so far, into the file and on to the disk. A code of SQLite.
int write_to_disk(Connection& connection) {
  if (const int code = sqlite3_db_cacheflush(connection.handle()); code != SQLITE_OK) return code;
  sqlite3_file* file = nullptr;
  const int code = sqlite3_file_control(connection.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  return code == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : code;
}

}  // namespace

struct Database::Impl {
  DatabaseOptions options;
  std::atomic<bool> failed{false};
};

Database::Database(DatabaseOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  writer_ = std::make_unique<Connection>(impl_->options.path, Connection::Mode::kReadWrite, impl_->options.vfs);
  Connection& connection = *writer_;
  const auto newest = static_cast<int64_t>(migrations().size());
  const int64_t found = pragma(connection, "PRAGMA user_version");
  const int64_t owner = pragma(connection, "PRAGMA application_id");
  if (found != 0 && owner != kApplicationId) throw cannot_open("meshd.db is not a database of meshd");
  if (found > newest) {
    throw cannot_open(
        fmt::format("its schema is version {}, this server knows up to {}; use a newer server", found, newest));
  }
  // Pages that are free are given back in steps (Transaction::vacuum_step). Deleted rows are overwritten where
  // that writes no page more: else what is to free a full disk writes as much to the log as it frees.
  if (found == 0) connection.execute("PRAGMA auto_vacuum=INCREMENTAL");  // it writes, also where it says nothing new
  connection.execute(
      fmt::format("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
                  "PRAGMA journal_size_limit={}; PRAGMA secure_delete=FAST",
                  kJournalLimitBytes));
  if (found > 0) {
    was_clean_ = read_clean(connection);
    if (!was_clean_) quick_check(connection);
  }
  migrate(connection, found);
  schema_version_ = newest;
  make_shrinkable(connection, impl_->options.path);
  try {
    write_clean(connection, false);
  } catch (const core::Error& error) {
    // On a full disk the server starts, for what it is asked to delete. A crash is then taken for an end in order.
    if (error.code() != core::ErrorCode("disk_full")) throw;
  }
}

Database::~Database() {
  if (failed()) return;
  try {
    writer_->execute("PRAGMA wal_checkpoint(TRUNCATE)");
    write_clean(*writer_, true);
  } catch (const core::Error&) {
    // The next start checks; nothing that was acknowledged depends on this.
  }
}

std::unique_ptr<Connection> Database::open_reader() const {
  return std::make_unique<Connection>(impl_->options.path, Connection::Mode::kReadOnly, impl_->options.vfs);
}

int64_t Database::bytes() const { return size_of(impl_->options.path); }

int64_t Database::wal_bytes() const { return size_of(impl_->options.path + "-wal"); }

void Database::fail(const std::string& reason) {
  if (!impl_->failed.exchange(true)) impl_->options.fatal(reason);
}

bool Database::failed() const { return impl_->failed; }

void copy_database(Connection& from, const std::string& path) {
  Connection to(path, Connection::Mode::kReadWrite, {});
  const Snapshot moment(from);
  sqlite3_backup* backup = sqlite3_backup_init(to.handle(), "main", from.handle(), "main");
  if (backup == nullptr) to.fail(sqlite3_extended_errcode(to.handle()), "backup");
  int stepped = sqlite3_backup_step(backup, kCopiedPages);
  while (stepped == SQLITE_OK) {
    stepped = write_to_disk(to);
    if (stepped == SQLITE_OK) stepped = sqlite3_backup_step(backup, kCopiedPages);
  }
  const int finished = sqlite3_backup_finish(backup);
  if (stepped != SQLITE_DONE) to.fail(stepped, "backup");
  if (finished != SQLITE_OK) to.fail(finished, "backup");
}

}  // namespace meshd::storage
