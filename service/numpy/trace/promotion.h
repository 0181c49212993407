// JAX's promotion of types: a lattice of dtypes and of the weak types of Python's numbers. JAX: jax/_src/dtypes.py,
// with x64 off: a Python int is a weak int32, a float a weak float32, a complex a weak complex64.
#pragma once

#include <optional>
#include <span>

#include "service/tensor/dtype.h"

namespace meshd::numpy {

/// A dtype, and whether it gives way to others.
struct WeakType {
  tensor::DType dtype = tensor::DType::kFloat32;
  bool weak = false;
  friend bool operator==(const WeakType&, const WeakType&) = default;
};

/// The type of what is computed of both; nothing where JAX has none (float8 with other types, for example).
/// Example: int8 and weak float32 -> weak float32's place above int8 gives float32, weak; uint8 and int8 -> int16.
std::optional<WeakType> promoted(WeakType a, WeakType b);

/// Same for several; for none a float32.
std::optional<WeakType> promoted(std::span<const WeakType> types);

/// The float type in which a function of floats computes with such an operand: int8 -> float32, float16 -> float16.
WeakType inexact_of(WeakType type);

}  // namespace meshd::numpy
