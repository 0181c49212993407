// Rate limiter of requests: a token bucket for each principal with the burst of one second.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "service/core/clock.h"
#include "service/core/locked.h"

namespace meshd::quotas {

/// Token bucket (RFC 2697's committed part): `rate` tokens come in a second, `rate` fit in. Full at first. A value.
class TokenBucket {
 public:
  TokenBucket(int64_t rate, core::SteadyTime now)
      : rate_(static_cast<double>(rate)), tokens_(static_cast<double>(rate)), at_(now) {}
  /// Takes one; false when there is none.
  bool take(core::SteadyTime now);
  /// Whole tokens that are there.
  [[nodiscard]] int64_t left(core::SteadyTime now) const;
  [[nodiscard]] bool is_full(core::SteadyTime now) const { return tokens_at(now) >= rate_; }

 private:
  [[nodiscard]] double tokens_at(core::SteadyTime now) const;
  double rate_;
  double tokens_;
  core::SteadyTime at_;
};

/// Any thread. Keeps buckets only of principals with requests within about the last second.
class RateLimiter {
 public:
  /// `rate` requests a second for each principal; 0: any number.
  RateLimiter(int64_t rate, const core::Clock& clock) : rate_(rate), clock_(clock) {}

  /// One request of the principal. Throws too_many_requests, with how long to wait.
  void take(const std::string& principal);
  [[nodiscard]] int64_t rate() const { return rate_; }
  /// Requests that the principal may make at once now.
  [[nodiscard]] int64_t left(std::string_view principal) const;

 private:
  struct Buckets {
    std::map<std::string, TokenBucket, std::less<>> by_principal;
    size_t sweep_at = 1024;  ///< with so many, those that are full are forgotten
  };
  const int64_t rate_;
  const core::Clock& clock_;
  core::Locked<Buckets> buckets_;
};

}  // namespace meshd::quotas
