// How large, how deep and how long a NumPy program may be, so that no text exhausts stack, memory or time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::numpy {

inline constexpr size_t kMaxTextBytes = size_t{256} << 10;
/// Of expressions and statements within each other, chains of operators included.
inline constexpr int kMaxSyntaxDepth = 100;
/// Of calls of functions within calls, while a program is traced.
inline constexpr int kMaxCallDepth = 32;
/// Of expressions and statements that are being traced at a time, over all calls.
inline constexpr int kMaxTraceDepth = 1200;
/// Of branches and loops on arrays within each other.
inline constexpr int kMaxRegionDepth = 100;
/// Steps of the tracer: expressions and statements, each time that they are traced.
inline constexpr int64_t kMaxTraceSteps = 2'000'000;
/// Ops that a traced program may have.
inline constexpr size_t kMaxOps = 200'000;
/// A loop over range(n) with static n has its body repeated up to so many times; a longer one becomes a while.
inline constexpr int64_t kMostUnrolledSteps = 64;
/// Elements that a static list or tuple may have.
inline constexpr size_t kMaxStaticElements = 100'000;
inline constexpr size_t kMaxStringBytes = 64 << 10;
inline constexpr size_t kMaxKeyBytes = 256;
/// Bytes of all constants of a program.
inline constexpr int64_t kMaxConstantBytes = int64_t{16} << 20;

}  // namespace meshd::numpy
