// One SQLite connection and its prepared statements: the only place, with database.cpp, that calls SQLite. Inside
// storage only.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "service/core/clock.h"

struct sqlite3;
struct sqlite3_stmt;

namespace meshd::storage {

/// How long a statement waits for a lock of the database.
inline constexpr int kBusyMilliseconds = 5000;

/// Pages that a connection keeps. They are in no account of the memory ledger, so the 16 readers have little: what they
/// read next to a busy writer is stale by then, and the kernel has it.
inline constexpr int kWriterCacheKib = 8192;
inline constexpr int kReaderCacheKib = 1024;

class Connection;

/// The empty string is stored as NULL: for columns that refer to a row that may not be there.
struct OrNull {
  std::string_view text;
};
/// Stored as a blob: any bytes.
struct Bytes {
  std::string_view bytes;
};

/// A prepared statement, borrowed from its connection's cache and returned when destroyed. One thread. Bound text must
/// live until the statement is destroyed or bound again.
class Statement {
 public:
  Statement(Connection& connection, const char* sql, sqlite3_stmt* statement)
      : connection_(&connection), sql_(sql), statement_(statement) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  /// Binds ?1, ?2, ... and starts over.
  template <typename... Values>
  Statement& bind(const Values&... values) {
    reset();
    int place = 0;
    (bind_one(++place, values), ...);
    return *this;
  }
  /// Steps to the next row; false when there is none. Throws as Connection does.
  bool step();
  /// For statements without rows: runs to the end.
  void run();

  [[nodiscard]] int64_t integer(int column) const;
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::string text(int column) const;
  /// Without a copy: until the next step.
  [[nodiscard]] std::string_view view(int column) const;
  /// Of the texts and blobs of the row, which need not be read for it.
  [[nodiscard]] int64_t size_bytes() const;
  [[nodiscard]] core::WallTime time(int column) const;
  /// Columns 0, 1, ... of the row into `values`; NULL is nothing in an optional one, else 0 or empty. A function in
  /// place of a value is called with this and the column.
  template <typename... Values>
  void read(Values&&... values) const {
    int column = 0;
    (read_one(column++, values), ...);
  }

 private:
  void read_one(int column, std::string& value) const { value = text(column); }
  void read_one(int column, int64_t& value) const { value = integer(column); }
  void read_one(int column, bool& value) const { value = integer(column) != 0; }
  void read_one(int column, core::WallTime& value) const { value = time(column); }
  template <typename Value>
  void read_one(int column, std::optional<Value>& value) const {
    if (!is_null(column)) read_one(column, value.emplace());
  }
  template <std::invocable<const Statement&, int> Read>
  void read_one(int column, const Read& read) const {
    read(*this, column);
  }

  void reset();
  void bind_one(int place, int64_t value);
  void bind_one(int place, int value) { bind_one(place, static_cast<int64_t>(value)); }
  void bind_one(int place, bool value) { bind_one(place, static_cast<int64_t>(value)); }
  void bind_one(int place, std::string_view value);
  void bind_one(int place, const std::string& value) { bind_one(place, std::string_view(value)); }
  void bind_one(int place, const char* value) { bind_one(place, std::string_view(value)); }
  void bind_one(int place, OrNull value);
  void bind_one(int place, Bytes value);
  void bind_one(int place, core::WallTime value);
  void bind_one(int place, const std::optional<core::WallTime>& value);
  void bind_one(int place, const std::optional<int64_t>& value) { value ? bind_one(place, *value) : bind_null(place); }
  void bind_null(int place);

  Connection* connection_;
  const char* sql_;
  sqlite3_stmt* statement_;
};

/// How bad the worst failure on a connection was.
enum class Damage {
  kNone,       ///< no failure, or one that concerns the statement alone
  kNoSpace,    ///< disk full
  kIo,         ///< a read failed, memory ran out, or similar: the transaction is lost, the files are as they were
  kLostWrite,  ///< a write or sync failed: the state of the disk is unknown
};

/// One thread at a time. SQLite's failures are thrown as core::Error: disk_full, overloaded (busy, no memory), conflict
/// (a row of this key exists), storage_failed (the rest; SQLite's words are in the internal text).
class Connection {
 public:
  enum class Mode { kReadWrite, kReadOnly };
  Connection(const std::string& path, Mode mode, const std::string& vfs);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  /// `sql` must be a literal: its address is the key of the cache.
  [[nodiscard]] Statement statement(const char* sql);
  /// Runs SQL that is not worth keeping, any number of statements.
  void execute(const std::string& sql);
  /// Rows that the last statement changed.
  [[nodiscard]] int64_t changes() const;
  /// False also after SQLite has rolled the transaction back by itself.
  [[nodiscard]] bool in_transaction() const;
  [[nodiscard]] sqlite3* handle() const { return handle_; }

  [[nodiscard]] Damage damage() const { return damage_; }
  void forget_damage() { damage_ = Damage::kNone; }
  /// Notes the failure and throws what it means.
  [[noreturn]] void fail(int code, std::string_view what);

 private:
  friend class Statement;
  void give_back(const char* sql, sqlite3_stmt* statement);
  void close();

  sqlite3* handle_ = nullptr;
  std::map<const void*, sqlite3_stmt*> idle_;
  Damage damage_ = Damage::kNone;
};

/// The damage to the files that an extended result code of SQLite means.
Damage classify(int code);

}  // namespace meshd::storage
