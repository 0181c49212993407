#include "api/app/command_line/environment.h"

#include <algorithm>
#include <array>

#include "service/core/near_names.h"

namespace meshd::api {
namespace {

constexpr std::string_view kPrefix = "MESHD_";
/// Read by ./dev, the tests and kernels/cpu.h: for tests and benchmarks, which start servers in their own environment.
constexpr std::array<std::string_view, 4> kDevelopment = {"MESHD_ADDRESS", "MESHD_LONG", "MESHD_MAX_ISA", "MESHD_ONCE"};

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

std::vector<std::string> unknown_variables(std::span<const std::string_view> environment,
                                           std::span<const std::string> known) {
  std::vector<std::string> out;
  for (const std::string_view entry : environment) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    if (!name.starts_with(kPrefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (std::find(kDevelopment.begin(), kDevelopment.end(), name) != kDevelopment.end()) continue;
    if (is_service_link(name, entry.substr(std::min(equals + 1, entry.size())))) continue;
    const std::string_view nearest = core::nearest_name(name, known);
    std::string line = "the environment has " + std::string(name) + ", which no option reads";
    out.push_back(nearest.empty() ? line + "; meshd serve --help lists those that are read"
                                  : line + "; is " + std::string(nearest) + " meant?");
  }
  return out;
}

}  // namespace meshd::api
