// The one thread that owns sockets: accepts, owns the connections, checks their deadlines and disconnected clients, and
// dispatches work that may wait to fibers on workers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/server/busy_poll.h"
#include "api/server/connection.h"
#include "api/server/exchange.h"
#include "api/server/worker_pool.h"
#include "service/core/waits/fiber.h"
#include "service/core/waits/timers.h"

namespace meshd::api {

/// Public members are for connections, on the reactor's thread, unless marked "any thread".
class Reactor {
 public:
  explicit Reactor(FrontContext& context);
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  // The owner's side.
  void start();
  [[nodiscard]] uint16_t port() const { return port_; }
  /// Any thread.
  void begin_drain();
  /// Waits until the listener is closed and no connection is left, at most until `deadline`.
  bool wait_until_quiet(std::chrono::steady_clock::time_point deadline);
  /// Ends everything and joins. Returns how many requests were broken off.
  int64_t stop();
  [[nodiscard]] int worker_threads() const { return workers_->threads() + uploads_->threads(); }
  /// Requests whose handlers have not ended, waiting ones included.
  [[nodiscard]] int64_t handlers() const { return fibers_.live(); }
  [[nodiscard]] int worker_queue() const { return workers_->queued() + uploads_->queued(); }

  // The connections' side.
  [[nodiscard]] FrontContext& context() { return context_; }
  [[nodiscard]] const std::shared_ptr<WorkerPool>& workers() const { return workers_; }
  [[nodiscard]] const std::shared_ptr<WorkerPool>& uploads() const { return uploads_; }
  [[nodiscard]] WorkerPool& handshakes() { return handshakes_; }
  /// Any thread.
  [[nodiscard]] core::Fibers& fibers() { return fibers_; }
  /// A handler has begun: disconnected clients are checked for until no handler is left.
  void watch_clients();
  /// A brief request may run on this thread: no other client sent one a moment ago. Several clients are served by
  /// workers, on all cores.
  bool has_time_for(const Connection& connection);
  [[nodiscard]] BusyPoll& busy_poll() { return busy_poll_; }
  /// Any thread; shared ownership.
  [[nodiscard]] const std::shared_ptr<boost::asio::io_context>& io() const { return io_; }
  void forget(const std::shared_ptr<Connection>& connection);
  [[nodiscard]] bool listening() const { return acceptor_.is_open(); }

 private:
  void listen();
  void run();
  /// Runs what is ready without sleeping, for as long as a request is expected.
  void poll_while_expected();
  void accept_next();
  void accept_all();
  /// One of what waits in the backlog; false when there is none or accepting has to pause.
  bool accept_one();
  void accept_failed(int error);
  void admit(int fd, const boost::asio::ip::tcp::endpoint& endpoint);
  void turn_away(int fd, const std::string& answer);
  void pause_accepting(std::chrono::milliseconds pause);
  void close_listener();
  void sweep_later();
  void sweep();
  /// Tells handlers whose clients have left.
  void look_at_clients();

  FrontContext& context_;
  std::shared_ptr<boost::asio::io_context> io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer sweep_timer_;
  boost::asio::steady_timer accept_timer_;
  boost::asio::steady_timer drain_timer_;
  boost::asio::steady_timer watch_timer_;
  // Shared with waiters: the thread that ends a wait may still be posting when the reactor is destroyed.
  std::shared_ptr<WorkerPool> workers_;
  std::shared_ptr<WorkerPool> uploads_;
  /// Of TLS: threads of their own, so that a flood of handshakes keeps neither the reactor nor requests.
  WorkerPool handshakes_;
  core::Timers timers_;
  core::Fibers fibers_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::unordered_map<std::string, int> per_address_;
  std::string busy_answer_;
  std::string address_answer_;
  int spare_fd_ = -1;  ///< used to refuse clients when there is no descriptor left
  bool accept_waiting_ = false;
  bool accept_paused_ = false;
  bool sweep_waiting_ = false;
  bool watch_waiting_ = false;
  BusyPoll busy_poll_;
  const Connection* last_brief_ = nullptr;  ///< compared only
  std::chrono::steady_clock::time_point last_brief_time_{};
  uint16_t port_ = 0;
  std::thread thread_;
  std::atomic<bool> accepting_{false};  ///< between start() and the end of accepting

  std::mutex quiet_mutex_;
  std::condition_variable quiet_;
  bool is_quiet_ = true;  ///< guarded by quiet_mutex_
};

}  // namespace meshd::api
