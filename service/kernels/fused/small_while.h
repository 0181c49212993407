// A `while` loop of small fused loops as one list of instructions over one block of registers: what its iterations
// carry stays in the block, and nothing is looked up or allocated in an iteration.
//
// The loop's values are what has memory outside of it: what iterations carry, what they only read, what one step leaves
// for another. A value's home in the block has kBlockLanes elements, the last one repeated, as SmallLoop pads its
// registers; so a value is an operand of instructions as it is.
//
// 1. load() copies the values' memory into their homes.
// 2. run() repeats: instructions of the condition; the predicate; instructions of the body; exchanges.
// 3. store() copies the homes of values that are written back.
//
// Example: while (i < n) { i = i + 1; v = sin(v) + h }, v f32[16]. Values i, n, p, v; constants 1 and h.
//   condition  p = i < n
//   body       i = i + 1; t = sin(v); v = t + h          (four kernel calls an iteration, in place)
//
// Bits are those of the steps one by one: the same kernels on the same padded lanes. Loops that take many iterations go
// on as machine code (while_code.h).
//
// Arrays that steps only read and write rows of, at indices which the loop computes, stay where they are in memory:
// what lax.scan takes and gives has no home in the block.
//   x = xs[i] (DynamicRow); c = 0.9 * c + 0.1 * x; ys[i] = c; i = i + 1
//
// Values of more lanes than a block are cut into pieces of a block, where no lane ever needs another: all values and
// rows have one lane or so many, and steps read them lane for lane. Each piece has a block of its own, with values of
// one lane in each, and goes through its iterations by itself: so its values stay in the cache, or in registers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "service/kernels/fused/block_instruction.h"
#include "service/kernels/fused/small_step.h"

namespace meshd::kernels {

class FusedKernel;
class SmallLoop;
class WhileCode;

/// A loop as it is given to SmallWhile::make. Values are numbered.
struct SmallWhileLoop {
  struct Step {
    std::shared_ptr<const FusedKernel> kernel;
    std::shared_ptr<const SmallStep> small_step;  ///< null as well: a copy of value operands[0] to value results[0]
    std::vector<int> operands;                    ///< values
    std::vector<int> results;
    [[nodiscard]] const DynamicRow* row() const {  ///< null: it is another step
      return small_step == nullptr ? nullptr : std::get_if<DynamicRow>(small_step.get());
    }
  };
  std::vector<int64_t> value_bytes;
  std::vector<tensor::DType> dtypes;  ///< by value
  std::vector<char> is_stored;        ///< by value: store() writes it
  std::vector<char> is_array;         ///< by value: steps have rows of it alone, and it stays in memory
  std::vector<Step> condition;
  std::vector<Step> body;
  int predicate = 0;  ///< value of one byte: not 0 goes on
  std::vector<std::pair<int, int>> exchanges;
};

/// The rows of each array that has a written one.
std::map<int, std::vector<const DynamicRow*>> written_rows(const SmallWhileLoop& loop);

/// Immutable; any thread. The blocks are the caller's: one of each piece of each shard.
class SmallWhile {
 public:
  /// Nothing where a step is no small loop, a value is read as elements of another width, values have more than one
  /// block of lanes and cannot be cut into pieces, or all registers together take more than 512 KiB.
  static std::optional<SmallWhile> make(const SmallWhileLoop& loop);

  /// A multiple of 64; blocks are aligned to 64.
  [[nodiscard]] int64_t block_bytes() const { return static_cast<int64_t>(bytes_); }
  /// How many blocks a shard has.
  [[nodiscard]] int64_t pieces() const { return pieces_; }

  void load(std::byte* block, int64_t piece, const std::byte* const* values) const;

  /// Whether it goes on as machine code when it takes many iterations.
  [[nodiscard]] bool can_be_code() const { return code_ != nullptr; }
  /// Memory that all code takes at most.
  [[nodiscard]] int64_t code_bytes() const;

  struct Outcome {
    int64_t iterations = 0;
    bool is_over = false;  ///< the predicate was false
  };
  /// At most `most` iterations of one piece. All pieces of a shard take as many. Rows of `values` are read and written.
  Outcome run(std::byte* block, int64_t piece, std::byte* const* values, int64_t most) const;

  void store(const std::byte* block, int64_t piece, std::byte* const* values) const;

 private:
  struct Value {
    size_t home = 0;
    int64_t bytes = 0;
    int64_t element_bytes = 1;
    bool is_stored = false;
    bool is_array = false;  ///< has no home
    [[nodiscard]] int64_t lanes() const { return bytes / element_bytes; }
    /// Lanes [first, first + count) of it are in the block of a piece.
    struct Part {
      int64_t first = 0;
      int64_t count = 0;
    };
    [[nodiscard]] Part part(int64_t piece) const;
  };
  using Loops = std::map<const FusedKernel*, SmallLoop>;  // of pieces; those of one block have their own
  bool cut(const SmallWhileLoop& loop, Loops& loops);
  bool add_values(const SmallWhileLoop& loop, const Loops& loops);
  [[nodiscard]] bool has_elements(int value, int64_t element_bytes) const;
  [[nodiscard]] bool fits(const SmallWhileLoop::Step& step) const;
  [[nodiscard]] bool fits(const SmallWhileLoop::Step& step, const SmallLoop& small) const;
  [[nodiscard]] bool are_alike(int a, int b) const;
  void add_loop(const SmallWhileLoop::Step& step, const SmallLoop& small, std::vector<BlockInstruction>& to);
  void add_small_step(const SmallWhileLoop::Step& step, std::vector<BlockInstruction>& to);
  size_t place(size_t bytes);

  size_t bytes_ = 0;
  int64_t pieces_ = 1;
  size_t predicate_ = 0;
  std::vector<Value> values_;
  std::vector<BlockInstruction> condition_;
  std::vector<BlockInstruction> body_;
  std::vector<std::pair<size_t, std::vector<std::byte>>> constants_;  ///< place in the block, registers
  std::vector<std::pair<int, int>> exchanges_;
  std::shared_ptr<const WhileCode> code_;       ///< of whole pieces; null: always interpreted
  std::shared_ptr<const WhileCode> last_code_;  ///< of the last piece
};

}  // namespace meshd::kernels
