// The generator's steps of programs of one block (while_code.h): what a repetition passes on to the next, permutes,
// folds, and rows of arrays.
#include "service/kernels/tile/tile_generator.h"

#if defined(__x86_64__)

#include <algorithm>
#include <utility>
#include <vector>

namespace meshd::kernels {

// --- from one repetition to the next ---

void TileGenerator::load_carried() {
  for (Carried& carried : carried_) {
    load_group(carried.input);
    places_[carried.input].in_memory = false;  // but for the first repetition
    carried.group = places_[carried.input].group;
  }
}

/// A parallel copy: a group is written when what it had has been read, and of groups that wait for each other in a
/// circle one is spilled.
void TileGenerator::copy_carried() {
  std::vector<Carried> waiting;
  for (const Carried& carried : carried_) {
    if (places_[carried.output].group != carried.group) waiting.push_back(carried);
  }
  while (!waiting.empty()) {
    const auto is_free = [&](const Carried& wanted) {
      return std::none_of(waiting.begin(), waiting.end(), [&](const Carried& other) {
        return other.output != wanted.output && places_[other.output].group == wanted.group;
      });
    };
    const auto next = std::find_if(waiting.begin(), waiting.end(), is_free);
    if (next == waiting.end()) {
      const uint16_t aside = waiting.front().output;
      spill(aside);
      places_[aside].group = -1;
      continue;
    }
    const Vector to = vector_of(next->group, 0);
    if (places_[next->output].group >= 0)
      vmovaps(to, vector_of(places_[next->output].group, 0));
    else
      load(to, next->output, 0);
    waiting.erase(next);
  }
}

void TileGenerator::store_carried() {
  for (const Carried& carried : carried_)
    store(ptr[pointer(carried.output)], form(carried.output), vector_of(carried.group, 0));
}

// --- lanes that move, and rows of arrays ---

/// k1 has the first lanes.
void TileGenerator::write_mask(int lanes) {
  mov(eax, (1U << lanes) - 1);
  kmovw(k1, eax);
}

/// Vector 0 has them: AVX2's masks.
void TileGenerator::write_mask_vector(int64_t lanes) {
  std::vector<uint32_t> mask(static_cast<size_t>(lanes_), 0);
  std::fill(mask.begin(), mask.begin() + lanes, ~0U);
  vmovups(vector(0), constant(mask));
}

/// Of the permute's lanes [first, first + count), less than a vector's or all of them, those from the operand's vector
/// s.
TileGenerator::MovedLanes TileGenerator::lanes_from(const TilePermute& permute, int first, int count, int s) const {
  MovedLanes moved;
  for (int lane = 0; lane < lanes_; ++lane) {
    moved.from.push_back(static_cast<uint32_t>(lane));
    const auto at = static_cast<size_t>(first + lane);
    if (lane >= count || !permute.has(at) || permute.from[at] / lanes_ != s) continue;
    moved.from.back() = static_cast<uint32_t>(permute.from[at] % lanes_);
    moved.mask |= 1U << lane;
    moved.is_in_place = moved.is_in_place && moved.from.back() == static_cast<uint32_t>(lane);
  }
  return moved;
}

/// The result has none of the operands' vectors: each is read for several of the result's.
void TileGenerator::write_permute(const Vector& to, int v) {
  const TilePermute& permute = program_.permutes[static_cast<size_t>(instructions_[now_].permute)];
  const size_t last = operands_.size() - 1;
  bool is_begun = last > 0;
  if (is_begun) vmovaps(to, operand(0, v, 3));
  for (int s = 0; s < vectors_; ++s) {
    const MovedLanes lanes = lanes_from(permute, v * lanes_, lanes_, s);
    if (lanes.mask == 0) continue;
    Vector moved = operand(last, s, 2);
    if (!lanes.is_in_place) {
      write_permute(vector(1), lanes.from, moved);
      moved = vector(1);
    }
    if (!is_begun || lanes.mask == (1U << lanes_) - 1)
      vmovaps(to, moved);
    else
      write_blend(to, moved, lanes.mask);
    is_begun = true;
  }
}

/// Lane l becomes lane from[l] of `of`. Writes vector 0.
void TileGenerator::write_permute(const Vector& to, const std::vector<uint32_t>& from, const Vector& of) {
  vmovups(vector(0), constant(from));
  if (is_wide_)
    vpermps(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(0), of);
  else
    vpermps(Xbyak::Ymm(to.getIdx()), Xbyak::Ymm(0), of);
}

/// Half a vector of floats is a vector of doubles; all results are in the first vector, and what the others have is not
/// read, but where there is one result it is on all lanes.
void TileGenerator::write_fold(const Vector& to, int v) {
  if (v > first_vector_) return vmovaps(to, vector(to.getIdx() - (v - first_vector_)));
  const TileFold& fold = program_.folds[static_cast<size_t>(instructions_[now_].fold)];
  const auto half = [&](int number) { return is_wide_ ? Xbyak::Xmm(Xbyak::Ymm(number)) : Xbyak::Xmm(number); };
  const Vector sum = vector(2);
  const auto combine = [&](Vector a, Vector b, bool is_swapped) {
    if (is_swapped) std::swap(a, b);
    fold.multiplies ? vmulpd(sum, a, b) : vaddpd(sum, a, b);
  };
  for (size_t i = 0; i < fold.items.size(); ++i) {
    write_item(fold.items[i]);
    vcvtps2pd(i == 0 ? sum : vector(1), half(1));
    if (i > 0) combine(sum, vector(1), fold.item_first[i]);
  }
  vcvtps2pd(vector(1), half(operand(1, v, 3).getIdx()));
  combine(vector(1), sum, fold.item_first[0]);
  if (is_wide_)
    vcvtpd2ps(Xbyak::Ymm(to.getIdx()), sum);
  else
    vcvtpd2ps(Xbyak::Xmm(to.getIdx()), sum);
  if (fold.results == 1) vbroadcastss(to, Xbyak::Xmm(to.getIdx()));
}

/// Half of vector 1 becomes the values of an item, from wherever they are in operand 0. Writes vectors 0 and 3.
void TileGenerator::write_item(const TilePermute& item) {
  bool is_begun = false;
  for (int s = 0; s < vectors_; ++s) {
    const MovedLanes lanes = lanes_from(item, 0, lanes_ / 2, s);
    if (lanes.mask == 0) continue;
    const Vector moved = is_begun ? vector(3) : vector(1);
    write_permute(moved, lanes.from, operand(0, s, 3));
    if (is_begun) write_blend(vector(1), moved, lanes.mask);
    is_begun = true;
  }
}

/// Lanes of the mask come from `other`.
void TileGenerator::write_blend(const Vector& to, const Vector& other, uint32_t mask) {
  if (!is_wide_) return vblendps(to, to, other, static_cast<uint8_t>(mask));
  mov(eax, mask);
  kmovw(k1, eax);
  vblendmps(to | k1, to, other);
}

const TileRow& TileGenerator::row() const { return program_.rows[static_cast<size_t>(instructions_[now_].row)]; }

/// rdx becomes the address of the row; out of bounds the code goes on at `skipped`, null: indices are clamped. Indices
/// are operands from `first_index` on, each one number on all lanes.
void TileGenerator::write_row_address(size_t first_index, int v, Xbyak::Label* skipped) {
  const TileRow& row = this->row();
  mov(rdx, pointer(row.array));
  for (size_t i = 0; i < row.indices.size(); ++i) {
    const size_t k = first_index + i;
    const bool is_signed = program_.registers[operands_[k]] == tensor::DType::kInt32;
    if (operand_groups_[k] >= 0)
      vmovd(eax, Xbyak::Xmm(vector_of(operand_groups_[k], v).getIdx()));
    else
      mov(eax, address(operands_[k], v));
    if (is_signed && skipped == nullptr) {
      xor_(ecx, ecx);
      test(eax, eax);
      cmovs(eax, ecx);
    }
    mov(ecx, static_cast<uint32_t>(row.indices[i].most));
    cmp(eax, ecx);
    if (skipped != nullptr)
      ja(*skipped, T_NEAR);  // as would a negative number be
    else
      cmova(eax, ecx);
    imul(rax, rax, static_cast<int>(row.indices[i].stride));
    add(rdx, rax);
  }
}

/// Lanes behind the row's are 0; of a row of one element all lanes are it.
void TileGenerator::write_row_read(const Vector& to, int v) {
  const TileRow& row = this->row();
  const LaneForm form = this->form(instructions_[now_].result);
  const int64_t bytes = tensor::size_bytes(program_.registers[instructions_[now_].result]);
  if (v == first_vector_) write_row_address(0, v, nullptr);
  if (row.lanes == 1) {
    if (form == LaneForm::kWord) return vbroadcastss(to, ptr[rdx]);
    form == LaneForm::kByte ? movzx(eax, byte[rdx]) : movzx(eax, word[rdx]);
    if (form == LaneForm::kHalf) shl(eax, 16);
    vmovd(Xbyak::Xmm(0), eax);
    return vpbroadcastd(to, Xbyak::Xmm(0));
  }
  const int first = first_lane_ + v * lanes_;
  const int64_t left = row.lanes - first;
  const Xbyak::Address from = ptr[rdx + static_cast<int>(first * bytes)];
  if (left <= 0) return vxorps(to, to, to);
  if (left >= lanes_) return load(to, form, from);
  if (!is_wide_) {
    write_mask_vector(left);
    return vmaskmovps(to, vector(0), from);
  }
  write_mask(static_cast<int>(left));
  load(to | k1 | T_z, form, from);
}

/// As many lanes as the row has, and no others.
void TileGenerator::write_row_write(int v) {
  const TileRow& row = this->row();
  if (!row.skips) return store_row(v, nullptr);
  Xbyak::Label skipped;
  store_row(v, &skipped);
  L(skipped);
}

void TileGenerator::store_row(int v, Xbyak::Label* skipped) {
  const TileRow& row = this->row();
  const LaneForm form = this->form(operands_[0]);
  const int64_t bytes = tensor::size_bytes(program_.registers[operands_[0]]);
  if (v == first_vector_ || skipped != nullptr) write_row_address(1, v, skipped);
  const int first = first_lane_ + v * lanes_;
  const int64_t left = row.lanes - first;
  if (left <= 0) return;
  const Vector value = operand(0, v, 3);
  if (row.lanes == 1) {
    const Xbyak::Xmm element(value.getIdx());
    if (form == LaneForm::kWord) return vmovss(ptr[rdx], element);
    vmovd(eax, element);
    if (form == LaneForm::kByte) return mov(byte[rdx], al);
    shr(eax, 16);
    return mov(word[rdx], ax);
  }
  const Xbyak::Address to = ptr[rdx + static_cast<int>(first * bytes)];
  if (left >= lanes_) return store(to, form, value);
  if (!is_wide_) {
    write_mask_vector(left);
    return vmaskmovps(to, vector(0), value);
  }
  write_mask(static_cast<int>(left));
  store(to | k1, form, value);
}

}  // namespace meshd::kernels

#endif
