#include "service/kernels/elementwise/random_bits.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "service/core/checked_math.h"

namespace meshd::kernels {

/// A 128-bit counter as Philox has it.
struct RandomCounter {
  uint64_t low = 0;
  uint64_t high = 0;

  [[nodiscard]] RandomCounter plus(uint64_t more) const {
    const uint64_t sum = low + more;
    return {sum, sum < low ? high + 1 : high};
  }
};

namespace {

uint32_t rotate_left(uint32_t value, int by) { return value << by | value >> (32 - by); }
uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
uint64_t joined(uint32_t low_word, uint32_t high_word) { return uint64_t{high_word} << 32 | low_word; }

/// The state of two words has its counter in the low number; the high one is the key.
RandomCounter philox_counter(const uint64_t* state, int words) {
  return words >= 3 ? RandomCounter{state[1], state[2]} : RandomCounter{state[1], state[0]};
}

RandomCounter start_of(RandomAlgorithm algorithm, const uint64_t* state, int words) {
  return algorithm == RandomAlgorithm::kPhilox ? philox_counter(state, words) : RandomCounter{state[1], 0};
}

}  // namespace

std::array<uint32_t, 2> threefry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter) {
  constexpr uint32_t kParity = 0x1BD11BDA;
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ kParity};
  uint32_t x = counter[0] + keys[0];
  uint32_t y = counter[1] + keys[1];
  for (uint32_t round = 0; round < 5; ++round) {
    for (const int rotation : kRotations[round % 2]) {
      x += y;
      y = x ^ rotate_left(y, rotation);
    }
    x += keys[(round + 1) % 3];
    y += keys[(round + 2) % 3] + round + 1;
  }
  return {x, y};
}

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter) {
  constexpr uint32_t kWeylA = 0x9E3779B9;
  constexpr uint32_t kWeylB = 0xBB67AE85;
  constexpr uint64_t kMultiplierA = 0xD2511F53;
  constexpr uint64_t kMultiplierB = 0xCD9E8D57;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t a = counter[0] * kMultiplierA;
    const uint64_t b = counter[2] * kMultiplierB;
    counter = {high(b) ^ counter[1] ^ key[0], low(b), high(a) ^ counter[3] ^ key[1], low(a)};
    key = {key[0] + kWeylA, key[1] + kWeylB};
  }
  return counter;
}

RandomBits::RandomBits(RandomAlgorithm algorithm, tensor::Dims global_dims, int bits)
    : algorithm_(algorithm), dims_(std::move(global_dims)), bits_(bits) {
  count_ = tensor::element_count(dims_);
  const int64_t per_counter = algorithm == RandomAlgorithm::kPhilox ? (bits == 64 ? 2 : 4) : (bits == 64 ? 1 : 2);
  counters_ = core::ceil_div(count_, per_counter);
  if (algorithm == RandomAlgorithm::kPhilox || bits == 64) return;
  tensor::Dims half = dims_;
  for (size_t d = 0; d < half.size() && split_dim_ < 0; ++d) {
    if (half[d] % 2 == 0) split_dim_ = static_cast<int>(d);
  }
  if (split_dim_ < 0 && !half.empty()) {
    split_dim_ = static_cast<int>(std::max_element(half.begin(), half.end()) - half.begin());
  }
  if (split_dim_ >= 0)
    half[static_cast<size_t>(split_dim_)] = core::ceil_div(half[static_cast<size_t>(split_dim_)], int64_t{2});
  counters_ = half.empty() ? 1 : tensor::element_count(half);
  half_strides_ = tensor::row_major_strides(half);
}

void RandomBits::next_state(const uint64_t* state, int words, uint64_t* next) const {
  next[0] = state[0];
  if (algorithm_ == RandomAlgorithm::kThreeFry) {
    next[1] = state[1] + static_cast<uint64_t>(counters_);
    return;
  }
  const RandomCounter counter = philox_counter(state, words).plus(static_cast<uint64_t>(counters_));
  next[1] = counter.low;
  if (words >= 3) next[2] = counter.high;
}

/// Remembers the last block of bits, since neighbours share it.
struct RandomBits::Generator {
  const RandomBits& spec;
  std::array<uint32_t, 2> key{};
  RandomCounter start{};
  int64_t at = -1;
  std::array<uint32_t, 4> words{};

  void seek(int64_t counter) {
    if (counter == at) return;
    at = counter;
    if (spec.algorithm_ == RandomAlgorithm::kThreeFry) {
      const uint64_t value = start.low + static_cast<uint64_t>(counter);
      const auto pair = threefry2x32(key, {low(value), high(value)});
      words = {pair[0], pair[1], 0, 0};
    } else {
      const RandomCounter value = start.plus(static_cast<uint64_t>(counter));
      words = philox4x32(key, {low(value.low), high(value.low), low(value.high), high(value.high)});
    }
  }

  uint64_t element(int64_t linear, const tensor::Dims& index) {
    if (spec.algorithm_ == RandomAlgorithm::kPhilox) {
      if (spec.bits_ == 64) {
        seek(linear / 2);
        return linear % 2 == 0 ? joined(words[0], words[1]) : joined(words[2], words[3]);
      }
      seek(linear / 4);
      return words[static_cast<size_t>(linear % 4)];
    }
    if (spec.bits_ == 64) {
      seek(linear);
      return joined(words[0], words[1]);
    }
    int64_t pair = 0;
    int64_t side = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      const bool split = static_cast<int>(d) == spec.split_dim_;
      pair += (split ? index[d] / 2 : index[d]) * spec.half_strides_[d];
      if (split) side = index[d] % 2;
    }
    seek(pair);
    return words[static_cast<size_t>(side)];
  }
};

void RandomBits::fill(const uint64_t* state, int words, const int64_t* starts, const tensor::Dims& block_dims,
                      std::byte* out, int64_t begin, int64_t end) const {
  Generator generator{
      .spec = *this, .key = {low(state[0]), high(state[0])}, .start = start_of(algorithm_, state, words)};
  const size_t rank = dims_.size();
  const tensor::Dims strides = tensor::row_major_strides(dims_);
  tensor::Dims index(rank);
  int64_t rest = begin;
  for (size_t d = rank; d-- > 0;) {
    index[d] = rest % block_dims[d] + (starts == nullptr ? 0 : starts[d]);
    rest /= block_dims[d];
  }
  const auto bytes = static_cast<size_t>(bits_ / 8);
  for (int64_t i = begin; i < end; ++i) {
    int64_t linear = 0;
    for (size_t d = 0; d < rank; ++d) linear += index[d] * strides[d];
    const uint64_t value = generator.element(linear, index);
    std::memcpy(out + static_cast<size_t>(i) * bytes, &value, bytes);  // little-endian: the low bits
    for (size_t d = rank; d-- > 0;) {
      const int64_t start = starts == nullptr ? 0 : starts[d];
      if (++index[d] < start + block_dims[d]) break;
      index[d] = start;
    }
  }
}

}  // namespace meshd::kernels
