// Server-sent events. A stream's socket stays in the reactor and costs no thread; what is sent waits in a bounded
// backlog.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "service/core/memory_ledger.h"

namespace meshd::api {

/// One event: `id:`, `event:` and one `data:` line for each line of `data`. Empty id or event leave their line out.
std::string format_event(std::string_view id, std::string_view event, std::string_view data);

/// The same for data that `append` writes behind it, without line ends: long data is not copied.
std::string format_event(std::string_view id, std::string_view event, const std::function<void(std::string&)>& append);

/// A stream of server-sent events to one client. Created by a handler, passed to the server with events(stream). Any
/// thread.
///
/// Two ways to use it. Push: send() from any thread; a client that is slower than its backlog (1 MiB) is disconnected
/// and resumes with Last-Event-ID. Pull, for logs that can be long or have large entries: set_refill() and wake():
///
///   auto stream = std::make_shared<EventStream>(MemoryReservation(ledger, MemoryAccount::kEvents));
///   stream->set_refill([cursor, &log](EventStream& out) mutable {
///     while (out.has_room()) {
///       auto batch = log.after(cursor, 256, [&](int64_t bytes) { return out.admit(bytes); });
///       if (batch.empty()) return;
///       ... out.send(...);
///     }
///   });
///   subscription = log.subscribe([weak = std::weak_ptr(stream)] { if (auto s = weak.lock()) s->wake(); });
///   stream->on_close([subscription] { ... });
///   return events(stream);
///
/// Memory: what is admitted, waits or is being written is held by the stream's reservation. An event that is larger
/// than the backlog, or than all that events may hold, is sent alone; of several streams that come to such events at
/// once, one goes on and the others end behind `retry:`, for their clients to resume.
///
/// The reactor begins each stream with a comment and `retry:`, so that a client sees at once that it is open; it writes
/// a comment every 15 s, and `event: shutdown` with `retry:` when the server drains.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  static constexpr size_t kDefaultBacklogBytes = size_t{1} << 20;

  explicit EventStream(core::MemoryReservation memory = {}, size_t backlog_limit_bytes = kDefaultBacklogBytes);
  ~EventStream();

  /// Queues bytes as format_event made them. False if the stream is closed or has a backlog that they would pass the
  /// limit with, which ends it.
  bool send(std::string event);
  /// True while less than half of the backlog is used. Releases what was admitted: refill asks before each batch.
  [[nodiscard]] bool has_room();
  /// Holds memory for events of so many bytes more, which refill makes next. False when there is none, which ends the
  /// stream with `retry:` behind what is queued.
  [[nodiscard]] bool admit(int64_t bytes);
  [[nodiscard]] bool closed() const;
  /// Ends the stream after the queue is sent.
  void finish();

  /// `refill` runs on a worker thread, never twice at once: once when the stream opens, after each wake(), and when a
  /// backlog that was over half full has drained. Set it before events(stream) is returned.
  void set_refill(std::function<void(EventStream&)> refill);
  /// There may be something new: have refill run soon. Cheap; many wakes become one run.
  void wake();
  /// Has refill run every `interval` as well, as far as `is_wanted` says so then, on the reactor: it must not block.
  /// Set it before events(stream) is returned.
  void set_poll(std::chrono::milliseconds interval, std::function<bool()> is_wanted);
  /// `closed` runs once, on a worker or on the reactor, when the client has disconnected or the server has closed the
  /// stream; at once if it already is. It must not block.
  void on_close(std::function<void()> closed);

  /// The server's side of the stream, notified when there is work. Not for handlers.
  class Port {
   public:
    virtual ~Port() = default;
    virtual void flush() = 0;            ///< there are bytes to write, or the stream is to end
    virtual void schedule_refill() = 0;  ///< run run_refill() on a worker
  };
  /// Connects the stream with its socket. Not for handlers.
  void attach(std::shared_ptr<Port> port);
  /// Takes up to everything that waits. Not for handlers.
  std::string take();
  /// What take() gave last is with the kernel. Not for handlers.
  void taken_is_sent();
  /// Wakes it where set_poll() asks for that. The reactor's thread. Not for handlers.
  void poll(std::chrono::steady_clock::time_point now);
  /// True once finish() was called and nothing waits any more. Not for handlers.
  [[nodiscard]] bool finished() const;
  void run_refill();
  /// The socket is closed. Runs on_close. Not for handlers.
  void close();

 private:
  void settle();
  void release_admitted();

  mutable std::mutex mutex_;
  const size_t backlog_limit_;
  core::MemoryReservation memory_;  ///< of what was admitted, what waits and what was taken
  int64_t admitted_ = 0, taken_ = 0;
  int64_t sent_of_admitted_ = 0;  ///< bytes of admitted events that are in the backlog now, and are counted there
  std::string backlog_;
  bool closed_ = false;
  bool finishing_ = false;
  bool was_over_half_ = false;
  bool refill_scheduled_ = false;  ///< a run is posted and has not begun
  bool refill_running_ = false;
  std::shared_ptr<Port> port_;
  std::function<void(EventStream&)> refill_;
  std::function<void()> on_close_;
  std::chrono::milliseconds poll_interval_{0};
  std::function<bool()> is_poll_wanted_;
  std::chrono::steady_clock::time_point next_poll_;  ///< the reactor's
};

}  // namespace meshd::api
