#include "api/server/server.h"

#include <future>
#include <utility>

#include "api/server/exchange.h"
#include "api/server/post.h"
#include "api/server/reactor.h"
#include "service/core/ids.h"

namespace meshd::api {

namespace {

constexpr int kIdPrefixBytes = 6;

// Of the memory of requests, what one principal's may hold: a quarter is left to the others.
int64_t share_of_requests(const ServerOptions& options) {
  const int64_t whole = core::MemoryReservation(options.memory, core::MemoryAccount::kRequests).limit_bytes();
  return whole - whole / 4;
}

}  // namespace

struct Server::State {
  FrontContext context;
  Reactor reactor;
  bool started = false;

  State(const ServerOptions& options, Router router, ServerHooks hooks)
      : context{options,
                SitePolicy(options.address, options.site),
                std::move(router),
                std::move(hooks),
                {},
                {},
                false,
                "req-" + core::random_hex(kIdPrefixBytes) + "-",
                1,
                std::make_shared<EmptyBody>(),
                core::MemoryShareTable(share_of_requests(options))},
        reactor(context) {}
};

Server::Server(const ServerOptions& options, Router router, ServerHooks hooks)
    : state_(std::make_unique<State>(options, std::move(router), std::move(hooks))) {}

Server::~Server() { stop_now(); }

void Server::start() {
  state_->reactor.start();
  state_->started = true;
}

uint16_t Server::port() const { return state_->reactor.port(); }

const Router& Server::router() const { return state_->context.router; }

void Server::begin_drain() {
  if (state_->started) state_->reactor.begin_drain();
}

bool Server::draining() const { return state_->context.draining.load(); }

bool Server::is_responsive(std::chrono::milliseconds patience) const {
  const auto taken = std::make_shared<std::promise<void>>();
  post_surely(*state_->reactor.io(), [taken] { taken->set_value(); });
  return taken->get_future().wait_for(patience) == std::future_status::ready;
}

bool Server::stop() {
  if (!state_->started) return true;
  begin_drain();
  const ServerOptions& options = state_->context.options;
  state_->reactor.wait_until_quiet(std::chrono::steady_clock::now() + options.accept_after_drain +
                                   options.drain_timeout);
  return state_->reactor.stop() == 0;
}

void Server::stop_now() {
  if (state_->started) state_->reactor.stop();
}

ServerMetrics Server::metrics() const {
  ServerMetrics out;
  state_->context.metrics.fill(out);
  out.worker_threads = state_->reactor.worker_threads();
  out.worker_queue = state_->reactor.worker_queue();
  out.handlers = state_->reactor.handlers();
  return out;
}

}  // namespace meshd::api
