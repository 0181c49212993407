// The part of a connection that runs requests and sends responses, here or on a worker.
#include <sys/socket.h>

#include <new>
#include <utility>

#include <boost/asio/post.hpp>

#include "api/server/connection.h"
#include "api/server/post.h"
#include "api/server/reactor.h"
#include "api/server/socket_body.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr int64_t kTurnBytes = int64_t{1} << 20;  // written before other connections are served
constexpr std::chrono::seconds kLinger{2};

}  // namespace

bool Connection::run_here() {
  exchange_->run([this] { return body_can_be_left(); }, outgoing_.head());
  return start_answer();
}

std::shared_ptr<core::FiberWaiter> Connection::begin_work(const std::shared_ptr<WorkerPool>& pool) {
  set_state(State::kWorking);
  auto waiter = reactor_.fibers().prepare([pool](std::function<void()> next) { pool->post_next(std::move(next)); });
  waiter_ = waiter;
  exchange_->set_waiter(waiter);
  return waiter;
}

bool Connection::hand_to_worker(bool streams_body) {
  const std::shared_ptr<WorkerPool>& pool = streams_body ? reactor_.uploads() : reactor_.workers();
  const bool taken = pool->post([self = shared_from_this(), waiter = begin_work(pool), streams_body] {
    self->run_on_fiber(waiter, streams_body);
  });
  if (taken) {
    reactor_.watch_clients();
    return false;
  }
  waiter_.reset();
  exchange_->set_waiter(nullptr);
  exchange_->deny(core::Error("overloaded", "too many requests wait for a thread").with_retry_after(1));
  return run_here();
}

bool Connection::run_briefly() {
  run_on_fiber(begin_work(reactor_.workers()), false);
  reactor_.watch_clients();
  return false;
}

void Connection::run_on_fiber(const std::shared_ptr<core::FiberWaiter>& waiter, bool streams_body) {
  const std::shared_ptr<Connection> self = shared_from_this();
  try {
    reactor_.fibers().run(waiter, [self, streams_body] { self->run_on_worker(streams_body); });
  } catch (const std::bad_alloc&) {  // no stack
    come_back(Outgoing::Progress::kBroken);
  }
}

void Connection::come_back(Outgoing::Progress progress) {
  post_surely(*reactor_.io(), guarded([progress](Connection& self) { self.back_from_worker(progress); }));
}

void Connection::run_on_worker(bool streams_body) {
  try {
    if (!aborted_.load()) {
      answer_on_worker(streams_body);
      if (std::holds_alternative<std::shared_ptr<EventStream>>(exchange_->response().body)) {
        post_surely(*reactor_.io(), guarded([](Connection& self) {
          self.set_state(State::kWriting);
          if (self.start_answer()) self.advance();
        }));
        return;
      }
      outgoing_.start(std::move(exchange_->response()), exchange_->chunked_answer());
      worker_pull();
      return;
    }
  } catch (...) {
    // No memory for the response: the connection ends.
  }
  come_back(Outgoing::Progress::kBroken);
}

void Connection::answer_on_worker(bool streams_body) {
  if (!streams_body) {
    exchange_->run([this] { return body_can_be_left(); }, outgoing_.head());
    return;
  }
  // The body's minimum rate counts from the handler's first read: time before it is the server's.
  const auto reader = std::make_shared<SocketBody>(
      *transport_, input_, *exchange_->pipeline(), guard_,
      [this](ByteStream::Outcome wanted, Time until) {
        // The client has left, or another request has taken the upload over, and what had come is read: no more comes.
        if (waiter_->is_abandoned()) throw core::Error("malformed_body", "the connection ended inside of the body");
        wait_ready(wanted, until);
      },
      [this] {
        if (exchange_->head().expect_continue && input_.empty()) send_continue();
      },
      reactor_.context().metrics.bytes_in);
  exchange_->give_reader(reader);
  exchange_->set_send_interim([this](std::string_view head) { send_interim(head); });
  exchange_->run([&] { return !reader->failed() && body_can_be_left(); }, outgoing_.head());
  exchange_->count_in(reader->bytes_read());
}

void Connection::wait_ready(ByteStream::Outcome wanted, Time until) {
  boost::asio::post(*reactor_.io(), guarded([wanted](Connection& self) { self.watch_socket(wanted); }));
  waiter_->wait(until);
}

void Connection::watch_socket(ByteStream::Outcome wanted) {
  const bool write = wanted == ByteStream::Outcome::kWouldBlockWrite;
  bool& watched = write ? write_watched_ : read_watched_;
  if (state_ != State::kWorking || watched) return;
  watched = true;
  socket_.async_wait(write ? boost::asio::ip::tcp::socket::wait_write : boost::asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this(), &watched](const boost::system::error_code&) {
                       watched = false;
                       if (self->waiter_ != nullptr) self->waiter_->notify();
                     });
}

void Connection::worker_pull() {
  Outgoing::Progress progress = outgoing_.write(*transport_, kTurnBytes, reactor_.context().metrics);
  try {
    while (progress == Outgoing::Progress::kNeedsPull && !aborted_.load()) {
      outgoing_.pull();
      progress = outgoing_.write(*transport_, kTurnBytes, reactor_.context().metrics);
    }
  } catch (const core::Error& error) {
    // The head is sent already: only an aborted connection shows that the body is incomplete.
    exchange_->cut_off(error);
    progress = Outgoing::Progress::kBroken;
  } catch (...) {
    progress = Outgoing::Progress::kBroken;
  }
  come_back(progress);
}

void Connection::back_from_worker(Outgoing::Progress progress) {
  if (state_ == State::kClosed) return;
  if (aborted_.load()) {
    close();
    return;
  }
  set_state(State::kWriting);
  guard_.start(std::chrono::steady_clock::now(), answer_rate());
  guarded_bytes_ = outgoing_.written();
  if (on_progress(progress)) advance();
}

bool Connection::start_answer() {
  if (auto* stream = std::get_if<std::shared_ptr<EventStream>>(&exchange_->response().body)) {
    return start_events(std::move(*stream));
  }
  outgoing_.start(std::move(exchange_->response()), exchange_->chunked_answer());
  guarded_bytes_ = 0;
  set_state(State::kWriting);
  return write_more();
}

bool Connection::write_more() {
  return on_progress(outgoing_.write(*transport_, kTurnBytes, reactor_.context().metrics));
}

bool Connection::on_progress(Outgoing::Progress progress) {
  switch (progress) {
    case Outgoing::Progress::kDone:
      return finish_answer();
    case Outgoing::Progress::kBlocked:
      note_written();
      wait_writable();
      return false;
    case Outgoing::Progress::kYield:
      note_written();
      boost::asio::post(*reactor_.io(), guarded([](Connection& self) {
        if (self.state_ == State::kWriting && self.write_more()) self.advance();
      }));
      return false;
    case Outgoing::Progress::kNeedsPull:
      set_state(State::kWorking);
      try {
        if (reactor_.workers()->post_next([self = shared_from_this()] { self->worker_pull(); })) return false;
      } catch (const std::bad_alloc&) {
        // Closed here: abort() would leave it to the worker.
      }
      close();
      return false;
    case Outgoing::Progress::kBroken:
      close();
      return false;
  }
  return false;
}

int64_t Connection::answer_rate() const {
  return outgoing_.held_bytes() / std::max<int64_t>(reactor_.context().options.longest_held.count(), 1);
}

void Connection::note_written() {
  const auto now = std::chrono::steady_clock::now();
  if (guarded_bytes_ == 0) guard_.start(now, answer_rate());
  guard_.progress(now, outgoing_.written() - guarded_bytes_);
  guarded_bytes_ = std::max<int64_t>(outgoing_.written(), 1);
}

void Connection::wait_writable() {
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_write,
                     guarded([](Connection& self, const boost::system::error_code& error) {
                       if (self.state_ != State::kWriting) return;
                       if (error) {
                         self.close();
                       } else if (self.write_more()) {
                         self.advance();
                       }
                     }));
}

bool Connection::finish_answer() {
  const bool keep = exchange_->keep_alive();
  const bool whole = !exchange_->pipeline() || exchange_->pipeline()->done();
  const auto now = std::chrono::steady_clock::now();
  exchange_->sent(outgoing_.written(), now);
  reactor_.busy_poll().on_answered(now);
  if (keep && !whole) left_body_ = std::move(exchange_->pipeline());
  const bool understood = !exchange_->head().target.empty();
  exchange_.reset();
  outgoing_.clear();
  skipped_ = 0;
  if (!keep) {
    // Closing with unread bytes would reset the connection and may lose the response.
    if (whole && understood && input_.empty() && !is_input_waiting()) {
      close();
      return false;
    }
    linger();
    return true;
  }
  guard_.start(now);
  set_state(whole ? State::kIdle : State::kSkipBody);
  deadline_ = now + reactor_.context().options.idle_deadline;
  return true;
}

void Connection::linger() {
  transport_->notify_end();
  ::shutdown(fd(), SHUT_WR);
  set_state(State::kLinger);
  deadline_ = std::chrono::steady_clock::now() + kLinger;
}

}  // namespace meshd::api
