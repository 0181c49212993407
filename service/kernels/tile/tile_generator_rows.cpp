// The generator's forms that go from row to row: pointers of elements, and of inputs and outputs that have rows apart,
// move with each. Where a row ends within a vector, its last vector begins earlier.
//
// One of them sums the lanes of a program's output, row by row: the additions of FloatSum (fold_segment.h), in place of
// stores. A block of 64 lanes is four rows of 16: each is added to `held`, 16 floats, and what the fourth leaves there
// is widened and added to 16 doubles. Both are in vector registers, so that only programs of few values have this form.
// In the last block of a row of lanes, those that are summed already become -0. Of rows shorter than a block each 16
// are widened.
#include "service/kernels/tile/tile_generator.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstddef>

#include "service/kernels/elementwise/lanes/lane_loop.h"

namespace meshd::kernels {
namespace {

// The frame: the last lane of whole blocks, rows that are left, the caller's rows, where totals go; 63 less the lanes
// of the rest, on all lanes.
constexpr int kLastLane = 40;
constexpr int kRowsLeft = 48;
constexpr int kRows = 64;
constexpr int kTotals = 72;
constexpr int kLastSummed = 128;
constexpr int kFirstSlotBehind = 192;
// Vector registers beside sums, by width: those for steps end where the sums begin.
constexpr int kGroupsBeside = 3;
constexpr int kVectorsBeside = 2;  // of a group
constexpr int kHeld = 10;          // two, four sums behind them
constexpr int kHeldWide = 28;      // one, two sums behind it
constexpr int kRowLanes = 16;
constexpr int kLanesOfVector = 8;
constexpr int kBlockMask = static_cast<int>(kBlockLanes) - 1;
constexpr uint32_t kNegativeZero = 0x80000000U;
constexpr uint32_t kNan = 0x7FF80000U;  // the upper half of the double

}  // namespace

std::vector<uint16_t> TileGenerator::walked() const {
  std::vector<uint16_t> walked(options_.elements.begin(), options_.elements.end());
  walked.insert(walked.end(), options_.row_inputs.begin(), options_.row_inputs.end());
  walked.insert(walked.end(), options_.row_outputs.begin(), options_.row_outputs.end());
  return walked;
}

/// Whether all that moves has a pointer of its own. Kernels that are called read whole blocks.
bool TileGenerator::can_walk() const {
  const std::vector<uint16_t> walked = this->walked();
  return !calls_kernels_ && walked.size() <= kMostWalked &&
         std::all_of(walked.begin(), walked.end(),
                     [&](uint16_t reg) { return pointers_[reg] >= 0 || (uses_[reg].empty() && is_output_[reg] == 0); });
}

// Calls lose all vector registers, and values that are spilled for the sums gain nothing.
bool TileGenerator::can_sum() const {
  if (next_call_[0] != kNever) return false;
  if (is_wide_) return 2 * (most_alive_ + 1) <= kHeldWide - kTemporaries;
  return !expanded_.is_deep && most_alive_ <= kGroupsBeside;
}

void TileGenerator::choose_width_beside_sums() {
  vectors_ = kVectorsBeside;
  groups_ = kGroupsBeside;
  if (is_wide_) {
    const int registers = kHeldWide - kTemporaries;
    if (4 * (most_alive_ + 1) <= registers) vectors_ = 4;
    groups_ = registers / vectors_;
  }
  block_lanes_ = static_cast<int>(kBlockLanes);
  if (options_.sums >= kBlockLanes) return;
  block_lanes_ = static_cast<int>(options_.sums);
  while (block_lanes_ % (vectors_ * lanes_) != 0) --vectors_;
}

int TileGenerator::held_register() const { return is_wide_ ? kHeldWide : kHeld; }
int TileGenerator::sum_register() const { return is_wide_ ? kHeldWide + 1 : kHeld + 2; }

/// Where it begins; 0: the frame is too small for it.
size_t TileGenerator::write_rows_form(Form form) {
  if (!fits_frame_) return 0;
  align(kLineBytes);
  const size_t begin = getSize();
  form_ = form;
  reset_places(kFirstSlotBehind);
  write_rows();
  if (fits_frame_) return begin;
  fits_frame_ = true;  // as of the other forms
  return 0;
}

void TileGenerator::write_rows() {
  const bool sums = form_ == Form::kSumming;
  write_prologue();
  mov(ptr[rsp + kRows], rsi);
  mov(rax, ptr[rsi + offsetof(CodeRows, count)]);
  mov(ptr[rsp + kRowsLeft], rax);
  mov(r12, ptr[rsi + offsetof(CodeRows, begin)]);
  if (sums) write_last_summed_lane();
  write_pointers();
  Xbyak::Label row;
  align(32);
  L(row);
  if (sums)
    write_summed_row();
  else
    write_row();
  move_pointers();
  dec(qword[rsp + kRowsLeft]);
  jnz(row, T_NEAR);
  write_epilogue();
}

/// Whole blocks, then as many whole vectors as there are, and a vector that ends with the row.
void TileGenerator::write_row() {
  const int vectors = vectors_;
  const int groups = groups_;
  const auto rest = static_cast<int>(options_.row_lanes % kBlockLanes);
  const int behind = rest % lanes_;
  write_whole_blocks(options_.row_lanes - rest);
  if (rest >= lanes_) write_part(rest - behind);
  if (behind > 0) {
    sub(r12, lanes_ - behind);
    write_part(lanes_);
  }
  block_lanes_ = static_cast<int>(kBlockLanes);
  vectors_ = vectors;
  groups_ = groups;
}

void TileGenerator::write_whole_blocks(int64_t lanes) {
  if (lanes == 0) return;
  Xbyak::Label block;
  if (lanes > kBlockLanes) {
    lea(rax, ptr[r12 + static_cast<int>(lanes)]);
    mov(ptr[rsp + kLastLane], rax);
    align(32);
    L(block);
  }
  write_block();
  add(r12, static_cast<int>(kBlockLanes));
  if (lanes == kBlockLanes) return;
  cmp(r12, ptr[rsp + kLastLane]);
  jl(block, T_NEAR);
}

/// A block of so many lanes, whole vectors.
void TileGenerator::write_part(int lanes) {
  const int registers = groups_ * vectors_;
  while (lanes % (vectors_ * lanes_) != 0) --vectors_;
  groups_ = registers / vectors_;
  block_lanes_ = lanes;
  reset_places(kFirstSlotBehind);
  write_block();
  add(r12, lanes);
}

/// From rsi on.
void TileGenerator::write_last_summed_lane() {
  mov(rax, ptr[rsi + offsetof(CodeRows, totals)]);
  mov(ptr[rsp + kTotals], rax);
  mov(rcx, ptr[rsi + offsetof(CodeRows, lanes)]);
  and_(ecx, kBlockMask);
  mov(eax, kBlockMask);
  sub(eax, ecx);
  vmovd(Xbyak::Xmm(0), eax);
  vpbroadcastd(vector(0), Xbyak::Xmm(0));
  vmovups(ptr[rsp + kLastSummed], vector(0));
}

/// What is behind whole blocks is the last block of the row, which begins earlier. A row that is shorter than a block
/// is summed in double alone.
void TileGenerator::write_summed_row() {
  clear_sum();
  if (options_.sums < kBlockLanes) {
    reset_places(kFirstSlotBehind);
    write_block();
    add(r12, block_lanes_);
    return write_total();
  }
  Xbyak::Label block;
  Xbyak::Label is_whole;
  mov(rax, ptr[rsp + kRows]);
  mov(rax, ptr[rax + offsetof(CodeRows, lanes)]);
  and_(rax, ~kBlockMask);
  add(rax, r12);
  mov(ptr[rsp + kLastLane], rax);
  align(32);
  L(block);
  write_block();
  add(r12, static_cast<int>(kBlockLanes));
  cmp(r12, ptr[rsp + kLastLane]);
  jl(block, T_NEAR);
  mov(rax, ptr[rsp + kRows]);
  mov(rax, ptr[rax + offsetof(CodeRows, lanes)]);
  and_(eax, kBlockMask);
  jz(is_whole, T_NEAR);
  lea(r12, ptr[r12 + rax - static_cast<int>(kBlockLanes)]);
  reset_places(kFirstSlotBehind);
  is_rest_ = true;
  write_block();
  is_rest_ = false;
  add(r12, static_cast<int>(kBlockLanes));
  L(is_whole);
  write_total();
}

void TileGenerator::move_pointers() {
  const std::vector<uint16_t> walked = this->walked();
  if (walked.empty()) return;
  mov(rax, ptr[rsp + kRows]);
  mov(rax, ptr[rax + offsetof(CodeRows, strides)]);
  for (size_t k = 0; k < walked.size(); ++k) {
    const int pointer = pointers_[walked[k]];
    if (pointer >= 0) add(Xbyak::Reg64(pointer), ptr[rax + k * sizeof(int64_t)]);
  }
}

/// x + -0 is x.
void TileGenerator::clear_sum() {
  std::vector<uint32_t> zeros;
  for (int lane = 0; lane < lanes_ / 2; ++lane) zeros.insert(zeros.end(), {0, kNegativeZero});
  const Vector first = vector(sum_register());
  vmovups(first, constant(zeros));
  for (int k = 1; k < (is_wide_ ? 2 : 4); ++k) vmovaps(vector(sum_register() + k), first);
}

/// Lanes from `lane` of the last block on, those before the rest as -0. Writes vectors 1 and 2.
TileGenerator::Vector TileGenerator::masked_rest(int lane, const Vector& value) {
  std::vector<uint32_t> lanes;
  for (int i = 0; i < lanes_; ++i) lanes.push_back(static_cast<uint32_t>(lane + i));
  const Vector masked = vector(1);
  vmovups(masked, constant(lanes));
  if (is_wide_) {
    vpcmpgtd(k1, masked, ptr[rsp + kLastSummed]);
    vmovups(masked, constant(kNegativeZero));
    vmovaps(masked | k1, value);
    return masked;
  }
  vpcmpgtd(masked, masked, ptr[rsp + kLastSummed]);
  vmovups(vector(2), constant(kNegativeZero));
  vblendvps(masked, vector(2), value, masked);
  return masked;
}

void TileGenerator::add_to_sum(int v, const Vector& value) {
  const int lane = first_lane_ + v * lanes_;
  const int row = lane / kRowLanes;
  const int half = lane % kRowLanes / kLanesOfVector;  // 0 where a vector has both
  const Vector held = vector(held_register() + half);
  const Vector values = is_rest_ ? masked_rest(lane, value) : value;
  const bool is_short = options_.sums < kBlockLanes;
  if (row == 0 || is_short)
    vmovaps(held, values);
  else
    vaddps(held, held, values);
  if (row == 3 || is_short) widen_held(held, half);
}

/// Each half of the vector becomes a vector of doubles, which is added to its sum. Writes vector 1.
void TileGenerator::widen_held(const Vector& held, int half) {
  const Vector wide = vector(1);
  for (int part = 0; part < 2; ++part) {
    const Vector sum = vector(sum_register() + 2 * half + part);
    if (is_wide_) {
      const Xbyak::Ymm low(held.getIdx());
      if (part > 0) vextractf64x4(low, Xbyak::Zmm(held.getIdx()), 1);
      vcvtps2pd(wide, low);
    } else {
      const Xbyak::Xmm low(held.getIdx());
      if (part > 0) vextractf128(low, Xbyak::Ymm(held.getIdx()), 1);
      vcvtps2pd(wide, low);
    }
    vaddpd(sum, sum, wide);
  }
}

void TileGenerator::write_total() {
  const Xbyak::Ymm sum(0);
  const Xbyak::Ymm other(1);
  const int first = sum_register();
  if (is_wide_) {
    // Of each vector the quarters that AVX2 has in two.
    vextractf64x4(sum, Xbyak::Zmm(first), 1);
    vaddpd(sum, Xbyak::Ymm(first), sum);
    vextractf64x4(other, Xbyak::Zmm(first + 1), 1);
    vaddpd(other, Xbyak::Ymm(first + 1), other);
  } else {
    vaddpd(sum, Xbyak::Ymm(first), Xbyak::Ymm(first + 1));
    vaddpd(other, Xbyak::Ymm(first + 2), Xbyak::Ymm(first + 3));
  }
  vaddpd(sum, sum, other);
  const Xbyak::Xmm low(sum.getIdx());
  const Xbyak::Xmm high(other.getIdx());
  vextractf128(high, sum, 1);
  vaddpd(low, low, high);
  vunpckhpd(high, low, low);
  vaddsd(low, low, high);
  vcmpunordpd(high, low, low);
  vmovups(Xbyak::Xmm(2), constant({0, kNan, 0, kNan}));
  vblendvpd(low, low, Xbyak::Xmm(2), high);
  mov(rax, ptr[rsp + kTotals]);
  vmovsd(ptr[rax], low);
  add(rax, static_cast<int>(sizeof(double)));
  mov(ptr[rsp + kTotals], rax);
}

}  // namespace meshd::kernels

#endif
