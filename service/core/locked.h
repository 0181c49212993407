// A value bound to its mutex, so that it cannot be touched without the lock. Any thread.
#pragma once

#include <mutex>
#include <utility>

namespace meshd::core {

/// Locked<T> owns a T and hands it out only inside a callable or through a guard. Never call out of this process's own
/// code (no callbacks of clients, no I/O unless the README of the folder says so) while a guard is alive.
template <typename T>
class Locked {
 public:
  Locked() = default;
  /// The value is made of `arguments` in its place: it need not move.
  template <typename... Arguments>
  explicit Locked(std::in_place_t, Arguments&&... arguments) : value_{std::forward<Arguments>(arguments)...} {}
  explicit Locked(T value) : value_(std::move(value)) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  /// Access that holds the lock for its lifetime.
  class Guard {
   public:
    explicit Guard(Locked& owner) : lock_(owner.mutex_), value_(&owner.value_) {}
    T* operator->() & { return value_; }
    T& operator*() & { return *value_; }
    T* operator->() && = delete;
    T& operator*() && = delete;

   private:
    std::lock_guard<std::mutex> lock_;
    T* value_;
  };

  [[nodiscard]] Guard lock() { return Guard(*this); }

  /// Runs `f(value)` under the lock and returns what it returns.
  template <typename F>
  decltype(auto) with(F&& f) {
    std::lock_guard<std::mutex> held(mutex_);
    return std::forward<F>(f)(value_);
  }
  template <typename F>
  decltype(auto) with(F&& f) const {
    std::lock_guard<std::mutex> held(mutex_);
    return std::forward<F>(f)(static_cast<const T&>(value_));
  }

 private:
  mutable std::mutex mutex_;
  T value_{};
};

}  // namespace meshd::core
