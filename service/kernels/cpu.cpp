#include "service/kernels/cpu.h"

#include <unistd.h>

namespace meshd::kernels {
namespace {

CpuLevel detect_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return CpuLevel::kV4;
  if (__builtin_cpu_supports("x86-64-v3")) return CpuLevel::kV3;
#endif
  return CpuLevel::kBase;
}

int64_t detect_l1() {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  const long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  if (bytes >= 8 * 1024) return bytes;
#endif
  return 32 * 1024;
}

}  // namespace

CpuLevel cpu_level() {
  static const CpuLevel level = detect_level();
  return level;
}

int64_t l1_data_bytes() {
  static const int64_t bytes = detect_l1();
  return bytes;
}

}  // namespace meshd::kernels
