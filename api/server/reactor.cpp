#include "api/server/reactor.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "api/http/problem.h"
#include "api/server/post.h"
#include "api/server/tls_context.h"
#include "service/core/error.h"
#include "service/core/waits/spin.h"

namespace meshd::api {

namespace {

namespace asio = boost::asio;

constexpr int kAcceptsATurn = 64;
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kSweepMost{250};
constexpr std::chrono::milliseconds kSweepLeast{5};
constexpr std::chrono::milliseconds kWatchEvery{50};
constexpr std::chrono::milliseconds kNoMemoryPause{1};

core::Error cannot_listen(const ServerOptions& options, const std::string& why) {
  return core::Error("internal", fmt::format("cannot listen on {}:{}: {}", options.address, options.port, why));
}

/// A complete response for a connection that is refused.
std::string whole_answer(const HttplibBridge& bridge, const core::Error& error) {
  const Response response = problem(error, std::string_view());
  const std::string& body = std::get<std::string>(response.body);
  std::string out(bridge.status_line(response.status));
  for (const auto& [name, value] : response.headers.fields())
    out.append(name).append(": ").append(value).append("\r\n");
  return fmt::format("{}Content-Length: {}\r\nConnection: close\r\n\r\n{}", out, body.size(), body);
}

}  // namespace

Reactor::Reactor(FrontContext& context)
    : context_(context),
      io_(std::make_shared<asio::io_context>(1)),
      acceptor_(*io_),
      sweep_timer_(*io_),
      accept_timer_(*io_),
      drain_timer_(*io_),
      watch_timer_(*io_),
      workers_(std::make_shared<WorkerPool>(context.options.workers, context.options.workers_max,
                                            context.options.worker_queue)),
      // One thread stays: a fiber that waits for its body goes on whether the system has another thread then or not.
      uploads_(std::make_shared<WorkerPool>(1, context.options.upload_workers_max, context.options.worker_queue)),
      handshakes_(0, context.options.handshake_workers_max, context.options.connections),
      fibers_(timers_),
      busy_answer_(
          whole_answer(context.bridge, core::Error("overloaded", "there are no connections left").with_retry_after(1))),
      address_answer_(whole_answer(
          context.bridge,
          core::Error("too_many_requests", "too many connections from one address").with_retry_after(1))) {}

Reactor::~Reactor() {
  stop();
  if (spare_fd_ >= 0) ::close(spare_fd_);
}

void Reactor::start() {
  listen();
  spare_fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  accepting_.store(true);
  accept_next();
  thread_ = std::thread([this] { run(); });
}

void Reactor::run() {
  while (!io_->stopped()) {
    try {
      sweep_later();
      watch_clients();
      while (io_->run_one() != 0) poll_while_expected();
    } catch (...) {
      // A handler that threw (out of memory, as a rule) is skipped; the others continue. What it was to wait for next
      // is waited for again.
      std::this_thread::sleep_for(kNoMemoryPause);
    }
  }
}

// Mostly pauses: the client may run on the other hardware thread of this core, which each poll slows down.
void Reactor::poll_while_expected() {
  constexpr int kPauses = 32;
  while (context_.metrics.in_flight.load(std::memory_order_relaxed) == 0 &&
         busy_poll_.is_expected(std::chrono::steady_clock::now())) {
    if (io_->poll() > 0) continue;
    for (int i = 0; i < kPauses; ++i) core::spin_pause();
  }
}

void Reactor::listen() {
  const ServerOptions& options = context_.options;
  boost::system::error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) throw cannot_listen(options, "the address is no IP address");
  const asio::ip::tcp::endpoint endpoint(address, options.port);
  acceptor_.open(endpoint.protocol(), error);
  // SO_REUSEADDR alone: with SO_REUSEPORT a second server would take half of the connections without a word.
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(options.backlog, error);
  if (!error) acceptor_.native_non_blocking(true, error);
  if (error) throw cannot_listen(options, error.message());
  port_ = acceptor_.local_endpoint().port();
}

void Reactor::accept_next() {
  if (accept_waiting_ || accept_paused_ || !acceptor_.is_open()) return;
  try {
    acceptor_.async_wait(asio::socket_base::wait_read, [this](const boost::system::error_code& error) {
      accept_waiting_ = false;
      if (!error) accept_all();
      accept_next();
    });
    accept_waiting_ = true;
  } catch (const std::bad_alloc&) {
    // The next sweep tries again.
  }
}

void Reactor::accept_all() {
  for (int i = 0; i < kAcceptsATurn; ++i) {
    if (!accept_one()) return;
  }
}

bool Reactor::accept_one() {
  if (static_cast<int>(connections_.size()) >= context_.options.connections) {
    accept_paused_ = true;  // until one of them ends
    return false;
  }
  asio::ip::tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  const int fd = ::accept4(acceptor_.native_handle(), endpoint.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    if (error == EINTR || error == ECONNABORTED) return true;
    if (error != EAGAIN && error != EWOULDBLOCK) accept_failed(error);
    return false;
  }
  endpoint.resize(size);
  try {
    admit(fd, endpoint);
  } catch (const std::bad_alloc&) {
    context_.metrics.refused.fetch_add(1);  // the client's connection was ended
  }
  return true;
}

void Reactor::accept_failed(int error) {
  context_.metrics.accept_errors.fetch_add(1);
  if ((error == EMFILE || error == ENFILE) && spare_fd_ >= 0) {
    // No descriptor left: the spare one is used to accept one client and refuse it, instead of leaving it waiting.
    ::close(spare_fd_);
    const int fd = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) turn_away(fd, busy_answer_);
    spare_fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  // What waits in the backlog would wake us at once again: a short rest keeps the processor free.
  pause_accepting(kAcceptPause);
}

void Reactor::pause_accepting(std::chrono::milliseconds pause) {
  accept_paused_ = true;
  accept_timer_.expires_after(pause);
  accept_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    accept_paused_ = false;
    accept_next();
  });
}

void Reactor::turn_away(int fd, const std::string& answer) {
  // Best effort: the response fits the socket's buffer. A TLS handshake to refuse would cost more than the response.
  if (!context_.options.tls) {
    [[maybe_unused]] const ssize_t count = ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ::shutdown(fd, SHUT_WR);
  ::close(fd);
}

void Reactor::admit(int fd, const asio::ip::tcp::endpoint& endpoint) {
  context_.metrics.accepted.fetch_add(1, std::memory_order_relaxed);
  struct Pending {
    int fd;
    ~Pending() {
      if (fd >= 0) ::close(fd);
    }
  } pending{fd};
  std::string peer_address = endpoint.address().to_string();
  const int most = context_.options.connections_per_address;
  const auto known = per_address_.find(peer_address);
  if (known != per_address_.end() && known->second >= most && !endpoint.address().is_loopback()) {
    context_.metrics.refused.fetch_add(1);
    turn_away(std::exchange(pending.fd, -1), address_answer_);
    return;
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  boost::system::error_code error;
  asio::ip::tcp::socket socket(*io_);
  socket.assign(endpoint.protocol(), fd, error);
  if (error) return;
  pending.fd = -1;  // the socket's
  socket.non_blocking(true, error);
  const TlsContext* tls = context_.options.tls.get();
  auto transport = tls != nullptr ? tls->accept(fd) : std::make_unique<PlainStream>(fd);
  auto connection =
      std::make_shared<Connection>(*this, std::move(socket), std::move(transport), std::move(peer_address));
  connections_.insert(connection);
  try {
    ++per_address_[connection->peer_address()];
  } catch (...) {
    connections_.erase(connection);
    throw;
  }
  if (connections_.size() == 1) {
    std::lock_guard held(quiet_mutex_);
    is_quiet_ = false;
  }
  connection->start();
}

void Reactor::forget(const std::shared_ptr<Connection>& connection) {
  const auto count = per_address_.find(connection->peer_address());
  if (count != per_address_.end() && --count->second <= 0) per_address_.erase(count);
  connections_.erase(connection);
  if (connections_.empty()) {
    {
      std::lock_guard held(quiet_mutex_);
      is_quiet_ = true;
    }
    quiet_.notify_all();
  }
  if (accept_paused_ && accept_timer_.expiry() <= std::chrono::steady_clock::now()) {
    accept_paused_ = false;
    accept_next();
  }
}

void Reactor::sweep_later() {
  if (sweep_waiting_) return;
  const ServerOptions& options = context_.options;
  const auto shortest = std::min({options.head_deadline, options.idle_deadline, options.rate_grace, options.heartbeat});
  sweep_timer_.expires_after(std::clamp(shortest / 8, kSweepLeast, kSweepMost));
  sweep_timer_.async_wait([this](const boost::system::error_code& error) {
    sweep_waiting_ = false;
    if (error) return;
    sweep();
    sweep_later();
  });
  sweep_waiting_ = true;
}

void Reactor::sweep() {
  const auto now = std::chrono::steady_clock::now();
  // A copy: what a connection does here may destroy others or itself.
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->sweep(now);
  accept_next();
}

bool Reactor::has_time_for(const Connection& connection) {
  constexpr std::chrono::microseconds kMoment{200};  // some brief requests
  const auto now = std::chrono::steady_clock::now();
  const bool is_alone = last_brief_ == &connection || now - last_brief_time_ > kMoment;
  last_brief_ = &connection;
  last_brief_time_ = now;
  return is_alone;
}

void Reactor::watch_clients() {
  if (watch_waiting_) return;
  try {
    watch_timer_.expires_after(kWatchEvery);
    watch_timer_.async_wait([this](const boost::system::error_code& error) {
      watch_waiting_ = false;
      if (!error) look_at_clients();
    });
    watch_waiting_ = true;
  } catch (const std::bad_alloc&) {
    // The next handler that begins tries again.
  }
}

// One call for all of them: readiness alone would not do, since a client may have sent its next request and then left.
void Reactor::look_at_clients() {
  std::vector<pollfd> sockets;
  std::vector<Connection*> working;
  for (const auto& connection : connections_) {
    const int fd = connection->working_socket();
    if (fd < 0) continue;
    sockets.push_back({fd, POLLRDHUP, 0});
    working.push_back(connection.get());
  }
  if (sockets.empty()) return;
  if (::poll(sockets.data(), sockets.size(), 0) > 0) {
    for (size_t i = 0; i < sockets.size(); ++i) {
      if ((sockets[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) working[i]->client_left();
    }
  }
  watch_clients();
}

void Reactor::begin_drain() {
  if (context_.draining.exchange(true)) return;
  post_surely(*io_, [this] {
    for (const auto& connection : connections_) connection->wake_handler();
    drain_timer_.expires_after(context_.options.accept_after_drain);
    drain_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) close_listener();
    });
  });
}

void Reactor::close_listener() {
  if (!acceptor_.is_open()) return;
  accept_all();  // clients that have connected already are still served
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->drain();
  {
    std::lock_guard held(quiet_mutex_);
    accepting_.store(false);
  }
  quiet_.notify_all();
}

bool Reactor::wait_until_quiet(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock held(quiet_mutex_);
  return quiet_.wait_until(held, deadline, [this] { return is_quiet_ && !accepting_.load(); });
}

int64_t Reactor::stop() {
  if (!thread_.joinable()) return 0;
  context_.draining.store(true);
  const int64_t broken_off = context_.metrics.in_flight.load();
  post_surely(*io_, [this] {
    close_listener();
    const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
    for (const auto& connection : all) connection->abort();
  });
  // Handlers end first: their waits are over, and resuming them needs the pools.
  fibers_.wait_until_idle();
  workers_->stop();
  uploads_->stop();
  handshakes_.stop();
  post_surely(*io_, [this] { io_->stop(); });
  thread_.join();
  // What is queued is not run any more; connections go with their sockets.
  const auto connections = std::exchange(connections_, {});
  return broken_off;
}

}  // namespace meshd::api
