// Blocks between processes: post and complete, never wait. MPI will be one implementation; the loopback below is
// another, for tests.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace meshd::device {

/// Names a message the same way on both sides without asking: the run, the how-manieth collective of the run, which
/// source of it.
struct MessageKey {
  uint64_t run = 0;
  int64_t visit = 0;
  int64_t shard = 0;   ///< of the step that wants it
  int64_t source = 0;  ///< place in the shard's list of sources
  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};

/// One process's end. Any thread. Never waits.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Sends bytes to rank `peer`; they are copied or sent before it returns.
  virtual void post(int peer, const MessageKey& key, std::span<const std::byte> bytes) = 0;
  /// Calls `completion` (on any thread, perhaps at once) when the message of that key from `peer` stands in `buffer`.
  /// The buffer must live as long as `completion` does: let that own it.
  virtual void expect(int peer, const MessageKey& key, std::span<std::byte> buffer,
                      std::function<void()> completion) = 0;
  /// Drops what came or is expected for a run that is over.
  virtual void forget(uint64_t run) = 0;
};

/// `rank_count` ends in one process, for tests.
std::vector<std::shared_ptr<Transport>> make_loopback(int rank_count);

}  // namespace meshd::device
