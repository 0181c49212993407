// Tile programs as machine code: values stay in vector registers from instruction to instruction, where the interpreter
// (run_tile) passes a tile through memory for each. A second tier behind the same seam: same registers, same bits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/tile/code_memory.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

/// Code that goes from row to row moves so many registers at most.
inline constexpr size_t kMostWalked = 12;

/// Rows of lanes that code goes through, one behind the other from lane `begin` on. Generated code reads it.
struct CodeRows {
  int64_t begin = 0;
  int64_t lanes = 0;  ///< of a row: Options::row_lanes, or where it sums rows of kBlockLanes or more, so many
  int64_t count = 0;
  /// Bytes by which registers move from one row to the next: of Options::elements, row_inputs, then row_outputs.
  const int64_t* strides = nullptr;
  double* totals = nullptr;  ///< of each row, where it sums
};

/// Code of one tile program for one processor level. Immutable; any thread.
///
/// Example: y = x * x + 1 on 1,024 lanes at kV4. Four vectors of 16 lanes an iteration: load x, multiply it by itself,
/// add the constant from behind the code, store y; 16 iterations, and x * x never reaches memory.
class TileCode {
 public:
  struct Options {
    bool prefetches = false;  ///< inputs are prefetched some lines ahead
    bool streams = false;     ///< has a second form whose stores bypass the caches
    /// Has a form that goes from row to row of so many lanes, a vector or more; 0: none.
    int64_t row_lanes = 0;
    /// Has a form that sums the lanes of rows: the only output is computed, of f32. Rows of kBlockLanes or more; or of
    /// 16, 32 or 48 lanes, if it is this number.
    int64_t sums = 0;
    /// Lanes of a block that are computed, at least.
    int64_t lanes = kBlockLanes;
    /// An output register of bool: the block is computed again and again while its first lane is not 0.
    std::optional<uint16_t> repeats_while = std::nullopt;
    /// All lanes of a step are computed before any of the next: of programs whose lanes move, or whose rows are read
    /// and written. Four vectors at most.
    bool one_strip = false;
    /// With repeats_while: an input and an output register that have the same memory. It may be written when the last
    /// repetition is over, and until then be in a vector register.
    std::span<const std::pair<uint16_t, uint16_t>> carried = {};
    /// Inputs of two or four bytes that have one value on all lanes of a run, or of a row.
    std::span<const uint16_t> elements = {};
    /// Inputs, and outputs, of which the lanes of a row follow each other, but not those of two rows: where the code
    /// goes from row to row.
    std::span<const uint16_t> row_inputs = {};
    std::span<const uint16_t> row_outputs = {};
  };
  /// Null where code is not generated: on processors other than x86-64 with AVX2, for programs that call a function for
  /// each lane, and for those too large.
  static std::unique_ptr<const TileCode> make(const TileProgram& program, CpuLevel level, const Options& options);

  /// Runs the program over lanes [begin, end), whole blocks of kBlockLanes: from inputs' registers to those of computed
  /// outputs; other registers are not written. `registers`: where each is.
  void run(std::byte* const* registers, int64_t begin, int64_t end) const { plain_(registers, begin, end); }
  /// The same; stores of outputs bypass the caches. Their memory is aligned to 64.
  void run_streaming(std::byte* const* registers, int64_t begin, int64_t end) const {
    streaming_(registers, begin, end);
  }
  /// Where it walks(): runs the program over rows. Of one that ends within a block some lanes are computed twice, so
  /// results are not in an input's memory. Nothing is read or written outside of rows.
  void run_rows(std::byte* const* registers, const CodeRows& rows) const { walking_(registers, &rows); }
  /// Where it sums(): the totals of the rows' lanes, which are not stored; of f32 in double, added as the fold adds
  /// them (FloatSum in fold_segment.h).
  void sum_rows(std::byte* const* registers, const CodeRows& rows) const { summing_(registers, &rows); }
  /// With repeats_while: computes the first block at most `most` (1 or more) times; returns how many it was.
  int64_t repeat(std::byte* const* registers, int64_t most) const { return plain_(registers, 0, most); }
  [[nodiscard]] bool streams() const { return streaming_ != nullptr; }
  [[nodiscard]] bool walks() const { return walking_ != nullptr; }
  [[nodiscard]] bool sums() const { return summing_ != nullptr; }
  /// Of Options::elements the code reads the first lane alone.
  [[nodiscard]] bool reads_elements() const { return reads_elements_; }
  /// Only memory of inputs and computed outputs is used, so runs may have more lanes than the other registers.
  [[nodiscard]] bool needs_no_registers() const { return needs_no_registers_; }
  /// Of memory, in whole pages.
  [[nodiscard]] int64_t bytes() const { return static_cast<int64_t>(memory_->bytes()); }

 private:
  using Function = int64_t (*)(std::byte* const* registers, int64_t begin, int64_t end);
  using RowsFunction = int64_t (*)(std::byte* const* registers, const CodeRows* rows);
  TileCode() = default;

  std::unique_ptr<const CodeMemory> memory_;
  Function plain_ = nullptr;
  Function streaming_ = nullptr;
  RowsFunction walking_ = nullptr;
  RowsFunction summing_ = nullptr;
  bool reads_elements_ = false;
  bool needs_no_registers_ = false;
};

/// Code that is made when enough lanes were computed for it to pay; until then, and where there is none, the program is
/// interpreted. Any thread.
class LazyTileCode {
 public:
  explicit LazyTileCode(int64_t after) : after_(after) {}
  ~LazyTileCode() = default;
  LazyTileCode(const LazyTileCode&) = delete;
  LazyTileCode& operator=(const LazyTileCode&) = delete;

  /// The code, or null. `lanes`: so many are computed next; program and options: the same in every call. The thread
  /// whose lanes reach `after` makes the code (some tens of microseconds), others go on without.
  const TileCode* get(const TileProgram& program, const TileCode::Options& options, int64_t lanes) const;

 private:
  enum class State : uint8_t { kCounting, kMaking, kReady, kNone };
  const int64_t after_;
  mutable std::atomic<State> state_{State::kCounting};
  mutable std::atomic<int64_t> lanes_{0};
  mutable std::unique_ptr<const TileCode> code_;
};

/// Whether generated code gains anything: instructions that it computes itself outweigh calls of functions and kernels.
/// Code that spares a pass over memory, because it streams, sums, or reads elements or rows where they are, gains with
/// one instruction.
bool gains_by_code(const TileProgram& program, const TileCode::Options& options);

/// Whether there is code for the program that goes from row to row, and moves `moved` registers.
bool can_walk_by_code(const TileProgram& program, size_t moved);

/// Lanes of a vector of the code for this processor: of rows there are at least as many.
int64_t lanes_of_vector();

/// Bytes of memory for the code of a program, with all its forms; estimated from above.
int64_t code_bytes(const TileProgram& program, const TileCode::Options& options);

}  // namespace meshd::kernels
