// Loads the inputs of a fused loop into registers, tile by tile: bound in place where the lanes are contiguous in
// memory, else gathered; broadcasts are filled once while they are constant, iotas are generated. Nothing is
// materialised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/tile/tile_program.h"
#include "service/kernels/tile/tile_rows.h"
#include "service/tensor/shape.h"

namespace meshd::kernels {

/// One input over a region of the iteration space: lane i is the element at base + sum(stride[d] * index[d]) of its
/// memory. An iota has no memory: its element at place p is p.
struct RegionInput {
  uint16_t reg = 0;
  tensor::DType dtype = tensor::DType::kFloat32;
  bool is_iota = false;
  tensor::Dims strides;  ///< one for each dim of the region, in elements
  // The same walk in as few dims as this input alone needs; Region::collapse sets them.
  tensor::Dims walk_dims;
  tensor::Dims walk_strides;
  bool first_only = false;  ///< an iota of int32 of which only the first lane of a tile is used, and filled
  bool is_dense = false;    ///< lanes are contiguous in memory over the region
  bool is_output = false;   ///< of the program, too: a register holds the lanes
  /// They are within each row of its last dim, but rows are anywhere. Code reads them there.
  [[nodiscard]] bool has_rows() const {
    return !is_dense && !is_iota && !is_output && strides.size() >= 2 && strides.back() == 1;
  }
  int64_t period = 1;  ///< lanes after which the input repeats itself
  int64_t extent = 0;  ///< elements of its memory from index 0 to the last index, where no stride is negative
};

/// A dense row-major region of some dims, and the inputs over it. Immutable; any thread.
struct Region {
  tensor::Dims dims;
  std::vector<RegionInput> inputs;
  int64_t size = 1;  ///< product of dims

  /// Joins neighbouring dims of one label over which every input walks as over one, and drops dims of size 1; sets the
  /// size and each input's own walk. Labels, one for each dim, follow the dims.
  void collapse(std::vector<bool>& labels);
};

/// Lanes on which tile [start, start + count) of a range that ends at `end` is computed: whole blocks where they are in
/// the range, since a tile that ends within a block has to be padded.
inline int64_t lanes_of_tile(int64_t start, int64_t count, int64_t end) {
  const int64_t lanes = core::round_up(count, kBlockLanes);
  return start + lanes <= end ? lanes : count;
}

/// Fills registers for tiles of a region. One thread; the region and scratch must outlive it.
class TileReader {
 public:
  TileReader(const Region& region, TileScratch& scratch,
             std::pmr::memory_resource* memory = std::pmr::new_delete_resource());

  /// Input i at index 0 of the region: memory of a tensor (element at the base), first value of an iota.
  void set_base(size_t input, const std::byte* memory) { states_[input].memory = memory; }
  void set_base(size_t input, int64_t value) { states_[input].first_value = value; }

  /// The memory of an input has other contents than when it was read: its register is filled again.
  void forget(size_t input) { states_[input].filled_count = 0; }

  /// Makes the registers of all inputs hold lanes [start, start + count) of the region in row-major order, and some
  /// values of their type on the lanes behind them, up to `lanes`: `count`, or more (lanes_of_tile). `elements`:
  /// registers for which one lane will do where `lanes` are whole blocks, because the tile has one value for all;
  /// `by_row`: they have one for each row, and with the inputs that have rows are left to add_row_inputs().
  void read(int64_t start, int64_t count, int64_t lanes, std::span<const uint16_t> elements = {}, bool by_row = false);

  /// Whether a register holds what was copied of an input's memory. If none does, what was read last may be computed
  /// again when the memory has other contents.
  [[nodiscard]] bool has_copied() const;

  /// Of a region of two dims or more, for the rows of tile [start, start + count): calls run(rows, registers, at) for
  /// those from lane `at` on of which each input has one stride, with the registers of what read() leaves out. `run`
  /// may add others.
  template <class Run>
  void for_rows(int64_t start, int64_t count, std::span<const uint16_t> elements, const Run& run);

  /// The memory of lanes [start, start + count) of dense inputs, to be prefetched while another tile is computed. Valid
  /// until the next call.
  std::span<const MemoryRange> ranges(int64_t start, int64_t count);

 private:
  struct State {
    const std::byte* memory = nullptr;
    int64_t first_value = 0;
    std::byte* home = nullptr;  ///< the register's own memory
    // What the register's own memory holds now.
    const std::byte* filled_memory = nullptr;
    int64_t filled_value = 0;
    int64_t filled_phase = 0;
    int64_t filled_count = 0;    ///< lanes, with those behind the tile
    int64_t gathered_count = 0;  ///< so many of them are the input's, where it has not one element
  };

  struct Lanes {
    int64_t start = 0;
    int64_t count = 0;
    int64_t filled = 0;  ///< with those behind them
  };
  /// Rows from lane `start` on of which each input has one stride.
  [[nodiscard]] int64_t rows_alike(int64_t start) const;
  void add_row_inputs(int64_t start, int64_t lane, std::span<const uint16_t> elements);
  void read_input(const RegionInput& input, State& state, const Lanes& lanes, bool is_element);
  void read_element(const RegionInput& input, State& state, int64_t start, int64_t count);
  void gather(const RegionInput& input, const State& state, int64_t start, int64_t count);
  void gather_tensor(const RegionInput& input, const State& state, int64_t start, int64_t count);

  const Region& region_;
  TileScratch& scratch_;
  std::pmr::vector<State> states_;
  std::pmr::vector<MemoryRange> ranges_;
  std::pmr::vector<RowRegister> row_registers_;
};

template <class Run>
void TileReader::for_rows(int64_t start, int64_t count, std::span<const uint16_t> elements, const Run& run) {
  RowsOfTile rows{.lanes = region_.dims.back(), .registers = {}};
  rows.of_tile = count / rows.lanes;
  for (; rows.first < rows.of_tile; rows.first += rows.count) {
    const int64_t lane = rows.first * rows.lanes;
    rows.count = std::min(rows_alike(start + lane), rows.of_tile - rows.first);
    row_registers_.clear();
    add_row_inputs(start + lane, lane, elements);
    run(rows, row_registers_, start + lane);
  }
}

}  // namespace meshd::kernels
