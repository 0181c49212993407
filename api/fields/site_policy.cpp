#include "api/fields/site_policy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "api/http/characters.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

constexpr std::array<std::string_view, 5> kProbes = {"/livez", "/readyz", "/startupz", "/health", "/metrics"};
constexpr size_t kQuotedBytes = 200;

/// What a browser sends about the page behind a request.
struct Sender {
  std::optional<std::string_view> origin;
  bool several_origins = false;
  std::string_view other_site;  ///< Sec-Fetch-Site, when it is same-site or cross-site
  bool same_origin = false;     ///< by Sec-Fetch-Site
  bool navigates = false;       ///< Sec-Fetch-Mode
  bool is_whole_window = true;  ///< Sec-Fetch-Dest: no frame, no embedded object
};

Sender sender_of(const Headers& headers) {
  Sender out;
  for (const auto& [name, value] : headers.fields()) {
    if (equal_ignoring_case(name, "Origin")) {
      out.several_origins = out.origin.has_value();
      out.origin = value;
    } else if (equal_ignoring_case(name, "Sec-Fetch-Site")) {
      if (value == "cross-site" || value == "same-site") out.other_site = value;
      out.same_origin = value == "same-origin";
    } else if (equal_ignoring_case(name, "Sec-Fetch-Mode")) {
      out.navigates = value == "navigate";
    } else if (equal_ignoring_case(name, "Sec-Fetch-Dest")) {
      out.is_whole_window = value == "document";
    }
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text.substr(0, kQuotedBytes)) + (text.size() > kQuotedBytes ? "...'" : "'");
}

std::string shown(const Authority& authority) {
  std::string out = authority.kind == Authority::Kind::kIpv6 ? "[" + authority.host + "]" : authority.host;
  if (authority.port) out += fmt::format(":{}", *authority.port);
  return out;
}

core::Error cross_site(const std::string& what) {
  return {"cross_site", what +
                            "; this server takes requests from its own pages and from origins that its operator "
                            "named with --cors-origin"};
}

}  // namespace

SitePolicy::SitePolicy(std::string_view address, const SiteOptions& options) : https_(options.https) {
  if (auto parsed = parse_address(address)) address_ = std::move(*parsed);
  for (const std::string& text : options.allowed_hosts) {
    auto host = parse_authority(text);
    if (!host || text.find('*') != std::string::npos) {
      throw core::Error("internal",
                        "--allowed-host: expected a name or an address such as meshd.example.org or "
                        "[2001:db8::1]:8080, got " +
                            in_quotes(text));
    }
    hosts_.push_back(std::move(*host));
  }
  for (const std::string& text : options.cors_origins) {
    auto origin = parse_origin(text);
    if (!origin || text.find('*') != std::string::npos) {
      throw core::Error("internal",
                        "--cors-origin: expected an origin such as https://app.example.org or "
                        "http://localhost:3000, without a path and without '*', got " +
                            in_quotes(text));
    }
    origins_.push_back(std::move(*origin));
  }
}

bool SitePolicy::is_named(std::string_view origin) const {
  if (origins_.empty()) return false;
  const auto parsed = parse_origin(origin);
  return parsed && std::find(origins_.begin(), origins_.end(), *parsed) != origins_.end();
}

bool SitePolicy::is_own(std::string_view origin, const Head& head, bool same_by_browser) const {
  const auto parsed = parse_origin(origin);
  const auto host = parse_authority(head.authority);
  if (!parsed || !host) return false;
  // Behind a proxy that ends TLS the page is https and the server sees http: then the browser's word counts.
  if (parsed->scheme != (https_ ? "https" : "http") && !same_by_browser) return false;
  return *parsed == Origin{parsed->scheme, *host};
}

void SitePolicy::check_host(const Head& head) const {
  // HTTP/1.0 without Host: no browser sends it.
  if (head.authority.empty()) return;
  const auto host = parse_authority(head.authority);
  if (host) {
    if (host->is_loopback() || (host->is_address() && host->host == address_.host)) return;
    // An address cannot be rebound; which of them are routed here (published ports, NAT) depends on the network.
    if (host->is_address() && address_.is_unspecified()) return;
    for (const Authority& allowed : hosts_) {
      if (allowed.host == host->host && (!allowed.port || allowed.port == host->port)) return;
    }
  }
  std::string names = address_.is_unspecified() ? "its addresses" : shown(address_);
  for (const Authority& allowed : hosts_) names += ", " + shown(allowed);
  throw core::Error(
      "host_not_allowed",
      fmt::format("Host is {}; this server goes by {} and localhost; its operator may add names with --allowed-host",
                  in_quotes(head.authority), names));
}

std::string SitePolicy::admit(const Head& head) const {
  const Sender sender = sender_of(head.headers);
  const bool named = sender.origin && !sender.several_origins && is_named(*sender.origin);
  std::string origin(named ? *sender.origin : std::string_view());
  if (head.method == "OPTIONS" || std::find(kProbes.begin(), kProbes.end(), head.path) != kProbes.end()) return origin;
  check_host(head);
  if (named) return origin;
  if (sender.origin) {
    if (sender.several_origins) throw cross_site("Origin is given more than once");
    if (!is_own(*sender.origin, head, sender.same_origin))
      throw cross_site("Origin is " + in_quotes(*sender.origin) + ", which is another site");
  }
  if (sender.other_site.empty()) return origin;
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (!reads || !sender.navigates || !sender.is_whole_window)
    throw cross_site("Sec-Fetch-Site is " + in_quotes(sender.other_site) +
                     ": a page of another site sent this request");
  return origin;
}

}  // namespace meshd::api
