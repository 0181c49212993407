// The declared effects of a registered program: the callbacks that a request may bind, and the arguments that it reads.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/ops/linalg/custom_calls.h"

namespace meshd::compile {

struct ProgramCallback {
  ops::EffectInfo info;
  int32_t line = 0;
};

/// One entry for each callback op; those in the regions of an op come before it. Throws invalid_program for a callback
/// without an index.
std::vector<ProgramCallback> find_callbacks(const ParsedProgram& parsed);

/// What a program does to a token-free argument: reads it (an op has it as an operand; the terminator counts), or may
/// overwrite it because the text donates it (behaviour E19).
struct ArgumentEffect {
  size_t argument = 0;
  bool is_write = false;
};

/// By argument; one that is read and donated has an entry for each, the read first.
std::vector<ArgumentEffect> find_argument_effects(const ParsedProgram& parsed);

}  // namespace meshd::compile
