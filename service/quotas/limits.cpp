#include "service/quotas/limits.h"

#include <fmt/core.h>

#include "service/core/error.h"

namespace meshd::quotas {

std::string display_name(std::string_view principal) {
  return principal.empty() ? "anonymous" : std::string(principal);
}

void require_below(int64_t count, int64_t limit, std::string_view principal, std::string_view what) {
  if (limit == 0 || count < limit) return;
  throw core::Error(
      "limit_reached",
      fmt::format(
          "principal '{}' has {} {}, at most {} are allowed; delete some, or ask the operator for a higher limit",
          display_name(principal), count, what, limit));
}

}  // namespace meshd::quotas
