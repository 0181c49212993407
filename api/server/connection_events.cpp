// The part of a connection that is an event stream.
#include <fmt/core.h>

#include <sys/uio.h>

#include <array>
#include <charconv>
#include <utility>

#include <boost/asio/post.hpp>

#include "api/server/connection.h"
#include "api/server/events.h"
#include "api/server/reactor.h"

namespace meshd::api {

/// Posts from a stream, on any thread, to its connection. It keeps the io_context alive, not the reactor: after the end
/// of the server its posts never run.
class Connection::StreamPort final : public EventStream::Port {
 public:
  StreamPort(std::shared_ptr<boost::asio::io_context> io, const std::shared_ptr<Connection>& connection)
      : io_(std::move(io)), connection_(connection) {}

  void flush() override {
    if (flushing_->exchange(true)) return;
    boost::asio::post(*io_, [flushing = flushing_, weak = connection_] {
      flushing->store(false);
      if (const auto connection = weak.lock()) connection->flush_events();
    });
  }

  void schedule_refill() override {
    boost::asio::post(*io_, [weak = connection_] {
      const auto connection = weak.lock();
      if (!connection || !connection->stream_) return;
      if (!connection->reactor_.workers()->post_next([stream = connection->stream_] { stream->run_refill(); }))
        connection->close();
    });
  }

 private:
  std::shared_ptr<boost::asio::io_context> io_;
  std::weak_ptr<Connection> connection_;
  std::shared_ptr<std::atomic<bool>> flushing_ = std::make_shared<std::atomic<bool>>(false);
};

bool Connection::start_events(std::shared_ptr<EventStream> stream) {
  stream_ = std::move(stream);
  event_bytes_ = outgoing_.head();
  outgoing_.clear();
  event_chunked_ = exchange_->chunked_answer();
  event_blocked_ = false;
  event_ending_ = false;
  last_event_ = std::chrono::steady_clock::now();
  exchange_->sent(static_cast<int64_t>(event_bytes_.size()), last_event_);
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

void Connection::queue_event_bytes(const std::string& bytes) {
  if (bytes.empty()) return;
  if (!event_chunked_) {
    event_bytes_ += bytes;
    return;
  }
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  event_bytes_.append(size.data(), end).append("\r\n").append(bytes).append("\r\n");
}

void Connection::flush_events() {
  if (state_ != State::kEvents || event_blocked_) return;
  while (true) {
    if (event_bytes_.empty() && !event_ending_) {
      queue_event_bytes(stream_->take());
      if (event_bytes_.empty() && stream_->finished()) {
        event_ending_ = true;
        if (event_chunked_) event_bytes_ = "0\r\n\r\n";
      }
    }
    const bool all_taken = event_bytes_.empty();
    const iovec piece{event_bytes_.data(), event_bytes_.size()};
    const ByteStream::Result sent = all_taken ? transport_->flush() : transport_->write({&piece, 1});
    const auto now = std::chrono::steady_clock::now();
    if (sent.outcome == ByteStream::Outcome::kBytes) {
      if (all_taken) break;
      reactor_.context().metrics.socket_writes.fetch_add(1, std::memory_order_relaxed);
      reactor_.context().metrics.bytes_out.fetch_add(static_cast<int64_t>(sent.bytes), std::memory_order_relaxed);
      event_bytes_.erase(0, sent.bytes);
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
                       [self = shared_from_this()](const boost::system::error_code& error) {
                         if (self->state_ != State::kEvents) return;
                         self->event_blocked_ = false;
                         if (error) {
                           self->close();
                         } else {
                           self->flush_events();
                         }
                       });
    return;
  }
  if (!event_ending_) return;
  if (input_.empty() && !is_input_waiting()) {
    close();
    return;
  }
  // Half closed first, so that the last bytes are not lost to a reset.
  auto stream = std::exchange(stream_, nullptr);
  reactor_.context().metrics.close_stream();
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
