// The reference of ops, derived from their rows: the list that the API serves and the page made of it. Element types
// are those with which a row's own example is accepted and can be run, the sharding rule is that of the example.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::program {

struct OpFacts {
  const ops::OpDef* def = nullptr;
  bool runs = false;     ///< false: read, checked and explained, but refused when run
  std::string_view how;  ///< pointwise, kernel, collective, structural, composed, refused
  /// operands, regions and attributes that the verifier requires, then its labelled checks ("C3: dim ... must have 0 <=
  /// start <= limit")
  std::vector<std::string> constraints;
  /// of the first operand that is no condition (of the result where there is none); our names
  std::vector<std::string_view> dtypes;
  std::string sharding_rule;  ///< of the example, as Shardy writes it; empty: nothing passes through
};

/// All ops in table order. Parses every example many times: some hundred milliseconds. Any thread.
std::vector<OpFacts> all_op_facts();

}  // namespace meshd::program
