#include "service/quotas/rate_limiter.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/quotas/limits.h"

namespace meshd::quotas {

namespace {

constexpr size_t kFewestSwept = 1024;

}  // namespace

double TokenBucket::tokens_at(core::SteadyTime now) const {
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - at_).count());
  return std::min(rate_, tokens_ + seconds * rate_);
}

bool TokenBucket::take(core::SteadyTime now) {
  tokens_ = tokens_at(now);
  at_ = std::max(at_, now);
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

int64_t TokenBucket::left(core::SteadyTime now) const { return static_cast<int64_t>(tokens_at(now)); }

void RateLimiter::take(const std::string& principal) {
  if (rate_ == 0) return;
  const core::SteadyTime now = clock_.steady();
  const bool taken = buckets_.with([&](Buckets& buckets) {
    auto& map = buckets.by_principal;
    if (map.size() >= buckets.sweep_at) {
      std::erase_if(map, [&](const auto& entry) { return entry.second.is_full(now); });
      buckets.sweep_at = std::max(kFewestSwept, 2 * map.size());
    }
    return map.try_emplace(principal, rate_, now).first->second.take(now);
  });
  if (taken) return;
  throw core::Error("too_many_requests",
                    fmt::format("principal '{}' may make {} requests a second", display_name(principal), rate_))
      .with_retry_after(1);
}

int64_t RateLimiter::left(std::string_view principal) const {
  const core::SteadyTime now = clock_.steady();
  return buckets_.with([&](const Buckets& buckets) {
    const auto found = buckets.by_principal.find(principal);
    return found == buckets.by_principal.end() ? rate_ : found->second.left(now);
  });
}

}  // namespace meshd::quotas
