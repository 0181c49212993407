// A program run op by op on one device, whole and unfused: slow, short, and what the engine must agree with.
#pragma once

#include <cstddef>
#include <vector>

#include "service/ir/program.h"

namespace meshd::test {

/// A value: a tensor with its bytes, a token (nothing), or a tuple of values.
struct Value {
  ir::Type type;
  std::vector<std::byte> bytes;
  std::vector<Value> elements;
};

/// Results of @main for its arguments in order, tokens included (give a default Value for them). Throws core::Error
/// unsupported_op for what not_interpreted.h lists and for ops that nothing runs, and whatever the kernels throw.
std::vector<Value> interpret(const ir::Module& module, std::vector<Value> arguments);

}  // namespace meshd::test
