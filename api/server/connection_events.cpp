// The part of a connection that is an event stream.
#include <fmt/core.h>

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "api/http/events.h"
#include "api/server/connection.h"
#include "api/server/post.h"
#include "api/server/reactor.h"

namespace meshd::api {
namespace {

constexpr size_t kEventVectors = 8;  // pieces of one write

}  // namespace

/// Posts from a stream, on any thread, to its connection. It keeps the io_context alive, not the reactor: after the end
/// of the server its posts never run.
class Connection::StreamPort final : public EventStream::Port {
 public:
  StreamPort(std::shared_ptr<boost::asio::io_context> io, const std::shared_ptr<Connection>& connection)
      : io_(std::move(io)), connection_(connection) {}

  void flush() override {
    if (flushing_->exchange(true)) return;
    post_surely(*io_, [flushing = flushing_, weak = connection_] {
      flushing->store(false);
      if (const auto connection = weak.lock()) connection->attempt(&Connection::flush_events);
    });
  }

  void schedule_refill() override {
    post_surely(*io_, [weak = connection_] {
      if (const auto connection = weak.lock()) connection->attempt(&Connection::refill_events);
    });
  }

 private:
  std::shared_ptr<boost::asio::io_context> io_;
  std::weak_ptr<Connection> connection_;
  std::shared_ptr<std::atomic<bool>> flushing_ = std::make_shared<std::atomic<bool>>(false);
};

bool Connection::start_events(std::shared_ptr<EventStream> stream) {
  stream_ = std::move(stream);
  open_stream_ = exchange_->take_open_stream();
  event_pieces_.push_back(outgoing_.head());
  const auto head_bytes = static_cast<int64_t>(outgoing_.head().size());
  outgoing_.clear();
  event_chunked_ = exchange_->chunked_answer();
  queue_event_bytes(
      fmt::format(": open; resume with Last-Event-ID\nretry: {}\n\n", reactor_.context().options.event_retry.count()));
  event_blocked_ = false;
  event_ending_ = false;
  last_event_ = std::chrono::steady_clock::now();
  exchange_->sent(head_bytes, last_event_);
  exchange_.reset();
  skipped_ = 0;
  set_state(State::kEvents);
  if (aborted_.load()) {
    close();
    return false;
  }
  flush_events();
  if (state_ != State::kEvents) return false;
  stream_->attach(std::make_shared<StreamPort>(reactor_.io(), shared_from_this()));
  if (!reactor_.listening()) end_events();
  return state_ == State::kEvents;
}

void Connection::refill_events() {
  if (!stream_) return;
  if (!reactor_.workers()->post_next([stream = stream_] { stream->run_refill(); })) close();
}

void Connection::queue_event_bytes(std::string bytes) {
  if (bytes.empty()) return;
  event_deadline_ = std::chrono::steady_clock::now() + reactor_.context().options.event_deadline;
  if (event_chunked_) event_pieces_.push_back(fmt::format("{:x}\r\n", bytes.size()));
  event_pieces_.push_back(std::move(bytes));
  if (event_chunked_) event_pieces_.emplace_back("\r\n");
}

void Connection::event_bytes_written(size_t count) {
  while (count > 0) {
    const size_t step = std::min(count, event_pieces_.front().size() - event_offset_);
    event_offset_ += step;
    count -= step;
    if (event_offset_ < event_pieces_.front().size()) return;
    event_pieces_.pop_front();
    event_offset_ = 0;
  }
  if (event_pieces_.empty()) stream_->taken_is_sent();
}

void Connection::flush_events() {
  if (state_ != State::kEvents || event_blocked_) return;
  while (true) {
    if (event_pieces_.empty() && !event_ending_) {
      queue_event_bytes(stream_->take());
      if (event_pieces_.empty() && stream_->finished()) {
        event_ending_ = true;
        if (event_chunked_) event_pieces_.emplace_back("0\r\n\r\n");
      }
    }
    const bool all_taken = event_pieces_.empty();
    std::array<iovec, kEventVectors> pieces{};
    const size_t count = std::min(pieces.size(), event_pieces_.size());
    for (size_t i = 0; i < count; ++i) {
      const size_t skip = i == 0 ? event_offset_ : 0;
      pieces[i] = {event_pieces_[i].data() + skip, event_pieces_[i].size() - skip};
    }
    const ByteStream::Result sent =
        all_taken ? transport_->flush() : transport_->write(std::span<const iovec>(pieces.data(), count));
    const auto now = std::chrono::steady_clock::now();
    if (sent.outcome == ByteStream::Outcome::kBytes) {
      if (all_taken) break;
      reactor_.context().metrics.socket_writes.fetch_add(1, std::memory_order_relaxed);
      reactor_.context().metrics.bytes_out.fetch_add(static_cast<int64_t>(sent.bytes), std::memory_order_relaxed);
      event_bytes_written(sent.bytes);
      last_event_ = now;
      continue;
    }
    if (sent.outcome != ByteStream::Outcome::kWouldBlockWrite) {
      close();
      return;
    }
    event_blocked_ = true;
    guard_.start(now);
    socket_.async_wait(boost::asio::ip::tcp::socket::wait_write,
                       guarded([](Connection& self, const boost::system::error_code& error) {
                         if (self.state_ != State::kEvents) return;
                         self.event_blocked_ = false;
                         if (error) {
                           self.close();
                         } else {
                           self.flush_events();
                         }
                       }));
    return;
  }
  if (!event_ending_) return;
  if (input_.empty() && !is_input_waiting()) {
    close();
    return;
  }
  // Half closed first, so that the last bytes are not lost to a reset.
  auto stream = std::exchange(stream_, nullptr);
  open_stream_.reset();
  linger();
  stream->close();
  advance();
}

void Connection::end_events() {
  stream_->send(
      fmt::format("retry: {}\n{}", reactor_.context().options.event_retry.count(), format_event({}, "shutdown", "{}")));
  stream_->finish();
  flush_events();
}

}  // namespace meshd::api
