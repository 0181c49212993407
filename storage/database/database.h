// One SQLite file in WAL mode with synchronous=FULL. Exactly one connection may write, commit and checkpoint, and one
// thread owns it; every other connection is opened read-only. That rule keeps the WAL-reset bug of SQLite < 3.51.3 away
// (storage/README.md). Also here: the schema's numbered migrations and the check after an unclean end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/fatal.h"

namespace meshd::storage {

class Connection;

struct DatabaseOptions {
  std::string path;
  std::string vfs;     ///< name of a registered sqlite3_vfs; empty is the system's
  FatalHandler fatal;  ///< must be set
};

/// Opens or makes the file, checks it after an unclean end, migrates the schema. Throws storage_failed with a clear
/// line when the file is damaged or has a newer schema than this build.
/// Thread rule: `writer` belongs to the one thread that runs Catalog's commits; the rest is any thread.
class Database {
 public:
  explicit Database(DatabaseOptions options);
  /// Checkpoints and marks the end as clean, unless a fatal failure happened.
  ~Database();

  [[nodiscard]] Connection& writer() { return *writer_; }
  [[nodiscard]] std::unique_ptr<Connection> open_reader() const;
  [[nodiscard]] bool was_clean() const { return was_clean_; }
  [[nodiscard]] int64_t schema_version() const { return schema_version_; }

  /// Of the file without its log, which may have pages that the file lacks.
  [[nodiscard]] int64_t bytes() const;
  /// Bytes of the write-ahead log now.
  [[nodiscard]] int64_t wal_bytes() const;
  /// Notes that a write may be lost: calls the fatal handler, the first time only. From then on `failed` is true and
  /// nothing is written any more.
  void fail(const std::string& reason);
  [[nodiscard]] bool failed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<Connection> writer_;
  bool was_clean_ = true;
  int64_t schema_version_ = 0;
};

/// Copies the database that `from` reads, as it is now, into a new file (SQLite's online backup). Writers go on
/// meanwhile: no sync has more than 2 MiB to write, and their log grows until the end. `from` is in no transaction,
/// before and after. Throws disk_full, storage_failed.
void copy_database(Connection& from, const std::string& path);

}  // namespace meshd::storage
