// One client's connection: reads heads and small bodies, dispatches requests, sends responses. It belongs to the
// reactor's thread except while a worker has it (state kWorking); then the reactor at most shuts its socket down.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "api/http/head.h"
#include "api/http/rate_guard.h"
#include "api/server/byte_stream.h"
#include "api/server/exchange.h"
#include "api/server/input_buffer.h"
#include "api/server/outgoing.h"
#include "service/core/waits/fiber.h"

namespace meshd::api {

class EventStream;
class Reactor;
class WorkerPool;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `transport` carries the bytes of `socket`, which is non-blocking; Asio only waits for it.
  Connection(Reactor& reactor, boost::asio::ip::tcp::socket socket, std::unique_ptr<ByteStream> transport,
             std::string peer_address);
  ~Connection();

  // All of these on the reactor's thread.
  void start();
  /// Looks at deadlines and heartbeats. May close.
  void sweep(Time now);
  /// The listener is closed: idle connections end now, streams get their last event.
  void drain();
  /// Ends it whatever it does.
  void abort();
  /// The socket while a handler has the connection and its client has not left; else -1.
  [[nodiscard]] int working_socket();
  /// The handler's client has left: what waits for it alone ends.
  void client_left();
  /// The handler has to check its condition again.
  void wake_handler();
  [[nodiscard]] const std::string& peer_address() const { return peer_address_; }

 private:
  /// What happens next, and on which thread.
  enum class State {
    kHandshake,  ///< the stream is not open yet
    kIdle,       ///< between requests
    kHead,       ///< part of a head is there
    kTakeBody,   ///< a body is taken in before its handler runs
    kAwaitBody,  ///< the first bytes of a body that a handler will read
    kWorking,    ///< a worker has the connection
    kWriting,    ///< the client has to read before more can be sent
    kSkipBody,   ///< discards the unread rest of a body
    kEvents,     ///< an event stream
    kLinger,     ///< answered and half closed; discards input so that a reset does not lose the response
    kClosed,
  };

  void set_state(State state);
  void begin();
  void look_at_deadlines(Time now);
  void begin_idle();
  /// Opens the stream, a step at a time, each on a thread for handshakes.
  void wait_to_open(boost::asio::ip::tcp::socket::wait_type ready);
  void open();
  void opened(ByteStream::Outcome outcome);
  /// Reads once there is something to read, into room for at least so many bytes.
  void read(size_t at_least);
  void wait_to_read();
  void read_now();
  void on_read(size_t count);
  /// Does what can be done with the input, until it has to wait.
  void advance();
  /// One step of advance(); false when it has to wait.
  bool step();
  bool step_head();
  bool begin_request(Head head);
  /// Reads and takes the head at the front of the input. Throws core::Error.
  Head take_head(size_t head_size);
  bool take_body();
  bool skip_body();
  bool go_on(Exchange::Plan plan);
  bool hand_to_worker(bool streams_body);
  /// As a worker would, on this thread: for a handler that ends soon. If it waits all the same, a worker goes on with
  /// it.
  bool run_briefly();
  /// The handler has the connection from here on; `pool` goes on with it after waits.
  std::shared_ptr<core::FiberWaiter> begin_work(const std::shared_ptr<WorkerPool>& pool);
  void run_on_fiber(const std::shared_ptr<core::FiberWaiter>& waiter, bool streams_body);
  bool refuse_head(const core::Error& error);

  bool run_here();
  void run_on_worker(bool streams_body);
  void answer_on_worker(bool streams_body);
  /// On the handler's fiber: releases the thread until the socket is ready for what the stream needs, or `until`.
  void wait_ready(ByteStream::Outcome wanted, Time until);
  void watch_socket(ByteStream::Outcome wanted);
  bool start_answer();
  /// Writes as much as possible; false when it has to wait.
  bool write_more();
  /// Bytes a second that the client has to read: a large text holds memory that others need.
  [[nodiscard]] int64_t answer_rate() const;
  /// Reports the progress of the response to the rate guard; the first call starts it.
  void note_written();
  void wait_writable();
  void worker_pull();
  /// From a worker: the connection is the reactor's again.
  void come_back(Outgoing::Progress progress);
  void back_from_worker(Outgoing::Progress progress);
  bool on_progress(Outgoing::Progress progress);
  bool finish_answer();
  void send_continue();
  /// An interim response, ahead of the response.
  void send_interim(std::string_view head);
  [[nodiscard]] bool body_can_be_left() const;

  bool start_events(std::shared_ptr<EventStream> stream);
  void flush_events();
  /// Has a worker fetch what comes next.
  void refill_events();
  void queue_event_bytes(std::string bytes);
  /// Counts bytes of the queued ones as written.
  void event_bytes_written(size_t count);
  void end_events();

  void linger();
  void close();
  [[nodiscard]] int fd();
  /// The kernel or the stream holds bytes for us.
  [[nodiscard]] bool is_input_waiting();

  class StreamPort;

  /// Calls `call` with this connection, which ends alone where that throws (out of memory, as a rule).
  template <typename Call, typename... Arguments>
  void attempt(const Call& call, const Arguments&... arguments) {
    try {
      std::invoke(call, *this, arguments...);
    } catch (...) {
      abort();
    }
  }
  /// The same as a handler for the reactor, which keeps the connection.
  template <typename Call>
  auto guarded(Call call) {
    return [self = shared_from_this(), call](const auto&... arguments) { self->attempt(call, arguments...); };
  }

  Reactor& reactor_;
  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<ByteStream> transport_;
  std::string peer_address_;
  State state_ = State::kClosed;
  InputBuffer input_;
  HeadScanner scanner_;
  Time deadline_ = Time::max();
  RateGuard guard_;
  core::WaiterRef waiter_;  ///< of the handler that has the connection or had it last
  bool reading_ = false;
  size_t read_room_ = 0;                               ///< of the read that waits
  bool read_watched_ = false, write_watched_ = false;  ///< for the handler's fiber
  bool advancing_ = false;
  std::atomic<bool> aborted_{false};

  /// The last head that was understood: clients repeat themselves, and the same bytes mean the same.
  struct Known {
    std::string bytes;
    Head head;
  };
  Known known_;

  std::unique_ptr<Exchange> exchange_;
  Outgoing outgoing_;
  int64_t guarded_bytes_ = 0;  ///< of outgoing_ that were reported to the guard
  std::optional<BodyPipeline> left_body_;
  int64_t skipped_ = 0;  ///< bytes of kSkipBody and kLinger
  bool continue_sent_ = false;

  std::string taken_;  ///< a body that is taken in
  size_t taken_size_ = 0;

  std::shared_ptr<EventStream> stream_;
  FrontMetrics::OpenStream open_stream_;  ///< while there is one
  std::deque<std::string> event_pieces_;  ///< to be written, the first from event_offset_ on
  size_t event_offset_ = 0;
  Time event_deadline_ = Time::max();  ///< for what is to be written
  bool event_blocked_ = false;
  bool event_chunked_ = false;
  bool event_ending_ = false;
  Time last_event_{};
};

}  // namespace meshd::api
