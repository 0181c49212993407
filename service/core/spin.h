// A pause of a thread that spins, for as long as it would cost to sleep and to be woken.
#pragma once

namespace meshd::core {

/// Some ten cycles in which the core's other hardware thread has its execution units.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace meshd::core
