#include "storage/database/connection.h"

#include <fmt/core.h>

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "service/core/error.h"

namespace meshd::storage {
namespace {

// What a failure is for the client.
core::Error meaning(int code) {
  if (classify(code) == Damage::kNoSpace) {
    return {"disk_full", "no space is left on the disk that keeps the data"};
  }
  if (code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_ROWID) {
    return {"conflict", "it exists already"};
  }
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
      return {"overloaded", "the server has no room for this now"};
    case SQLITE_TOOBIG:
      return {"body_too_large", "a document is larger than the database takes"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {"storage_failed", "the database is damaged"};
    default:
      return {"storage_failed", "the database could not be used"};
  }
}

}  // namespace

Damage classify(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Damage::kNoSpace;
    case SQLITE_NOMEM:
      return Damage::kIo;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Damage::kIo;
    case SQLITE_IOERR:
      break;
    default:
      return Damage::kNone;
  }
  switch (code) {
    case SQLITE_IOERR_SHMSIZE:
      return Damage::kNoSpace;  // the shared index could not grow
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
    case SQLITE_IOERR_TRUNCATE:
    case SQLITE_IOERR_CLOSE:
      return Damage::kLostWrite;
    default:
      return Damage::kIo;
  }
}

Statement::~Statement() { connection_->give_back(sql_, statement_); }

void Statement::reset() { sqlite3_reset(statement_); }

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  connection_->fail(sqlite3_extended_errcode(connection_->handle()), sql_);
}

void Statement::run() {
  while (step()) {
  }
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

std::string_view Statement::view(int column) const {
  // The pointer first, then the size: in this order SQLite converts nothing in between.
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string_view()
                         : std::string_view(static_cast<const char*>(data), static_cast<size_t>(size));
}

int64_t Statement::size_bytes() const {
  int64_t bytes = 0;
  for (int i = 0; i < sqlite3_column_count(statement_); ++i) {
    const int type = sqlite3_column_type(statement_, i);
    if (type == SQLITE_TEXT || type == SQLITE_BLOB) bytes += sqlite3_column_bytes(statement_, i);
  }
  return bytes;
}

std::string Statement::text(int column) const { return std::string(view(column)); }

core::WallTime Statement::time(int column) const { return core::WallTime(std::chrono::microseconds(integer(column))); }

void Statement::bind_one(int place, int64_t value) { sqlite3_bind_int64(statement_, place, value); }

void Statement::bind_null(int place) { sqlite3_bind_null(statement_, place); }

void Statement::bind_one(int place, std::string_view value) {
  // A view without address would be bound as NULL.
  const char* data = value.data() == nullptr ? "" : value.data();
  const int code = sqlite3_bind_text64(statement_, place, data, value.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (code != SQLITE_OK) connection_->fail(code, sql_);
}

void Statement::bind_one(int place, OrNull value) {
  if (value.text.empty()) return bind_null(place);
  bind_one(place, value.text);
}

void Statement::bind_one(int place, Bytes value) {
  const char* data = value.bytes.data() == nullptr ? "" : value.bytes.data();
  const int code = sqlite3_bind_blob64(statement_, place, data, value.bytes.size(), SQLITE_STATIC);
  if (code != SQLITE_OK) connection_->fail(code, sql_);
}

void Statement::bind_one(int place, core::WallTime value) {
  bind_one(place, static_cast<int64_t>(value.time_since_epoch().count()));
}

void Statement::bind_one(int place, const std::optional<core::WallTime>& value) {
  if (!value) return bind_null(place);
  bind_one(place, *value);
}

Connection::Connection(const std::string& path, Mode mode, const std::string& vfs) {
  const int flags = (mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &handle_, flags, vfs.empty() ? nullptr : vfs.c_str());
  try {
    if (code != SQLITE_OK) fail(code, "open");
    sqlite3_busy_timeout(handle_, kBusyMilliseconds);
    // Only the writer's thread checkpoints, explicitly.
    sqlite3_wal_autocheckpoint(handle_, 0);
    if (mode == Mode::kReadOnly) sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    execute(
        "PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON;"
        "PRAGMA temp_store=MEMORY");
    execute("PRAGMA cache_size=-" + std::to_string(mode == Mode::kReadOnly ? kReaderCacheKib : kWriterCacheKib));
  } catch (...) {
    close();
    throw;
  }
}

Connection::~Connection() { close(); }

void Connection::close() {
  for (const auto& [sql, statement] : idle_) sqlite3_finalize(statement);
  idle_.clear();
  sqlite3_close(handle_);
  handle_ = nullptr;
}

Statement Connection::statement(const char* sql) {
  if (const auto found = idle_.find(sql); found != idle_.end() && found->second != nullptr) {
    return {*this, sql, std::exchange(found->second, nullptr)};
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) fail(code, sql);
  return {*this, sql, statement};
}

void Connection::give_back(const char* sql, sqlite3_stmt* statement) {
  sqlite3_reset(statement);
  sqlite3_stmt*& place = idle_[sql];
  if (place != nullptr) {
    sqlite3_finalize(statement);
    return;
  }
  sqlite3_clear_bindings(statement);
  place = statement;
}

void Connection::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, sql);
}

int64_t Connection::changes() const { return sqlite3_changes64(handle_); }

bool Connection::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

void Connection::fail(int code, std::string_view what) {
  damage_ = std::max(damage_, classify(code));
  std::string internal =
      fmt::format("sqlite {} ({}): ", code, handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code));
  internal += what;
  throw meaning(code).with_internal(std::move(internal));
}

}  // namespace meshd::storage
