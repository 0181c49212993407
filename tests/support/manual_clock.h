// A clock for tests of what ends by itself.
#pragma once

#include <chrono>

#include "service/core/clock.h"

namespace meshd::testing {

/// Time that stands still until a test moves it.
class ManualClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime wall() const override { return core::WallTime(passed_); }
  [[nodiscard]] core::SteadyTime steady() const override { return core::SteadyTime(passed_); }
  void advance(std::chrono::seconds time) { passed_ += time; }

 private:
  std::chrono::microseconds passed_{std::chrono::hours(1)};
};

}  // namespace meshd::testing
