// Quotas of a principal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace meshd::quotas {

/// 0: any number.
struct Limits {
  int64_t array_bytes = 0;
  int64_t arrays = 10'000;
  int64_t sessions = 1'000;
  int64_t programs = 10'000;
  int64_t meshes = 10'000;
  int64_t waiting_jobs = 256;  ///< accepted in the background and not started
  int64_t requests_per_second = 0;
};

/// How messages and documents call a principal: clients without a token are "anonymous".
std::string display_name(std::string_view principal);

/// Throws limit_reached when the principal has `count` of `limit` already. `what` in the plural: "sessions".
void require_below(int64_t count, int64_t limit, std::string_view principal, std::string_view what);

}  // namespace meshd::quotas
