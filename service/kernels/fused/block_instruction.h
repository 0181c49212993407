// What an iteration of a small while does, one after the other: instructions over places in a block of registers
// (small_while.h), and rows of arrays in memory. Private to this folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

struct SmallReduce;

/// Places are bytes from the beginning of the block. A result's elements behind its lanes repeat the last one.
struct BlockInstruction {
  enum class Kind : uint8_t {
    kKernel,    ///< result = kernel(operands)
    kCopy,      ///< result = operand 0
    kShuffle,   ///< result = the elements at `elements`
    kReadRow,   ///< result = the row
    kWriteRow,  ///< the row = operand 0
    kReduce,    ///< result = operand 0, reduced, with operand 1 as init
  };
  /// Of a row: where it begins in an array, in bytes, is sum(stride * index).
  struct Index {
    size_t place = 0;
    int64_t most = 0;
    int64_t stride = 0;
  };
  Kind kind = Kind::kCopy;
  ScalarKernel kernel = nullptr;
  std::array<size_t, 3> operands{};
  size_t result = 0;
  int64_t lanes = 0;  ///< as many as it makes; of a row longer than a block, all
  int64_t element_bytes = 4;
  std::vector<size_t> elements = {};  ///< by lane
  std::shared_ptr<const SmallReduce> reduce = nullptr;
  // Rows.
  size_t array = 0;  ///< number of the value that is the array
  tensor::DType index_dtype = tensor::DType::kInt32;
  std::vector<Index> indices = {};
  bool skips = false;  ///< out of bounds; else indices are clamped
};

/// Instructions for the block of one piece and the arrays of one shard, with addresses: of rows longer than a block the
/// piece has its part. One thread; they must outlive it.
class BoundInstructions {
 public:
  BoundInstructions(std::span<const BlockInstruction> instructions, std::byte* block, int64_t piece,
                    std::byte* const* values);
  void execute() const;

 private:
  struct Bound {
    ScalarKernel kernel = nullptr;  ///< null: another kind
    std::array<const std::byte*, 3> operands{};
    std::byte* result = nullptr;  ///< of a row: the row if all indices are 0
    int64_t lanes = 0;
    int64_t element_bytes = 4;
    const BlockInstruction* from = nullptr;
  };
  void execute_other(const Bound& bound) const;

  std::byte* block_;
  std::vector<Bound> bound_;
};

}  // namespace meshd::kernels
