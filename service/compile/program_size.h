// Estimates of the memory that programs and plans take, for caches that are bounded by bytes. Pure.
#pragma once

#include <cstdint>

namespace meshd::compile {

struct ParsedProgram;
struct LoweredProgram;
struct Plan;

/// Text, modules and constants of a program. Constants that its modules share count once; what it shares with other
/// programs counts for each of them.
int64_t size_bytes(const ParsedProgram& parsed);
/// Key, shardings and plan: without the program that it was made from. A collective counts as if it were not made yet.
int64_t size_bytes(const LoweredProgram& lowered);
/// All results of a plan, each whole. Throws invalid_array where an int64 would overflow.
int64_t result_bytes(const Plan& plan);

}  // namespace meshd::compile
