// Walks tiles of a pointwise fused loop: inputs into registers, instructions, outputs to memory. Private to this
// folder.
#pragma once

#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "service/kernels/fused/fused_plan.h"

namespace meshd::kernels {

/// Registers and readers of one loop, kept from range to range. One thread, for one call; loop, plan and call must
/// outlive it. The call's results may change between ranges, but not which of them are operands.
class PointwiseRun {
 public:
  /// `most_elements`: no range is longer.
  PointwiseRun(const FusedLoop& loop, const FusedPlan& plan, const FusedCall& call, int64_t most_elements,
               std::pmr::memory_resource* memory);

  /// Where each input's region begins, in elements; for all ranges that follow. Empty: at the operands' first elements.
  void move_to(const tensor::Dims& places) { set_bases(reader_, loop_, call_, places); }

  /// The memory of an input has other contents than when it was read.
  void forget(size_t input) { reader_.forget(input); }

  /// What run() did last, once more, when inputs have other contents. False, and nothing is done, where it takes more
  /// than the code of one tile.
  bool run_again();

  /// Elements [at, end) of the region. As many elements of each of `soon` are prefetched meanwhile.
  void run(int64_t at, int64_t end, std::span<const SoonRead> soon = {});

 private:
  /// How one output leaves its register.
  enum class OutputWay : uint8_t {
    kDirect,  ///< the register is the result's memory
    kCopy,    ///< copied after each tile
    kStream,  ///< copied past the caches
    kPlace,   ///< copied after each tile to where it goes in the result
    kColumn,  ///< as one of columns_, with the others
  };
  void bind_outputs(int64_t at);
  void copy_outputs(int64_t at, int64_t count);
  void place_output(size_t output, int64_t at, int64_t count);
  [[nodiscard]] bool set_columns();
  void run_rows(int64_t at, int64_t count, std::span<const uint16_t> elements, bool streams);
  [[nodiscard]] bool is_direct() const;
  /// The only tile of a run, which may be computed again without being read.
  struct Tile {
    int64_t at = 0;
    int64_t count = 0;
    int64_t lanes = 0;
  };
  [[nodiscard]] bool can_stream_by_code(int64_t at, int64_t count) const;
  /// Elements of the tile at `at` of a range that ends at `end`.
  [[nodiscard]] int64_t tile_at(int64_t at, int64_t end, bool in_place, bool by_row) const;
  /// Lanes that the tile [at, at + count) of a range that ends at `end` is computed on.
  [[nodiscard]] int64_t lanes_of(int64_t at, int64_t count, int64_t end) const;

  void set_ways();
  [[nodiscard]] int64_t element_bytes(size_t output) const {
    return tensor::size_bytes(loop_.program.registers[loop_.program.outputs[output]]);
  }

  const FusedLoop& loop_;
  const FusedPlan& plan_;
  const FusedCall& call_;
  TileScratch scratch_;
  TileReader reader_;
  const TileCode* code_ = nullptr;
  std::pmr::vector<OutputWay> ways_;
  std::pmr::vector<MemoryRange> soon_;  ///< of one tile
  std::pmr::vector<uint16_t> columns_;  ///< registers of outputs that are the columns of the result, in order
  int64_t row_ = 1;                     ///< elements after which a tile ends, where tiles are parts of rows
  bool takes_over_ = false;             ///< a result has an operand's memory
  std::optional<Tile> again_;
};

}  // namespace meshd::kernels
