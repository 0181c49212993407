// Counts calls into the system and makes the n-th of them fail, once or from then on. One plan serves the file system
// of blobs and SQLite's, so that a test can walk through every call of a scenario.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "service/core/locked.h"
#include "tests/support/system_watcher.h"

namespace meshd::testing {

enum class FaultReach { kOnce, kSticky };

/// Any thread.
class FaultPlan final : public SystemWatcher {
 public:
  /// From now on the `nth` call (1 is the next) fails; `only` limits the count to one operation ("sync", "write", ...).
  void arm(int64_t nth, FaultReach reach, FaultKind kind, std::string only = {}) {
    state_.with([&](State& state) {
      state.left = nth;
      state.reach = reach;
      state.kind = kind;
      state.only = std::move(only);
      state.armed = true;
      state.fired = false;
    });
  }
  /// The fault ends.
  void disarm() {
    state_.with([](State& state) { state.armed = false; });
  }
  /// True when the armed fault has hit a call.
  [[nodiscard]] bool fired() const {
    return state_.with([](const State& state) { return state.fired; });
  }
  [[nodiscard]] FaultKind kind() const override {
    return state_.with([](const State& state) { return state.kind; });
  }
  /// How often an operation was called so far.
  [[nodiscard]] int64_t calls(const std::string& operation) const {
    return state_.with([&](const State& state) {
      const auto found = state.calls.find(operation);
      return found == state.calls.end() ? 0 : found->second;
    });
  }

  /// Called by the layers: counts and says whether this call has to fail.
  [[nodiscard]] bool fails(const std::string& operation) override {
    return state_.with([&](State& state) {
      ++state.calls[operation];
      if (!state.armed || (!state.only.empty() && state.only != operation)) return false;
      if (state.fired) return state.reach == FaultReach::kSticky;
      if (--state.left > 0) return false;
      state.fired = true;
      return true;
    });
  }

 private:
  struct State {
    bool armed = false;
    bool fired = false;
    int64_t left = 0;
    FaultReach reach = FaultReach::kOnce;
    FaultKind kind = FaultKind::kIo;
    std::string only;
    std::map<std::string, int64_t> calls;
  };
  core::Locked<State> state_;
};

}  // namespace meshd::testing
