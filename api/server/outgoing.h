// A response being sent: head and body together in as few writes as the socket accepts. Never waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "api/http/http.h"
#include "api/server/byte_stream.h"
#include "api/server/front_metrics.h"

struct iovec;

namespace meshd::api {

/// One thread at a time: whoever owns the connection.
class Outgoing {
 public:
  enum class Progress {
    kDone,       ///< every byte is with the kernel
    kBlocked,    ///< the client has to read first
    kYield,      ///< the budget of this call is used up
    kNeedsPull,  ///< pull() has to make more, on a worker
    kBroken,     ///< the connection is closed, or the source ended early
  };

  /// Where the next response's head is to be written before start().
  [[nodiscard]] std::string& head() { return head_; }
  /// Starts the response `head()` and the body of `response`, which must not be an event stream. `chunk` sends a source
  /// without length in chunks.
  void start(Response&& response, bool chunk);
  /// Lets go of everything but the head's memory.
  void clear();

  /// Writes up to `budget` bytes, without waiting.
  Progress write(ByteStream& transport, int64_t budget, FrontMetrics& metrics);
  /// Makes the next piece of a source. May wait and may throw what the source throws.
  void pull();

  /// Bytes that the stream took, in all.
  [[nodiscard]] int64_t written() const { return written_; }
  /// Of memory that the response has until all of it is sent.
  [[nodiscard]] int64_t held_bytes() const {
    return static_cast<int64_t>(body_.size()) + pieces_.made_bytes + held_bytes_;
  }

 private:
  [[nodiscard]] size_t gather(iovec* out, size_t most) const;
  void advance(int64_t bytes);
  [[nodiscard]] int64_t pending() const { return total_ - written_; }

  std::string head_;
  std::string body_;
  MemoryPieces pieces_;
  BodySource source_;
  int64_t held_bytes_ = 0;  ///< Response::held_bytes
  bool chunk_ = false;
  bool source_ended_ = true;
  bool short_ = false;
  int64_t source_left_ = 0;
  std::unique_ptr<char[]> buffer_;  ///< of a source
  size_t buffer_begin_ = 0, buffer_end_ = 0;

  // Order on the wire: head_, body_, pieces_, then buffers of the source. `piece_` and `offset_` are the position.
  size_t piece_ = 0;
  size_t offset_ = 0;
  int64_t total_ = 0;  ///< bytes known so far
  int64_t written_ = 0;
};

}  // namespace meshd::api
