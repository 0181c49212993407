// While loops that run a number of times which their text tells: those of scan and fori_loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "service/program/analysis/value_facts.h"

namespace meshd::program {

/// In iteration k of `trips`, counted from 0, carried value `counter` is start + k * step.
struct CountedLoop {
  size_t counter = 0;
  int64_t start = 0;
  int64_t step = 1;
  int64_t trips = 0;
};

/// Recognises a condition that is one comparison of a carried integer with a known one, where the body adds a known
/// integer to it without wrapping around. Nothing for other loops. The number of trips is exact.
///
/// Example: while (i = 2; i < 9) {i = i + 3} -> start 2, step 3, trips 3
std::optional<CountedLoop> counted_loop(const ir::Function& function, const ir::Op& op, const ValueFacts& facts);

/// How many iterations each of the program's loops makes every time it is entered, by the loop's first result; loops
/// whose text does not tell that are left out.
std::unordered_map<ir::ValueId, int64_t> trip_counts(const ir::Function& function);

}  // namespace meshd::program
