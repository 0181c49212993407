// Counter-based random bits, the same as XLA's: element i of an array is a function of a key and a counter, so any
// block of the array can be made anywhere.
#pragma once

#include <array>
#include <cstdint>

#include "service/tensor/shape.h"

namespace meshd::kernels {

/// Threefry-2x32 with 20 rounds.
std::array<uint32_t, 2> threefry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter);
/// Philox-4x32 with 10 rounds.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter);

/// How the state of a generator is laid out: `words` u64 numbers, the first is the key.
enum class RandomAlgorithm : uint8_t { kThreeFry, kPhilox };

/// Random bits for an array of `global_dims`, each element `bits` wide (8, 16, 32 or 64). Immutable; any thread.
/// Philox: counter n gives elements 4n..4n+3 (32 bits) or 2n, 2n+1 (64 bits) of the row-major array. Threefry: of 64
/// bits, element n is counter n; of 32, the first even dimension (else the largest) is taken as pairs, and counter n
/// gives the pair n of the halved array. Narrow elements are the low bits of 32.
class RandomBits {
 public:
  RandomBits(RandomAlgorithm algorithm, tensor::Dims global_dims, int bits);

  /// The state after all elements of the array: `words` (2, or 3 for Philox) numbers.
  void next_state(const uint64_t* state, int words, uint64_t* next) const;

  /// Elements begin..end-1 (row-major in a block of `block_dims` that starts at `starts` in the array; null: at zero)
  /// into `out`, which is the block's first element.
  void fill(const uint64_t* state, int words, const int64_t* starts, const tensor::Dims& block_dims, std::byte* out,
            int64_t begin, int64_t end) const;

 private:
  struct Generator;

  RandomAlgorithm algorithm_;
  tensor::Dims dims_;
  int bits_;
  int64_t count_ = 1;
  int64_t counters_ = 1;       // increment of the counter
  int split_dim_ = -1;         // Threefry of 32 bits: the dimension of pairs
  tensor::Dims half_strides_;  // row-major strides of the halved array
};

}  // namespace meshd::kernels
