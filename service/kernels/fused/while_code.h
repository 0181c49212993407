// A small `while` loop (small_while.h) as machine code: an iteration is one tile program, the body and behind it the
// condition, on as many lanes as the longest value has, and the code repeats it without coming back. Private to this
// folder.
//
// Example: while (i < n) { i = i + 1; v = sin(v) + h }, v f32[16]. The program of an iteration, at kV4 one vector each:
//   i1 = i + 1; t = sin(v); v1 = t + h; p1 = i1 < n; i := i1; v := v1; p := p1
// The loop's values are read and written in their homes in the block, at the end of an iteration. Rows of arrays are
// read and written where they are, and lanes that move stay in vectors (TileRow and TilePermute of tile_program.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "service/kernels/fused/small_while.h"
#include "service/kernels/tile/tile_code.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

/// Immutable, but for its code, which is made when enough iterations were taken. Any thread.
class WhileCode {
 public:
  /// A register whose memory is an array's.
  struct Array {
    uint16_t reg = 0;
    int value = 0;
    int64_t lane_bytes = 0;  ///< of an element of long rows, of which a piece has its part; 0: the row has one
  };

  /// Nothing where an instruction is no step of generated code, or lanes move and a value has more than four vectors.
  /// `loops`: of the steps' kernels. `homes`, and `lanes` in a block: by value. `most` lanes: of values and loops.
  static std::shared_ptr<const WhileCode> make(const SmallWhileLoop& loop,
                                               const std::map<const FusedKernel*, SmallLoop>& loops,
                                               std::span<const size_t> homes, std::span<const int64_t> lanes,
                                               int64_t most);

  /// Memory that the code takes at most.
  [[nodiscard]] int64_t bytes() const { return code_bytes(program_, {}); }
  /// The code for `most` iterations more; null: the loop is interpreted.
  [[nodiscard]] const TileCode* get(int64_t most) const;
  /// At least one iteration, at most `most`; the condition was true. Returns how many.
  /// Of rows longer than a block, from lane `first_lane` on.
  int64_t run(const TileCode& code, std::byte* block, std::byte* const* values, int64_t first_lane, int64_t most) const;

 private:
  explicit WhileCode(int64_t after) : code_(after) {}

  TileProgram program_;
  std::vector<size_t> homes_;  ///< by register; kNoHome for those that have none
  std::vector<Array> arrays_;
  std::vector<std::pair<uint16_t, uint16_t>> carried_;  ///< the options' own
  TileCode::Options options_;
  LazyTileCode code_;
};

}  // namespace meshd::kernels
