#include "api/server/connection.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "api/http/events.h"
#include "api/server/reactor.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr size_t kTargetBytes = 8 * 1024;
constexpr size_t kKnownBytes = 1024;
constexpr size_t kIdleRead = 4 * 1024;
constexpr size_t kBodyRead = 64 * 1024;
constexpr int kTurnRequests = 16;
// What a client may still send to an answered connection: a program's body whole, since many clients read no answer
// before they have sent all. kLinger bounds the time.
constexpr int64_t kLingerBytes = int64_t{64} << 20;

bool is_peer_gone(int fd) {
  pollfd look{fd, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

Connection::Connection(Reactor& reactor, boost::asio::ip::tcp::socket socket, std::unique_ptr<ByteStream> transport,
                       std::string peer_address)
    : reactor_(reactor),
      socket_(std::move(socket)),
      transport_(std::move(transport)),
      peer_address_(std::move(peer_address)),
      scanner_({static_cast<size_t>(reactor.context().options.head_bytes), kTargetBytes,
                reactor.context().options.head_fields}),
      guard_(reactor.context().options.minimum_bytes_per_second, reactor.context().options.rate_grace) {}

Connection::~Connection() = default;

bool Connection::is_input_waiting() {
  int waiting = 0;
  return transport_->has_buffered() || (::ioctl(fd(), FIONREAD, &waiting) == 0 && waiting > 0);
}

int Connection::fd() { return socket_.native_handle(); }

void Connection::set_state(State state) {
  FrontMetrics& metrics = reactor_.context().metrics;
  const auto gauge = [&](State of) -> std::atomic<int64_t>* {
    switch (of) {
      case State::kIdle:
        return &metrics.idle;
      case State::kHandshake:
      case State::kHead:
      case State::kTakeBody:
      case State::kAwaitBody:
      case State::kSkipBody:
        return &metrics.reading;
      case State::kWorking:
        return &metrics.working;
      case State::kWriting:
      case State::kLinger:
        return &metrics.writing;
      case State::kEvents:
      case State::kClosed:
        return nullptr;
    }
    return nullptr;
  };
  std::atomic<int64_t>* before = gauge(state_);
  std::atomic<int64_t>* after = gauge(state);
  state_ = state;
  if (before == after) return;
  // Only this thread writes these, so that no locked instruction is needed.
  const auto add = [](std::atomic<int64_t>* to, int64_t count) {
    if (to != nullptr) to->store(to->load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  };
  add(before, -1);
  add(after, 1);
}

void Connection::start() { attempt(&Connection::begin); }

void Connection::begin() {
  if (transport_->is_open()) {
    begin_idle();
    return;
  }
  set_state(State::kHandshake);
  deadline_ = std::chrono::steady_clock::now() + reactor_.context().options.head_deadline;
  wait_to_open(boost::asio::ip::tcp::socket::wait_read);
}

void Connection::begin_idle() {
  set_state(State::kIdle);
  deadline_ = std::chrono::steady_clock::now() + reactor_.context().options.idle_deadline;
  read(kIdleRead);
}

void Connection::read(size_t at_least) {
  if (reading_ || state_ == State::kClosed) return;
  reading_ = true;
  read_room_ = at_least;
  if (transport_->has_buffered()) {
    boost::asio::post(*reactor_.io(), guarded([](Connection& self) { self.read_now(); }));
  } else {
    wait_to_read();
  }
}

void Connection::wait_to_read() {
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_read,
                     guarded([](Connection& self, const boost::system::error_code& error) {
                       if (error) {
                         self.close();
                       } else {
                         self.read_now();
                       }
                     }));
}

void Connection::read_now() {
  if (state_ == State::kClosed) return;
  ByteStream::Result got;
  try {
    got = transport_->read(std::as_writable_bytes(input_.prepare(read_room_)));
  } catch (...) {
    // No memory to read into: the connection ends.
  }
  switch (got.outcome) {
    case ByteStream::Outcome::kBytes:
      on_read(got.bytes);
      return;
    case ByteStream::Outcome::kWouldBlockRead:
      wait_to_read();
      return;
    case ByteStream::Outcome::kWouldBlockWrite:
    case ByteStream::Outcome::kEnd:
    case ByteStream::Outcome::kBroken:
      close();
  }
}

void Connection::on_read(size_t count) {
  reading_ = false;
  reactor_.context().metrics.bytes_in.fetch_add(static_cast<int64_t>(count), std::memory_order_relaxed);
  input_.commit(count);
  if (exchange_) exchange_->count_in(static_cast<int64_t>(count));
  if (state_ == State::kTakeBody || state_ == State::kSkipBody) {
    guard_.progress(std::chrono::steady_clock::now(), static_cast<int64_t>(count));
  }
  advance();
}

void Connection::advance() {
  if (advancing_) return;
  advancing_ = true;
  int turns = 0;
  try {
    while (step()) {
      // A client that sends request after request must not keep the others waiting.
      if (state_ == State::kIdle && ++turns >= kTurnRequests && !input_.empty()) {
        boost::asio::post(*reactor_.io(), guarded([](Connection& self) { self.advance(); }));
        break;
      }
    }
  } catch (...) {
    close();  // no memory for this request: it ends alone
  }
  advancing_ = false;
}

bool Connection::step() {
  switch (state_) {
    case State::kIdle:
    case State::kHead:
      return step_head();
    case State::kTakeBody:
      return take_body();
    case State::kAwaitBody:
      if (!input_.empty()) return hand_to_worker(true);
      read(kBodyRead);
      return false;
    case State::kSkipBody:
      return skip_body();
    case State::kEvents:
    case State::kLinger:
      skipped_ += static_cast<int64_t>(input_.view().size());
      input_.consume(input_.view().size());
      if (skipped_ > kLingerBytes) {
        close();
      } else {
        read(state_ == State::kLinger ? kBodyRead : kIdleRead);
      }
      return false;
    case State::kHandshake:
    case State::kWorking:
    case State::kWriting:
    case State::kClosed:
      return false;
  }
  return false;
}

bool Connection::step_head() {
  if (input_.empty()) {
    input_.shrink(kIdleRead);
    if (!reactor_.listening() && !is_input_waiting()) {
      close();  // the server drains
    } else {
      read(kIdleRead);
    }
    return false;
  }
  if (state_ == State::kIdle) {
    if (!known_.bytes.empty() && input_.view().starts_with(known_.bytes)) {
      input_.consume(known_.bytes.size());
      return begin_request(known_.head);
    }
    set_state(State::kHead);
    scanner_.reset();
    deadline_ = std::chrono::steady_clock::now() + reactor_.context().options.head_deadline;
  }
  Head head;
  try {
    const std::optional<size_t> end = scanner_.find_end(input_.view());
    if (!end) {
      read(kIdleRead);
      return false;
    }
    head = take_head(*end);
  } catch (const core::Error& error) {
    return refuse_head(error);
  }
  return begin_request(std::move(head));
}

Head Connection::take_head(size_t head_size) {
  const ServerOptions& options = reactor_.context().options;
  const std::string_view bytes = input_.view().substr(0, head_size);
  Head head = parse_head(bytes, {static_cast<size_t>(options.head_bytes), kTargetBytes, options.head_fields});
  reactor_.context().bridge.understand(head);
  if (head_size <= kKnownBytes) known_ = {std::string(bytes), head};
  input_.consume(head_size);
  return head;
}

bool Connection::refuse_head(const core::Error& error) {
  // Nothing after a head that was refused can be trusted to be a request.
  exchange_ = std::make_unique<Exchange>(reactor_.context(), error, peer_address_);
  skipped_ = 0;
  return run_here();
}

bool Connection::begin_request(Head head) {
  deadline_ = Time::max();
  continue_sent_ = false;
  exchange_ = std::make_unique<Exchange>(reactor_.context(), std::move(head), peer_address_);
  reactor_.busy_poll().on_request(exchange_->received());
  exchange_->count_in(static_cast<int64_t>(input_.view().size()));
  exchange_->set_client_gone([fd = fd()] { return is_peer_gone(fd); });
  return go_on(exchange_->plan());
}

bool Connection::go_on(Exchange::Plan plan) {
  switch (plan) {
    case Exchange::Plan::kRunHere:
      return run_here();
    case Exchange::Plan::kRunOnWorker:
      return exchange_->is_brief() && reactor_.has_time_for(*this) ? run_briefly() : hand_to_worker(false);
    case Exchange::Plan::kTakeBody:
      set_state(State::kTakeBody);
      guard_.start(std::chrono::steady_clock::now());
      taken_size_ = 0;
      if (exchange_->head().expect_continue && input_.empty()) send_continue();
      return true;
    case Exchange::Plan::kStreamBody:
      // A body whose first byte is not here yet needs no thread; a client that waits for 100 Continue needs the
      // handler's word.
      if (!input_.empty() || exchange_->head().expect_continue) return hand_to_worker(true);
      set_state(State::kAwaitBody);
      guard_.start(std::chrono::steady_clock::now());
      return true;
  }
  return false;
}

void Connection::send_continue() {
  continue_sent_ = true;
  send_interim("HTTP/1.1 100 Continue\r\n\r\n");
}

void Connection::send_interim(std::string_view head) {
  const iovec piece{const_cast<char*>(head.data()), head.size()};
  const ByteStream::Result sent = transport_->write({&piece, 1});
  reactor_.context().metrics.socket_writes.fetch_add(1, std::memory_order_relaxed);
  // Nothing waits to be written before it, so that it fits; if not, the connection is of no use.
  if (sent.bytes != head.size()) ::shutdown(fd(), SHUT_RDWR);
}

bool Connection::take_body() {
  BodyPipeline& body = *exchange_->pipeline();
  try {
    while (true) {
      const BodyPipeline::Step step =
          body.pump(input_.view(), std::as_writable_bytes(std::span(taken_)).subspan(taken_size_));
      input_.consume(step.consumed);
      taken_size_ += step.produced;
      if (body.done()) break;
      if (taken_size_ < taken_.size()) {
        read(kBodyRead);
        return false;
      }
      // Full: room grows with what came, never with what was announced alone.
      const auto announced = static_cast<size_t>(body.announced().value_or(INT64_MAX));
      const size_t larger = std::max(taken_size_ + 1, std::min(announced, std::max(taken_.size() * 2, kBodyRead)));
      exchange_->memory().grow(static_cast<int64_t>(larger - taken_.size()));
      taken_.resize(larger);
    }
  } catch (const core::Error& error) {
    taken_ = {};  // its reservation goes with the refusal
    exchange_->refuse_body(error);
    return run_here();
  }
  taken_.resize(taken_size_);
  exchange_->give_body(std::exchange(taken_, {}));
  return go_on(exchange_->after_body());
}

bool Connection::skip_body() {
  try {
    const size_t count = left_body_->skip(input_.view());
    input_.consume(count);
    skipped_ += static_cast<int64_t>(count);
  } catch (const core::Error&) {
    close();
    return false;
  }
  if (left_body_->done()) {
    left_body_.reset();
    set_state(State::kIdle);
    deadline_ = std::chrono::steady_clock::now() + reactor_.context().options.idle_deadline;
    return true;
  }
  if (skipped_ > reactor_.context().options.drain_bytes) {
    linger();  // no request is looked for behind so much, but the client may not have read its answer yet
    return true;
  }
  read(kBodyRead);
  return false;
}

bool Connection::body_can_be_left() const {
  const std::optional<BodyPipeline>& body = exchange_->pipeline();
  if (!body || body->done()) return true;
  // Without 100 Continue yet, whether the client sends the body is unknown.
  if (exchange_->head().expect_continue && !continue_sent_) return false;
  return body->raw_left().value_or(0) <= reactor_.context().options.drain_bytes;
}

void Connection::sweep(Time now) { attempt(&Connection::look_at_deadlines, now); }

void Connection::look_at_deadlines(Time now) {
  switch (state_) {
    case State::kHandshake:
      if (now <= deadline_) return;
      reactor_.context().metrics.handshakes_late.fetch_add(1);
      close();
      return;
    case State::kIdle:
    case State::kLinger:
      if (now > deadline_) close();
      return;
    case State::kHead:
      if (now > deadline_ && refuse_head(core::Error("request_timeout", "the request's head took too long"))) advance();
      return;
    case State::kTakeBody:
    case State::kAwaitBody:
      if (!guard_.too_slow(now)) return;
      exchange_->refuse(core::Error("request_timeout", "the body arrives too slowly"));
      if (run_here()) advance();
      return;
    case State::kSkipBody:
    case State::kWriting:
      if (guard_.too_slow(now)) close();
      return;
    case State::kEvents:
      if (event_blocked_ ? guard_.too_slow(now) || now > event_deadline_ : event_ending_) {
        close();
      } else if (!event_blocked_ && now - last_event_ >= reactor_.context().options.heartbeat) {
        queue_event_bytes(": heartbeat\n\n");
        flush_events();
      }
      if (state_ == State::kEvents && stream_ != nullptr) stream_->poll(now);
      return;
    case State::kWorking:
    case State::kClosed:
      return;
  }
}

void Connection::drain() {
  if (state_ == State::kIdle) {
    // A request that has just arrived is still answered.
    if (input_.empty() && !is_input_waiting()) close();
  } else if (state_ == State::kHandshake) {
    close();  // it has sent no request yet
  } else if (state_ == State::kEvents) {
    end_events();
  }
}

int Connection::working_socket() {
  return state_ == State::kWorking && waiter_ != nullptr && !waiter_->is_abandoned() ? fd() : -1;
}

void Connection::client_left() { waiter_->abandon(); }

void Connection::wake_handler() {
  if (state_ == State::kWorking && waiter_ != nullptr) waiter_->notify();
}

void Connection::abort() {
  aborted_.store(true);
  if (state_ == State::kWorking) {
    ::shutdown(fd(), SHUT_RDWR);  // the worker sees it and comes back
    if (waiter_ != nullptr) waiter_->abandon();
  } else {
    close();
  }
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  set_state(State::kClosed);
  // An aborted response must not look complete.
  if (!exchange_ && event_pieces_.empty()) transport_->notify_end();
  if (auto stream = std::exchange(stream_, nullptr)) {
    open_stream_.reset();
    stream->close();
  }
  exchange_.reset();
  outgoing_.clear();
  taken_ = {};
  boost::system::error_code ignored;
  socket_.close(ignored);
  reactor_.forget(self);
}

}  // namespace meshd::api
