// The server, built in order and destroyed in reverse: storage, devices, services, routes, front.
#pragma once

#include <chrono>
#include <memory>

#include "api/app/serving/options.h"

namespace meshd::hosts {
class Network;
}

namespace meshd::api {

/// One server. start() and stop() from one thread.
class App {
 public:
  /// Opens the data folder and builds the services. `hosts`: of rank 0 of several processes, null for one; it
  /// outlives the app. Throws core::Error with a line fit for a terminal.
  App(const AppOptions& options, Log& log, hosts::Network* hosts = nullptr);
  ~App();

  /// Listens, and takes up what waited before the start: jobs and models. Until it has returned, health, metrics
  /// and documents are answered, and other requests get 503 `starting`. The bound port.
  uint16_t start();
  /// Reads again what may change while the server runs (SIGHUP): the tokens file, the certificate. Ends nothing; what
  /// cannot be used is logged and leaves what was there before.
  void reload();
  /// See Server::is_responsive. Any thread, between start() and stop().
  [[nodiscard]] bool is_responsive(std::chrono::milliseconds patience) const;
  /// Readiness turns false at once; requests in flight are answered, jobs end or stay queued, then everything stops.
  /// True when nothing was aborted.
  bool stop();

 private:
  void recover();

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace meshd::api
