// The generator's form that sums the lanes of a program's output, row by row: the additions of FloatSum
// (fold_segment.h), in place of stores. With AVX2; on processors with AVX-512 results pass through the cache.
//
// A block of 64 lanes is four rows of 16: each is added to `held`, 16 floats, and what the fourth leaves there is
// widened and added to 16 doubles. Both are in vector registers, so that only programs of few values have this form.
// The last block of a row of lanes begins earlier where the row ends within a block; its lanes that are summed already
// become -0.
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
constexpr int kLastSummed = 96;
constexpr int kFirstSlotBehind = 128;
// Vector registers.
constexpr int kSumRegister = 12;   // four
constexpr int kHeldRegister = 10;  // two
constexpr int kGroupsBeside = 3;
constexpr int kVectorsBeside = 2;  // of a group
constexpr int kRowLanes = 16;
constexpr int kLanesOfVector = 8;
constexpr int kBlockMask = static_cast<int>(kBlockLanes) - 1;
constexpr uint32_t kNegativeZero = 0x80000000U;
constexpr uint32_t kNan = 0x7FF80000U;  // the upper half of the double

}  // namespace

// Calls lose all vector registers, and values that are spilled for the sums gain nothing.
bool TileGenerator::can_sum() const {
  const bool calls = next_call_[0] != kNever;
  if (!options_.sums || is_wide_ || calls || expanded_.is_deep || most_alive_ > kGroupsBeside) return false;
  return options_.elements.size() <= kMostSummedElements &&
         std::all_of(options_.elements.begin(), options_.elements.end(),
                     [&](uint16_t reg) { return uses_[reg].empty() || pointers_[reg] >= 0; });
}

void TileGenerator::write_summing_form() {
  if (!can_sum() || !fits_frame_) return;
  vectors_ = kVectorsBeside;  // it is the last form
  groups_ = kGroupsBeside;
  align(kLineBytes);
  summing_begin_ = getSize();
  form_ = Form::kSumming;
  reset_places(kFirstSlotBehind);
  write_summed_rows();
  if (fits_frame_) return;
  fits_frame_ = true;  // as of the other forms
  summing_begin_ = 0;
}

void TileGenerator::write_summed_rows() {
  write_prologue();
  mov(ptr[rsp + kRows], rsi);
  mov(rax, ptr[rsi + offsetof(SummedRows, count)]);
  mov(ptr[rsp + kRowsLeft], rax);
  mov(rax, ptr[rsi + offsetof(SummedRows, totals)]);
  mov(ptr[rsp + kTotals], rax);
  mov(rcx, ptr[rsi + offsetof(SummedRows, lanes)]);
  and_(ecx, kBlockMask);
  mov(eax, kBlockMask);
  sub(eax, ecx);
  vmovd(Xbyak::Xmm(0), eax);
  vpbroadcastd(vector(0), Xbyak::Xmm(0));
  vmovups(ptr[rsp + kLastSummed], vector(0));
  xor_(r12d, r12d);
  write_pointers();

  Xbyak::Label row;
  Xbyak::Label block;
  Xbyak::Label is_whole;
  L(row);
  clear_sum();
  mov(rax, ptr[rsp + kRows]);
  mov(rax, ptr[rax + offsetof(SummedRows, lanes)]);
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
  mov(rax, ptr[rax + offsetof(SummedRows, lanes)]);
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
  if (!options_.elements.empty()) {
    mov(rax, ptr[rsp + kRows]);
    mov(rax, ptr[rax + offsetof(SummedRows, strides)]);
  }
  for (size_t k = 0; k < options_.elements.size(); ++k) {
    const int pointer = pointers_[options_.elements[k]];
    if (pointer >= 0) add(Xbyak::Reg64(pointer), ptr[rax + k * sizeof(int64_t)]);
  }
  dec(qword[rsp + kRowsLeft]);
  jnz(row, T_NEAR);
  write_epilogue();
}

/// x + -0 is x.
void TileGenerator::clear_sum() {
  vmovups(vector(kSumRegister), constant({0, kNegativeZero, 0, kNegativeZero, 0, kNegativeZero, 0, kNegativeZero}));
  for (int k = 1; k < 4; ++k) vmovaps(vector(kSumRegister + k), vector(kSumRegister));
}

/// Lanes from `lane` of the last block on, those before the rest as -0. Writes vectors 1 and 2.
TileGenerator::Vector TileGenerator::masked_rest(int lane, const Vector& value) {
  std::vector<uint32_t> lanes;
  for (int i = 0; i < kLanesOfVector; ++i) lanes.push_back(static_cast<uint32_t>(lane + i));
  const Vector masked = vector(1);
  vmovups(masked, constant(lanes));
  vpcmpgtd(masked, masked, ptr[rsp + kLastSummed]);
  vmovups(vector(2), constant(kNegativeZero));
  vblendvps(masked, vector(2), value, masked);
  return masked;
}

void TileGenerator::add_to_sum(int v, const Vector& value) {
  const int lane = first_lane_ + v * kLanesOfVector;
  const int row = lane / kRowLanes;
  const int half = lane % kRowLanes / kLanesOfVector;
  const Vector held = vector(kHeldRegister + half);
  const Vector values = is_rest_ ? masked_rest(lane, value) : value;
  if (row == 0) return vmovaps(held, values);
  vaddps(held, held, values);
  if (row < 3) return;
  const Vector wide = vector(1);
  const Xbyak::Xmm low(held.getIdx());
  for (int part = 0; part < 2; ++part) {
    const Vector sum = vector(kSumRegister + 2 * half + part);
    if (part > 0) vextractf128(low, Xbyak::Ymm(held.getIdx()), 1);
    vcvtps2pd(wide, low);
    vaddpd(sum, sum, wide);
  }
}

void TileGenerator::write_total() {
  const Vector sum = vector(0);
  const Vector other = vector(1);
  vaddpd(sum, vector(kSumRegister), vector(kSumRegister + 1));
  vaddpd(other, vector(kSumRegister + 2), vector(kSumRegister + 3));
  vaddpd(sum, sum, other);
  const Xbyak::Xmm low(sum.getIdx());
  const Xbyak::Xmm high(other.getIdx());
  vextractf128(high, Xbyak::Ymm(sum.getIdx()), 1);
  vaddpd(low, low, high);
  vunpckhpd(high, low, low);
  vaddsd(low, low, high);
  vcmpunordpd(high, low, low);
  vmovups(vector(2), constant({0, kNan, 0, kNan, 0, kNan, 0, kNan}));
  vblendvpd(low, low, Xbyak::Xmm(2), high);
  mov(rax, ptr[rsp + kTotals]);
  vmovsd(ptr[rax], low);
  add(rax, static_cast<int>(sizeof(double)));
  mov(ptr[rsp + kTotals], rax);
}

}  // namespace meshd::kernels

#endif
