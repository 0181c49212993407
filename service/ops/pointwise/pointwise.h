// Pointwise ops: one scalar operation over any shape. What their infer functions and rules share, and how a row becomes
// instructions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Which element types an operand may have; a set.
using DTypeSet = unsigned;
inline constexpr DTypeSet kBools = 1;
inline constexpr DTypeSet kSignedIntegers = 2;
inline constexpr DTypeSet kUnsignedIntegers = 4;
inline constexpr DTypeSet kFloats = 8;
inline constexpr DTypeSet kComplexes = 16;
inline constexpr DTypeSet kIntegers = kSignedIntegers | kUnsignedIntegers;
inline constexpr DTypeSet kBoolsOrIntegers = kBools | kIntegers;
inline constexpr DTypeSet kFloatsOrComplexes = kFloats | kComplexes;
inline constexpr DTypeSet kNumbers = kIntegers | kFloatsOrComplexes;
inline constexpr DTypeSet kAnyDType = kBools | kNumbers;

/// True when `dtype` is in the set.
bool contains(DTypeSet set, tensor::DType dtype);
/// "integer, floating-point or complex". For messages.
std::string text(DTypeSet set);

/// The result's element type, given the operands'.
enum class Gives : uint8_t {
  kSame,     ///< the operands'
  kBool,     ///< i1
  kPart,     ///< a complex number's part, the operands' otherwise
  kComplex,  ///< complex of the operands'
};

/// Result type of an op whose operands have one type that is in `takes`. Throws invalid_program with the labels I1
/// (element type) and C1 (types differ); `op` is the mnemonic.
std::vector<ir::Type> infer_pointwise(const OpView& view, std::string_view op, size_t operand_count, DTypeSet takes,
                                      Gives gives);

/// One factor for each dimension of the result, in all operands but scalars, which are broadcast and have none.
sharding::FactorRule pointwise_rule(const OpView& view);

}  // namespace meshd::ops
