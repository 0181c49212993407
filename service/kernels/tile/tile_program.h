// A straight-line program over tiles: each instruction passes over a tile of lanes that stays in L1. Fused chains,
// reducers, comparators and scatter bodies are all this one form; a code generator may later take it as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory_resource>
#include <span>
#include <vector>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Lanes of a vector from another, in programs of one block that are only ever code (while_code.h): lane l of the
/// result is lane from[l] of the last operand where the mask has bit l, else lane l of the first operand.
struct TilePermute {
  static constexpr size_t kMostLanes = 64;
  std::array<uint8_t, kMostLanes> from{};
  uint64_t mask = ~uint64_t{0};
  [[nodiscard]] bool is_whole() const { return mask == ~uint64_t{0}; }
  [[nodiscard]] bool has(size_t lane) const { return (mask >> lane & 1U) != 0; }
};

/// A sum or product of floats in double, from left to right, likewise: operand 0 has the values, operand 1 the first
/// one.
struct TileFold {
  bool multiplies = false;
  int64_t results = 1;             ///< 1: it is on all lanes
  std::vector<TilePermute> items;  ///< which values are the i-th of each result
  /// By item: it comes first in the instruction that adds it. For item 0: the sum of all, where the init is added.
  std::vector<bool> item_first;
};

/// A row of an array that such programs read or write: where it begins, in bytes from the memory of register `array`,
/// is sum(stride * index) over the instruction's operands, of which a row that is written is the first. An index that
/// is not from 0 to `most` is clamped, or the row is not written.
struct TileRow {
  struct Index {
    int64_t most = 0;
    int64_t stride = 0;
  };
  uint16_t array = 0;
  int64_t lanes = 1;  ///< 1: all lanes of the result have the one element
  bool writes = false;
  bool skips = false;
  std::vector<Index> indices;
};

/// One instruction: registers are tiles of lanes.
struct TileInstruction {
  ScalarOp op = ScalarOp::kCopy;
  ScalarKernel kernel = nullptr;
  std::array<uint16_t, 3> operands{};
  uint16_t result = 0;
  /// Whether unused lanes should be skipped, because the kernel calls a function for each.
  bool is_lane_by_lane = false;
  /// reduce_precision needs two numbers; kernel is then null and these are used.
  int exponent_bits = 0;
  int mantissa_bits = 0;
  // No operation on lanes: the program's permute, row or fold of this number.
  int16_t permute = -1;
  int16_t row = -1;
  int16_t fold = -1;
};

/// How many of its operands an instruction reads.
inline int used_operands(const TileInstruction& instruction) {
  return instruction.kernel == nullptr ? 1 : operand_count(instruction.op);
}

/// A constant held by a register: one element, repeated over the lanes before the first instruction.
struct TileConstant {
  uint16_t reg = 0;
  alignas(16) std::array<std::byte, 16> element{};
};

/// Registers 0..input_count-1 are inputs. Every register is written at most once. Immutable once built; any thread.
struct TileProgram {
  int input_count = 0;
  std::vector<tensor::DType> registers;
  std::vector<TileConstant> constants;
  std::vector<TileInstruction> instructions;
  std::vector<uint16_t> outputs;  ///< registers of the results, in order (an input or constant register is allowed)
  std::vector<TilePermute> permutes;
  std::vector<TileRow> rows;
  std::vector<TileFold> folds;

  uint16_t add_register(tensor::DType dtype);
  /// Adds an instruction, looking its kernel up; returns the result's register. Throws unsupported_dtype naming op and
  /// dtype.
  uint16_t emit(ScalarOp op, std::initializer_list<uint16_t> operands, tensor::DType out);
  uint16_t emit_reduce_precision(uint16_t operand, int exponent_bits, int mantissa_bits);
  /// Adds a register that holds one element on all lanes.
  uint16_t constant(tensor::DType dtype, const std::byte* element);
};

/// Whether an instruction writes the register; inputs and constants have memory that must stay what it is.
bool is_computed(const TileProgram& program, uint16_t reg);

/// If the program is a single binary op of its two inputs (in either order for commutative ones), which op; kCopy
/// otherwise. Reducers such as add, multiply, maximum, minimum, and, or go to direct loops.
ScalarOp as_single_binary(const TileProgram& program);

/// Lanes a tile should have so that the live registers of the program fill about half of L1: 64..1024, a multiple
/// of 64.
int64_t tile_lanes(const TileProgram& program);

/// Register allocation of a tile program, in bytes for each lane: registers with disjoint live ranges share memory.
/// Those of inputs, constants and outputs are not shared. Immutable; any thread.
class TileLayout {
 public:
  explicit TileLayout(const TileProgram& program);
  /// Bytes before register `reg` in memory for one lane; times the lanes of a tile, that is its place.
  [[nodiscard]] int64_t offset(uint16_t reg) const { return offsets_[reg]; }
  /// Bytes of all places together, for one lane.
  [[nodiscard]] int64_t lane_bytes() const { return lane_bytes_; }

 private:
  std::vector<int64_t> offsets_;
  int64_t lane_bytes_ = 0;
};

/// Memory for the registers of one executing tile. One thread.
/// Lanes are rounded up to whole blocks of vectors, and lanes behind the last one of a tile are computed along with it:
/// no instruction has a tail of its own.
class TileScratch {
 public:
  TileScratch(const TileProgram& program, int64_t lanes);
  /// With a layout made before, in memory of `memory`, which must outlive it.
  TileScratch(const TileProgram& program, const TileLayout& layout, int64_t lanes,
              std::pmr::memory_resource* memory = std::pmr::new_delete_resource());
  ~TileScratch();
  TileScratch(const TileScratch&) = delete;
  TileScratch& operator=(const TileScratch&) = delete;
  /// Lanes of register `reg`.
  [[nodiscard]] std::byte* reg(uint16_t reg) { return pointers_[reg]; }
  /// The register's own memory, whatever it is bound to.
  [[nodiscard]] std::byte* home(uint16_t reg) { return pointers_[registers_ + reg]; }
  /// Points an input or output register at memory of the caller instead (it must hold `count` lanes when run).
  void bind(uint16_t reg, std::byte* memory) { pointers_[reg] = memory; }
  [[nodiscard]] int64_t lanes() const { return lanes_; }
  /// Where every register is, by number; and where their own memory is.
  [[nodiscard]] std::byte* const* pointers() const { return pointers_.data(); }
  [[nodiscard]] std::byte* const* homes() const { return pointers_.data() + registers_; }

 private:
  int64_t lanes_;
  size_t bytes_;
  std::byte* storage_;
  size_t registers_;
  std::pmr::vector<std::byte*> pointers_;  ///< where registers are, then where their own memory is
};

/// Runs all instructions over `count` <= lanes lanes; inputs must be in their registers. Results are in
/// program.outputs' registers.
void run_tile(const TileProgram& program, TileScratch& scratch, int64_t count);

class TileCode;
/// The same with code of the program, where there is some (tile_code.h), else interpreted.
void run_tile(const TileProgram& program, const TileCode* code, TileScratch& scratch, int64_t count);

/// Memory that is about to be read.
struct MemoryRange {
  const std::byte* begin = nullptr;
  int64_t bytes = 0;
};

/// The same; between instructions it prefetches the memory that the next tile reads.
void run_tile(const TileProgram& program, const TileCode* code, TileScratch& scratch, int64_t count,
              std::span<const MemoryRange> soon);

}  // namespace meshd::kernels
