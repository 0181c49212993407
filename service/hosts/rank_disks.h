// The disks of the other ranks, as rank 0 uses them: blobs are read, listed, written and removed by messages to their
// ranks (own_disk.h). Who asks waits for the answer, as for a disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "service/hosts/messages.h"
#include "service/hosts/protocol.h"
#include "storage/blobs/rank_blobs.h"

namespace meshd::hosts {

/// Any thread but the network's.
class RankDisks final : public storage::RankBlobs {
 public:
  /// `patience`: for an answer.
  RankDisks(Messages& messages, int rank_count, std::chrono::milliseconds patience)
      : messages_(messages), rank_count_(rank_count), patience_(patience) {}

  [[nodiscard]] bool has_rank(int rank) const override { return rank > 0 && rank < rank_count_; }
  [[nodiscard]] std::vector<storage::StoredBlob> list() override;
  [[nodiscard]] std::unique_ptr<storage::File> open(const std::string& name) override;
  int64_t remove(std::span<const std::string> names) override;

  /// The answers, in order; waits for all of them. Throws the first error, or storage_failed when a rank does not
  /// answer.
  std::vector<DiskAnswer> ask(std::vector<std::pair<int, DiskRequest>> requests);
  DiskAnswer ask(int rank, DiskRequest request);
  /// An answer has come. The network's thread.
  void answered(DiskAnswer answer);

 private:
  class RankFile;
  void tell(int rank, DiskRequest request) { messages_.send(rank, Control::kDisk, encode(std::move(request))); }

  Messages& messages_;
  const int rank_count_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;  // of what follows
  std::condition_variable there_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, std::optional<DiskAnswer>> answers_;  // that somebody waits for
};

}  // namespace meshd::hosts
