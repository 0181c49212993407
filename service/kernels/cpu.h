// CPU feature detection: once, at run time, so that one binary is fast on old and new machines.
#pragma once

#include <cstdint>

namespace meshd::kernels {

/// Instruction levels that loops are compiled for (x86-64 psABI levels; other processors have kBase only).
enum class CpuLevel : uint8_t { kBase, kV3, kV4 };

/// The best level this processor supports, or that the environment variable MESHD_MAX_ISA allows: "base", "avx2" or
/// "avx512" (all but AMX). It masks the instructions of other machines' processors for tests and benchmarks. Any
/// thread.
CpuLevel cpu_level();

/// True when the processor has tiles of AMX for bfloat16 and int8, Linux gives them to this process, and MESHD_MAX_ISA
/// is not set. Any thread.
bool has_amx();
/// True when the processor has AVX512-FP16, which MESHD_MAX_ISA does not mask. Any thread.
bool has_avx512_fp16();

/// Bytes of a cache line, on every processor that meshd is compiled for.
inline constexpr int64_t kLineBytes = 64;

/// Bytes of one core's first level data cache (32 KiB when the system does not report it).
int64_t l1_data_bytes();

}  // namespace meshd::kernels
