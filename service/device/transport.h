// Point-to-point messages between processes (ranks): post and complete, never wait. This is the seam for machines;
// service/hosts/messages.h implements it over a network, tests/support/loopback_transport.h within a process.
//
// Invariant: a message has one sender, one receiver and one key, and both sides compute the key without negotiation.
// Every rank executes the same steps in the same order, so the number of the collective names its messages.
//
// 1. Each rank walks all sources of the collective, in order.
// 2. The rank of a source's holder (the first active device that has it) posts it to each peer that needs it and does
//    not have it.
// 3. A rank that needs a source and does not have it expects it from the rank of the holder.
// 4. When the last message is in its buffer, its completion resumes the run.
//
// Example: 4x4xi32 on a mesh x=2, y=2, rows over (x, y) -> columns over y; devices 0 and 1 are rank 0's, devices 2 and
// 3 rank 1's. Run 7, first collective. Result shard 0 is columns 0 and 1; device 0 holds it, and device 2 has row 2.
// Out: rank 1 posts key {run 7, visit 0, shard 0, source 2} to rank 0, 8 bytes: elements 8 and 9 of the global array.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace meshd::device {

/// The name of a message, the same on both sides: the run, the number of the collective in the run, the result shard,
/// the source.
struct MessageKey {
  uint64_t run = 0;
  int64_t visit = 0;
  int64_t shard = 0;   ///< of the step that reads it
  int64_t source = 0;  ///< place in the shard's list of sources
  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};

/// One process's end. Any thread. Never waits.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Sends bytes to rank `peer`; they are copied or sent before it returns.
  virtual void post(int peer, const MessageKey& key, std::span<const std::byte> bytes) = 0;
  /// The same, where a copy can be spared: `keep` owns the bytes, which do not change until it is released (on any
  /// thread, perhaps before this returns): when they are sent, or never will be.
  virtual void post_kept(int peer, const MessageKey& key, std::span<const std::byte> bytes,
                         const std::shared_ptr<const void>& /*keep*/) {
    post(peer, key, bytes);
  }
  /// Calls `completion` (on any thread, perhaps at once) when the message of that key from `peer` is in `buffer`.
  /// The buffer must live as long as `completion` does: let that own it.
  virtual void expect(int peer, const MessageKey& key, std::span<std::byte> buffer,
                      std::function<void()> completion) = 0;
  /// Drops messages that arrived, are expected or are not sent yet for a run that is over.
  virtual void forget(uint64_t run) = 0;
};

}  // namespace meshd::device
