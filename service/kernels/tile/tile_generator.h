// x86-64 code of a tile program, for AVX2 and AVX-512 (Xbyak). Private to this folder; other processors do not compile
// it.
//
// 1. An iteration of the loop computes a block of 64 lanes, strip by strip: one to four vectors of 16 lanes (8 with
// AVX2), so
//    that instructions that wait for each other come from several vectors. A value has as many vector registers; which
//    ones is decided as instructions are written. What does not fit, and what must outlive a call, goes to a slot of
//    the stack frame: the value whose next use is farthest.
// (A small loop computes no more lanes of its block than it has, and repeats it: TileCode::repeat.)
// 2. Calls come as early as they can. A vector function is called on one vector after the other, each time right behind
//    the steps that only it needs: a call loses all vector registers, and what waits in memory waits long.
// (Functions that have a recipe are no calls: their steps are like all others, and values stay where they are.)
// 3. An instruction that has no step calls its kernel on the block, so the program falls into runs of steps, each
//    strip by strip. Slots have 64 lanes, as they are in memory.
// 4. Results are stored as they are computed; a second form of the code stores past the caches, two others go from row
// to
//    row, and one of these adds results (tile_generator_rows.cpp).
//
// Registers: r12 the lane, rax for one address, with rcx and rdx those of a row; the others hold addresses of inputs
// and outputs. Vectors 0 to 3 are for one step.
//
// Bits are the interpreter's: steps are the instructions that its loops are compiled to, without contraction, operands
// in the same order, and functions and kernels are the same. (The order decides which of two NaNs a sum is; it is the
// compiler's choice, vector by vector of a block.)
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include <xbyak/xbyak.h>

#include "service/kernels/tile/tile_code.h"
#include "service/kernels/tile/tile_recipes.h"
#include "service/kernels/tile/tile_steps.h"

namespace meshd::kernels {

/// Writes the code of one program to memory of the caller. One thread, used once.
class TileGenerator : private Xbyak::CodeGenerator {
 public:
  /// `memory`: `bytes` bytes, aligned to 64; all must outlive it.
  TileGenerator(const TileProgram& program, CpuLevel level, const TileCode::Options& options, std::byte* memory,
                size_t bytes);
  /// False where the program takes more of the stack than a frame has. Throws Xbyak::Error where memory is too small.
  bool generate();
  [[nodiscard]] size_t size() const { return getSize(); }
  /// Where the other forms begin; 0: there is none.
  [[nodiscard]] size_t streaming_begin() const { return streaming_begin_; }
  [[nodiscard]] size_t walking_begin() const { return walking_begin_; }
  [[nodiscard]] size_t summing_begin() const { return summing_begin_; }
  /// Of the options' elements the first lane alone. Kernels that are called read whole blocks.
  [[nodiscard]] bool reads_elements() const { return !calls_kernels_ && !options_.elements.empty(); }
  /// Constants are read from their registers then, elsewhere from behind the code.
  [[nodiscard]] bool calls_kernels() const { return calls_kernels_; }

 private:
  using Vector = Xbyak::Xmm;  // of either width

  /// Where a program register's value is, at this point of the code.
  struct Place {
    int group = -1;          ///< number of its group of vector registers; -1: none
    int slot = -1;           ///< in the frame
    bool in_memory = false;  ///< its slot is written, or it is an input or constant
  };

  enum class Form : uint8_t { kPlain, kStreaming, kWalking, kSumming };

  void choose_width();
  void choose_carried();
  void write_function(Form form);
  void write_other_forms();
  void reset_places(int first_slot);
  void write_prologue();
  void write_pointers();
  void write_epilogue();
  size_t write_rows_form(Form form);
  [[nodiscard]] bool can_walk() const;
  [[nodiscard]] bool can_sum() const;
  void choose_width_beside_sums();
  [[nodiscard]] int sum_register() const;
  [[nodiscard]] int held_register() const;
  void write_rows();
  void write_row();
  void write_whole_blocks(int64_t lanes);
  void write_part(int lanes);
  void write_summed_row();
  void write_last_summed_lane();
  void move_pointers();
  [[nodiscard]] std::vector<uint16_t> walked() const;
  void write_total();
  void clear_sum();
  void add_to_sum(int v, const Vector& value);
  void widen_held(const Vector& held, int half);
  Vector masked_rest(int lane, const Vector& value);
  void write_block();
  void load_carried();
  void copy_carried();
  void store_carried();
  void write_strips(size_t begin, size_t end);
  void write_steps(size_t begin, size_t end);
  void write_step(size_t number);
  void order_steps(const std::vector<TileStep>& steps);
  [[nodiscard]] std::span<const uint16_t> operands_of(size_t number) const;
  [[nodiscard]] size_t chain_begin(size_t called, size_t least) const;
  void write_call(size_t begin, size_t number);
  void write_kernel_call(size_t number);
  void prefetch();

  // Values.
  [[nodiscard]] LaneForm form(uint16_t reg) const { return lane_form(program_.registers[reg]); }
  [[nodiscard]] bool is_element(uint16_t reg) const;
  [[nodiscard]] bool is_walked(uint16_t reg) const;
  [[nodiscard]] size_t next_use(uint16_t reg, size_t after) const;
  [[nodiscard]] bool is_kept(uint16_t reg, size_t after) const;
  int take_group();
  void make_room(size_t number);
  void load_group(uint16_t reg);
  void spill(uint16_t reg);
  void leave_registers(size_t from);
  int take_slot(int64_t element_bytes);
  void release(uint16_t reg, size_t number);
  void store_result(uint16_t reg, int v, const Vector& value);

  // Instructions.
  [[nodiscard]] Vector vector(int number) const;
  [[nodiscard]] Vector vector_of(int group, int v) const { return vector(kTemporaries + group * vectors_ + v); }
  void choose_pointers();
  Xbyak::Reg64 pointer(uint16_t reg);
  void write_lane_address(uint16_t reg);
  Xbyak::Address address(uint16_t reg, int v);
  Xbyak::Address slot_address(uint16_t reg, int v);
  Xbyak::Address constant(uint32_t bits);
  Xbyak::Address constant(const std::vector<uint32_t>& by_lane);
  void load(const Vector& to, uint16_t reg, int v);
  void load(const Vector& to, LaneForm form, const Xbyak::Address& from);
  void store(const Xbyak::Address& to, LaneForm form, const Vector& value);
  void swap_operands();
  Vector operand(size_t k, int v, int temporary);
  template <class Use>
  void with_operand(size_t k, int v, int temporary, const Use& use);
  template <class Write>
  void unary(int v, const Write& write);
  template <class Write>
  void binary(int v, const Write& write);
  void write_vector(const TileStep& step, const Vector& to, int v);
  void write_float(const TileStep& step, const Vector& to, int v);
  void write_integer(const TileStep& step, const Vector& to, int v);
  void write_compare(const TileStep& step, const Vector& to, int v);
  void write_integer_compare(const TileStep& step, const Vector& to, int v);
  void write_extreme(bool is_maximum, const Vector& to, const Vector& a, size_t b, int v);
  void write_select(const Vector& to, int v);
  void write_multiply_add(bool is_negated, const Vector& to, int v);
  void write_multiply_high(bool is_signed, const Vector& to, int v);
  void write_bound(bool is_lower, const Vector& to, int v);
  void write_choose_negative(const Vector& to, int v);
  /// Lanes of a vector that come from one vector of an operand.
  struct MovedLanes {
    std::vector<uint32_t> from;  ///< by lane of the vector; those without a bit of the mask are not read
    uint32_t mask = 0;
    bool is_in_place = true;
  };
  [[nodiscard]] MovedLanes lanes_from(const TilePermute& permute, int first, int count, int s) const;
  void write_permute(const Vector& to, int v);
  void write_permute(const Vector& to, const std::vector<uint32_t>& from, const Vector& of);
  void write_fold(const Vector& to, int v);
  void write_item(const TilePermute& item);
  void write_blend(const Vector& to, const Vector& other, uint32_t mask);
  void write_row_address(size_t first_index, int v, Xbyak::Label* skipped);
  void write_row_read(const Vector& to, int v);
  void write_row_write(int v);
  void store_row(int v, Xbyak::Label* skipped);
  [[nodiscard]] const TileRow& row() const;
  void write_mask(int lanes);
  void write_mask_vector(int64_t lanes);
  template <class ByVector, class ByNumber>
  void shift(int v, const ByVector& by_vector, const ByNumber& by_number);
  void write_flag(const Vector& to, const Vector& value, const Xbyak::Operand& limit, uint8_t predicate);
  void choose_where(const Vector& to, const Vector& no, const Vector& yes, const Vector& a, const Xbyak::Operand& b,
                    uint8_t predicate);
  void round_to_half(StepKind kind, const Vector& value, bool is_only_stored);

  static constexpr int kTemporaries = 4;
  static constexpr size_t kNever = std::numeric_limits<size_t>::max();

  const int own_registers_;  ///< of the program that was given: only these have memory
  const ExpandedProgram expanded_;
  const TileProgram& program_;  ///< with recipes as steps
  const TileCode::Options options_;
  const bool is_wide_;   ///< vectors of 64 bytes
  const int lanes_;      ///< of a vector
  int vectors_ = 1;      ///< of a strip
  int block_lanes_ = 0;  ///< of the block that is written
  int groups_ = 1;
  int most_alive_ = 0;  ///< values at once
  /// Values that go from one repetition to the next in vector registers: there they are when one begins.
  struct Carried {
    uint16_t input = 0;
    uint16_t output = 0;
    int group = -1;
  };
  std::vector<Carried> carried_;
  bool calls_kernels_ = false;
  Form form_ = Form::kPlain;  ///< that is being written
  bool fits_frame_ = true;
  size_t streaming_begin_ = 0;
  size_t walking_begin_ = 0;
  size_t summing_begin_ = 0;
  bool is_rest_ = false;  ///< the block that is written has lanes that are summed already
  // In the order in which they are written.
  std::vector<TileInstruction> instructions_;
  std::vector<TileStep> steps_;
  std::vector<std::vector<size_t>> uses_;         ///< by register, ascending
  std::vector<size_t> next_call_;                 ///< by instruction: the first call from it on
  std::vector<char> is_output_;                   ///< by register: computed and an output
  std::vector<const TileConstant*> constant_of_;  ///< by register
  std::vector<int> pointers_;                     ///< by register: the general register that has its address, or -1
  bool has_table_ = false;                        ///< rbx has the table of addresses
  std::vector<Place> places_;
  std::vector<int> group_owner_;                     ///< register, or -1
  std::vector<char> is_pinned_;                      ///< by group: used by the step that is being written
  std::vector<std::pair<int64_t, int>> free_slots_;  ///< bytes of an element, place in the frame
  int frame_used_ = 0;
  int first_lane_ = 0;    ///< of the strip, in its block
  int first_vector_ = 0;  ///< those of the strip that are being written
  int end_vector_ = 1;
  size_t now_ = 0;                  ///< the step that is being written
  std::vector<uint16_t> operands_;  ///< of the step that is being written
  std::vector<int> operand_groups_;
  std::map<uint32_t, Xbyak::Label> constants_;
  std::map<std::vector<uint32_t>, Xbyak::Label> vector_constants_;
};

}  // namespace meshd::kernels

#endif
