// The part of a connection that opens its stream: a TLS handshake, whose computations are done by threads of their own.
#include <new>

#include "api/server/connection.h"
#include "api/server/post.h"
#include "api/server/reactor.h"

namespace meshd::api {

void Connection::wait_to_open(boost::asio::ip::tcp::socket::wait_type ready) {
  socket_.async_wait(ready, guarded([](Connection& self, const boost::system::error_code& error) {
                       if (self.state_ != State::kHandshake) return;
                       if (error) {
                         self.close();
                       } else {
                         self.open();
                       }
                     }));
}

void Connection::open() {
  set_state(State::kWorking);
  bool taken = false;
  try {
    taken = reactor_.handshakes().post([self = shared_from_this()] {
      const ByteStream::Outcome outcome =
          self->aborted_.load() ? ByteStream::Outcome::kBroken : self->transport_->open().outcome;
      post_surely(*self->reactor_.io(),
                  self->guarded([outcome](Connection& connection) { connection.opened(outcome); }));
    });
  } catch (const std::bad_alloc&) {
    // Closed here: abort() would leave it to the thread for handshakes.
  }
  if (!taken) close();
}

void Connection::opened(ByteStream::Outcome outcome) {
  if (aborted_.load() || !reactor_.listening()) {
    close();
    return;
  }
  set_state(State::kHandshake);  // the deadline is that of start()
  switch (outcome) {
    case ByteStream::Outcome::kBytes:
      reactor_.context().metrics.handshakes_done.fetch_add(1);
      begin_idle();
      return;
    case ByteStream::Outcome::kWouldBlockRead:
      wait_to_open(boost::asio::ip::tcp::socket::wait_read);
      return;
    case ByteStream::Outcome::kWouldBlockWrite:
      wait_to_open(boost::asio::ip::tcp::socket::wait_write);
      return;
    case ByteStream::Outcome::kEnd:
    case ByteStream::Outcome::kBroken:
      reactor_.context().metrics.handshakes_failed.fetch_add(1);
      close();
  }
}

}  // namespace meshd::api
