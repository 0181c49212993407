// Protection against DNS rebinding and cross-site requests by browsers. Any page that a user opens can make their
// browser send requests to a server on their machine or in their network; three rules keep such pages out (the fourth
// is the media type of JSON routes, see media_type.h):
//   1. Host is a name of the server. A page whose own name was made to resolve to this server (DNS rebinding) is
//      same-site for its browser; its Host differs.
//   2. Origin, which browsers add to all that scripts and forms send, is the server's own or a named one.
//   3. Sec-Fetch-Site, which they add to all requests to loopback and https, is no other site; following a link to the
//      server (a top-level navigation by GET) is allowed.
// Probes and OPTIONS are exempt: they change nothing, and balancers send any Host. Other clients send neither Origin
// nor Sec-Fetch-Site.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/fields/authority.h"
#include "api/http/head.h"

namespace meshd::api {

/// What the operator allows beside the server's own names and pages.
struct SiteOptions {
  std::vector<std::string> allowed_hosts;  ///< names or addresses, with a port or (any port) without
  std::vector<std::string> cors_origins;   ///< origins such as https://app.example.org: their pages may use the server
  bool https = false;                      ///< the server's own pages are https
};

/// Immutable; any thread.
class SitePolicy {
 public:
  /// `address` is the one listened on. Throws core::Error internal, fit for a terminal, for options that are no hosts
  /// or origins.
  SitePolicy(std::string_view address, const SiteOptions& options);

  /// Throws core::Error host_not_allowed or cross_site. Returns the named origin that the request comes from, as sent;
  /// empty when it comes from none.
  [[nodiscard]] std::string admit(const Head& head) const;
  /// Origins were allowed: responses depend on Origin.
  [[nodiscard]] bool names_origins() const { return !origins_.empty(); }

 private:
  void check_host(const Head& head) const;
  [[nodiscard]] bool is_named(std::string_view origin) const;
  [[nodiscard]] bool is_own(std::string_view origin, const Head& head, bool same_by_browser) const;

  Authority address_;
  bool https_ = false;
  std::vector<Authority> hosts_;
  std::vector<Origin> origins_;
};

}  // namespace meshd::api
