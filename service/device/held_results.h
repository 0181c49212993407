// What a run over several processes need not send: shards of stored arrays that the process which needs them has
// already, and shards of results that stay where they were made. The engine of one process has no use for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace meshd::device {

/// A shard on a disk (storage::BlobRef).
struct ShardFile {
  std::string name;
  int64_t length = 0;
  uint64_t checksum = 0;
};

/// What becomes of the shards of a result that other processes hold.
enum class ResultPlace : uint8_t {
  kHere,   ///< they come here
  kBoth,   ///< they come here, and stay there until HeldResults ends: a later run may want them
  kThere,  ///< they stay there, until HeldResults ends
};

/// What rank 0 need not have of a run: shards of other ranks' devices. By argument and by result; empty: it has all.
struct ApartShards {
  std::vector<char> arguments;  ///< true: RunRequest::bind may leave them null (RunArgument::load)
  std::vector<ResultPlace> results;
};

/// Results that other processes hold, for as long as this lives. One thread at a time.
class HeldResults {
 public:
  virtual ~HeldResults() = default;
  /// The process that has a shard which is null in RunOutcome::outputs.
  [[nodiscard]] virtual int rank_of(size_t result, int64_t shard) const = 0;
  struct ToStore {
    size_t result = 0;
    int64_t shard = 0;
    std::string name;  ///< of the file to be
  };
  /// Has these shards written to the disks of the processes that have them, and waits until they are durable there. In
  /// the order of `shards`. Throws disk_full, storage_failed; files that are there then have no row.
  virtual std::vector<ShardFile> store(const std::vector<ToStore>& shards) = 0;
  /// The result has become this version of an array (RunArgument::version): runs that take it find its shards there.
  virtual void became(size_t result, const std::string& version) = 0;
};

}  // namespace meshd::device
