// How a program was made of what its text says: the steps of Compiler that it went through, with what they were given.
// Whoever has text and derivation can make the program again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <variant>
#include <vector>

#include "service/mesh/mesh.h"
#include "service/numpy/numpy.h"
#include "service/tensor/dense_value.h"
#include "service/tensor/shape.h"

namespace meshd::compile {

/// Compiler::trace.
struct TraceStep {
  numpy::Inputs inputs;
  mesh::MeshRef mesh;  ///< axes alone; null: there is none
};
/// Compiler::with_static.
struct StaticStep {
  std::map<size_t, tensor::DenseValue> values;
};
/// Compiler::specialise.
struct SpecialiseStep {
  std::vector<tensor::TensorType> arguments;
};
using DerivationStep = std::variant<TraceStep, StaticStep, SpecialiseStep>;
/// In order; empty: the program as its text has it.
using Derivation = std::vector<DerivationStep>;

/// Bytes of the values of static arguments; the rest is small beside them.
inline int64_t static_bytes(const Derivation& derivation) {
  int64_t total = 0;
  for (const DerivationStep& step : derivation) {
    const auto* constants = std::get_if<StaticStep>(&step);
    if (constants == nullptr) continue;
    for (const auto& [position, value] : constants->values) total += static_cast<int64_t>(value.bytes().size());
  }
  return total;
}

}  // namespace meshd::compile
