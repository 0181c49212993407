#include "api/app/environment.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace meshd::api {
namespace {

constexpr std::string_view kPrefix = "MESHD_";
/// Read by ./dev, the tests and kernels/cpu.h: for tests and benchmarks, which start servers in their own environment.
constexpr std::array<std::string_view, 4> kDevelopment = {"MESHD_ADDRESS", "MESHD_LONG", "MESHD_MAX_ISA", "MESHD_ONCE"};

/// Levenshtein's distance, a row of its table at a time.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

/// MESHD_SERVICE_HOST, MESHD_SERVICE_PORT_HTTP, MESHD_PORT=tcp://10.0.0.1:80, MESHD_PORT_80_TCP_ADDR, and the same for
/// services meshd-something.
bool is_service_link(std::string_view name, std::string_view value) {
  if (name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != std::string_view::npos) return true;
  for (const std::string_view protocol : {"tcp://", "udp://", "sctp://"}) {
    if (name.find("_PORT") != std::string_view::npos && value.starts_with(protocol)) return true;
  }
  for (const std::string_view protocol : {"_TCP_", "_UDP_", "_SCTP_"}) {
    const size_t at = name.find(protocol);
    if (at == std::string_view::npos || name.find("_PORT_") >= at) continue;
    const std::string_view part = name.substr(at + protocol.size());
    if (part == "PROTO" || part == "PORT" || part == "ADDR") return true;
  }
  return false;
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string> known) {
  std::string_view nearest;
  size_t least = name.size() / 3 + 1;
  for (const std::string& candidate : known) {
    const size_t edits = distance(name, candidate);
    if (edits >= least) continue;
    least = edits;
    nearest = candidate;
  }
  return nearest;
}

std::vector<std::string> unknown_variables(std::span<const std::string_view> environment,
                                           std::span<const std::string> known) {
  std::vector<std::string> out;
  for (const std::string_view entry : environment) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    if (!name.starts_with(kPrefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (std::find(kDevelopment.begin(), kDevelopment.end(), name) != kDevelopment.end()) continue;
    if (is_service_link(name, entry.substr(std::min(equals + 1, entry.size())))) continue;
    const std::string_view nearest = nearest_name(name, known);
    std::string line = "the environment has " + std::string(name) + ", which no option reads";
    out.push_back(nearest.empty() ? line + "; meshd serve --help lists those that are read"
                                  : line + "; is " + std::string(nearest) + " meant?");
  }
  return out;
}

}  // namespace meshd::api
