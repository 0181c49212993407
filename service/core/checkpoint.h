// A checkpoint inside long work: kernels pass it every 10^5 to 10^6 operations, so that a cancelled run ends there and
// a run whose time slice is over lets others go first. Passing costs two relaxed loads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>

namespace meshd::core {

/// Thrown by a checkpoint in cancelled work.
class Cancelled : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "cancelled"; }
};

/// One thread at a time, for the call that it was made for.
class Checkpoint {
 public:
  /// `attention` and `waiting`: not zero when there is something to attend to.
  Checkpoint(const std::atomic<uint32_t>& attention, const std::atomic<int64_t>& waiting)
      : attention_(attention), waiting_(waiting) {}
  virtual ~Checkpoint() = default;
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// May block for the time slices of others. Throws Cancelled.
  void pass() {
    if (attention_.load(std::memory_order_relaxed) != 0 || waiting_.load(std::memory_order_relaxed) != 0) attend();
  }

 protected:
  friend class UncheckedCall;
  virtual void attend() = 0;
  /// Around work that passes no checkpoint for long: others need not wait for it.
  virtual void leave() = 0;
  virtual void come_back() = 0;
  /// Instead of come_back(), when the work failed. Does not block.
  virtual void abandon() noexcept = 0;

 private:
  const std::atomic<uint32_t>& attention_;
  const std::atomic<int64_t>& waiting_;
};

/// Kernels are also called without one, by tests and by the evaluation of constants.
inline void pass(Checkpoint* checkpoint) {
  if (checkpoint != nullptr) checkpoint->pass();
}

/// Scope of a long library call without checkpoints: meanwhile the devices and the thread's place in the pool are free
/// for others.
class UncheckedCall {
 public:
  /// `checkpoint` null: does nothing.
  explicit UncheckedCall(Checkpoint* checkpoint) : checkpoint_(checkpoint) {
    if (checkpoint_ != nullptr) checkpoint_->leave();
  }
  ~UncheckedCall() {
    if (checkpoint_ != nullptr) checkpoint_->abandon();
  }
  UncheckedCall(const UncheckedCall&) = delete;
  UncheckedCall& operator=(const UncheckedCall&) = delete;
  /// The call is over. May block and throws Cancelled, as a checkpoint does.
  void end() {
    if (checkpoint_ != nullptr) std::exchange(checkpoint_, nullptr)->come_back();
  }

 private:
  Checkpoint* checkpoint_;
};

}  // namespace meshd::core
