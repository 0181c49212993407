// Codes of Shardy's attributes in MLIR bytecode (bytecode.td of Shardy), which are read in one file and printed in
// another.
#pragma once

#include <cstdint>

namespace meshd::program {

enum class SdyCode : uint64_t {
  kManualAxes = 0,       ///< children: strings
  kMeshAxis = 1,         ///< text: name; numbers: size
  kMesh = 2,             ///< children: axes; numbers: device ids
  kSubAxis = 3,          ///< numbers: pre-size, size
  kAxis = 4,             ///< text: name; children: its sub-axis, if it is one
  kDim = 5,              ///< children: axes; numbers: is closed, then the priority, if there is one
  kSharding = 6,         ///< children: mesh or its symbol, dims, replicated, unreduced axes; numbers: counts of these
  kPerValue = 7,         ///< children: shardings
  kDimFactors = 8,       ///< numbers: factors
  kTensorFactors = 9,    ///< children: dims' factors
  kRule = 10,            ///< children: operands, results; numbers: lists behind their lengths
  kAxisList = 11,        ///< children: axes
  kAxisLists = 12,       ///< children: lists of axes
  kAllToAllParam = 13,   ///< children: axes; numbers: source and target dim
  kAllToAllParams = 14,  ///< children: parameters
  kUnreduced = 15,       ///< a sharding with unreduced axes
  kUnreducedPerValue = 16,
};

}  // namespace meshd::program
