// Spinning of a thread that expects to go on soon.
#pragma once

#include <chrono>

namespace meshd::core {

/// What it costs a thread to sleep and to be woken, on a virtual machine: spinning for longer is a loss.
inline constexpr std::chrono::microseconds kWakeUpTime{50};

/// Some ten cycles in which the core's other hardware thread has its execution units.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// Spins until `goes_on()` is true, for kWakeUpTime at most; whether it is. Any thread.
template <typename F>
bool spin_until(const F& goes_on) {
  constexpr int kPausesPerLook = 16;  // at the clock
  const auto end = std::chrono::steady_clock::now() + kWakeUpTime;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (goes_on()) return true;
      spin_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace meshd::core
