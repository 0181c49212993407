#include "service/kernels/cpu.h"

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <cstdlib>
#include <string_view>

namespace meshd::kernels {
namespace {

// What MESHD_MAX_ISA leaves: all, unless it names a lower level.
CpuLevel allowed_level() {
  const char* const name = std::getenv("MESHD_MAX_ISA");
  const std::string_view most = name != nullptr ? name : "";
  if (most == "base") return CpuLevel::kBase;
  return most == "avx2" ? CpuLevel::kV3 : CpuLevel::kV4;
}

CpuLevel detect_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const CpuLevel most = allowed_level();
  if (most >= CpuLevel::kV4 && __builtin_cpu_supports("x86-64-v4")) return CpuLevel::kV4;
  if (most >= CpuLevel::kV3 && __builtin_cpu_supports("x86-64-v3")) return CpuLevel::kV3;
#endif
  return CpuLevel::kBase;
}

// CPUID.7.0:EDX; 0 on processors that have no such leaf.
unsigned extended_features() {
  unsigned edx = 0;
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return 0;
#endif
  return edx;
}

bool detect_amx() {
#if defined(__x86_64__) && defined(__linux__)
  if (cpu_level() != CpuLevel::kV4 || std::getenv("MESHD_MAX_ISA") != nullptr) return false;
  constexpr unsigned kTiles = 1U << 24 | 1U << 22 | 1U << 25;  // tiles, of bf16, of int8
  if ((extended_features() & kTiles) != kTiles) return false;
  // A process has to ask for registers of 8 KiB a thread (Linux, "Using XSTATE features in user space applications").
  constexpr long kAskForState = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
#else
  return false;
#endif
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

bool has_amx() {
  static const bool has = detect_amx();
  return has;
}

bool has_avx512_fp16() {
  constexpr unsigned kFp16 = 1U << 23;
  static const bool has = (extended_features() & kFp16) != 0;
  return has;
}

int64_t l1_data_bytes() {
  static const int64_t bytes = detect_l1();
  return bytes;
}

}  // namespace meshd::kernels
