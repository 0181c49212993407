#include "api/app/serving/listening.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "api/fields/authority.h"
#include "api/fields/site_policy.h"
#include "api/server/tls_context.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

// For the responses of jobs that ended with the drain: one may commit up to a second later (JobRunner::drain), and a
// connection that ended before would leave a request that has happened without its answer.
constexpr std::chrono::milliseconds kAnswerDrained{2'000};

void read_listen(const std::string& listen, ServerOptions& out) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos)
    throw core::Error("internal", "--listen: expected ADDRESS:PORT, got '" + listen + "'");
  out.address = listen.substr(0, colon);
  if (out.address.size() > 2 && out.address.front() == '[') out.address = out.address.substr(1, out.address.size() - 2);
  const char* end = listen.data() + listen.size();
  const auto parsed = std::from_chars(listen.data() + colon + 1, end, out.port);
  if (parsed.ec != std::errc{} || parsed.ptr != end)
    throw core::Error("internal", "--listen: the port is no number from 0 to 65535");
}

}  // namespace

ServerOptions server_options(const AppOptions& options) {
  ServerOptions out;
  out.idle_deadline = std::chrono::seconds(options.idle_seconds);
  // Balancers see readiness fall first; that is part of the drain.
  const std::chrono::milliseconds drain = std::chrono::seconds(options.drain_seconds);
  out.accept_after_drain = std::min(out.accept_after_drain, drain / 4);
  out.drain_timeout = drain - out.accept_after_drain + kAnswerDrained;
  read_listen(options.listen, out);
  out.site.allowed_hosts = options.allowed_hosts;
  out.site.cors_origins = options.cors_origins;
  if (!options.tls_certificate.empty() || !options.tls_key.empty()) {
    out.tls = std::make_shared<TlsContext>(options.tls_certificate, options.tls_key);
  }
  out.site.https = out.tls != nullptr;
  (void)SitePolicy(out.address, out.site);  // refuses what is no host or origin before anything is opened
  const auto address = parse_address(out.address);
  if (address && !address->is_loopback() && options.tokens_file.empty() && !options.insecure) {
    throw core::Error("internal", "--listen " + options.listen +
                                      " is open to the network, and without tokens everybody there may read, change "
                                      "and delete everything: give --tokens FILE, or say --insecure if that is meant");
  }
  return out;
}

}  // namespace meshd::api
