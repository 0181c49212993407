// The catalog of rows, for every folder of service/: reads from any thread, writes through the one writer thread with
// group commit (one fsync for many transactions).
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "service/core/histogram.h"
#include "storage/database/database.h"
#include "storage/rows/reader.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {

class DiskReserve;

/// What a transaction does to the space on the disk.
enum class Space : uint8_t {
  kTakes,
  kFrees,  ///< deletes: on a full disk it may use the reserve (disk_reserve.h)
};

inline constexpr double kCommitBounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                           0.01,   0.025,   0.05,   0.1,   0.25,   1};

/// How the writer has been doing, for /metrics. Counters only grow.
struct CatalogCounters {
  int64_t transactions = 0;  ///< callables that became durable
  int64_t commits = 0;       ///< groups that became durable
  int64_t checkpoints = 0;
  int64_t queued = 0;              ///< waiting now
  int64_t wal_bytes = 0;           ///< now
  int64_t reader_connections = 0;  ///< open now, all read-only
  int64_t writer_connections = 0;  ///< always 1
  core::Histogram commit_seconds{kCommitBounds};
};

/// Any thread. Must be destroyed before the Database it was made from.
class Catalog {
 public:
  /// `reserve`: see Writer; null: there is none.
  explicit Catalog(Database& database, DiskReserve* reserve = nullptr);
  /// Finishes what is queued, then stops the writer thread.
  ~Catalog();

  /// Runs `f` on the writer thread and returns when what it did is durable. What `f` throws undoes its own part only
  /// and is thrown here. Throws disk_full when the group could not be written (nothing of it happened; reads go on and
  /// a later write may succeed; one that frees space has tried the reserve as well), storage_failed after a fatal
  /// failure. `f` must not block, nor call write.
  void write(const std::function<void(Transaction&)>& f, Space space = Space::kTakes);

  /// The same, and `then` runs on the writer thread once it is durable, before what later transactions did is
  /// acknowledged and before the collector may remove a blob that `f` has dropped: for state in memory that follows the
  /// rows in the order of transactions. `then` must be short and must neither throw nor wait.
  void write_then(const std::function<void(Transaction&)>& f, const std::function<void()>& then,
                  Space space = Space::kTakes);

  /// The same without waiting: `done` is called on the writer thread, with nullptr when it is durable, else with the
  /// error. `done` must be short and must neither throw nor wait.
  void write_async(std::function<void(Transaction&)> f, std::function<void(std::exception_ptr)> done);

  /// Runs `f(Reader&)` in one snapshot on the calling thread and returns what it returns. Sees everything that was
  /// acknowledged before. `f` should be short: a snapshot that stays open keeps the log from being truncated.
  template <typename F>
  std::invoke_result_t<F&, Reader&> read(F&& f) {
    using Result = std::invoke_result_t<F&, Reader&>;
    if constexpr (std::is_void_v<Result>) {
      read_with([&](Reader& reader) { f(reader); });
    } else {
      std::optional<Result> result;
      read_with([&](Reader& reader) { result.emplace(f(reader)); });
      return std::move(*result);
    }
  }

  /// Blobs that committed transactions stopped naming since the last call: the collector's work.
  [[nodiscard]] std::vector<std::string> take_dropped_blobs();

  /// False after a fatal failure, and while the last commit failed with a full disk.
  [[nodiscard]] bool writable() const;
  [[nodiscard]] CatalogCounters counters() const;

 private:
  void read_with(const std::function<void(Reader&)>& f);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::storage
