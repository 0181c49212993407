#include "service/kernels/sort/sort_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "service/core/error.h"
#include "service/kernels/cpu.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

// What a register of the comparator holds, seen from the inputs.
struct Side {
  int input = -1;  // lhs of operand k is input 2k, rhs is 2k + 1
  bool zeros_alike = false;
  bool nans_alike = false;
  uint64_t nan_bits = 0;

  friend bool operator==(const Side& a, const Side& b) {
    return a.zeros_alike == b.zeros_alike && a.nans_alike == b.nans_alike && a.nan_bits == b.nan_bits;
  }
};

class Recogniser {
 public:
  explicit Recogniser(const TileProgram& program) : program_(program) {}

  std::optional<std::vector<SortKey>> run() const {
    if (program_.outputs.size() != 1) return std::nullopt;
    std::vector<SortKey> keys;
    if (!read_order(program_.outputs[0], keys)) return std::nullopt;
    return keys;
  }

 private:
  [[nodiscard]] const TileInstruction* made_by(uint16_t reg) const {
    for (const TileInstruction& instruction : program_.instructions) {
      if (instruction.result == reg) return &instruction;
    }
    return nullptr;
  }

  // Bits of a constant register.
  [[nodiscard]] std::optional<uint64_t> constant(uint16_t reg) const {
    for (const TileConstant& candidate : program_.constants) {
      if (candidate.reg != reg) continue;
      uint64_t bits = 0;
      std::memcpy(&bits, candidate.element.data(),
                  static_cast<size_t>(std::min<int64_t>(8, tensor::size_bytes(program_.registers[reg]))));
      return bits;
    }
    return std::nullopt;
  }

  // x; x == 0 ? 0 : x; x != x ? NaN : (either).
  [[nodiscard]] std::optional<Side> read_side(uint16_t reg) const {
    if (reg < program_.input_count) return Side{.input = reg};
    const TileInstruction* select = made_by(reg);
    if (select == nullptr || select->op != ScalarOp::kSelect) return std::nullopt;
    const TileInstruction* test = made_by(select->operands[0]);
    const std::optional<uint64_t> chosen = constant(select->operands[1]);
    std::optional<Side> side = read_side(select->operands[2]);
    if (test == nullptr || !chosen || !side || side->nans_alike) return std::nullopt;
    if (test->operands[0] != side->input) return std::nullopt;
    if (test->op == ScalarOp::kCompareNe && test->operands[1] == side->input) {
      side->nans_alike = true;
      side->nan_bits = *chosen;
      return side;
    }
    if (test->op == ScalarOp::kCompareEq && !side->zeros_alike && *chosen == 0 &&
        constant(test->operands[1]) == uint64_t{0}) {
      side->zeros_alike = true;
      return side;
    }
    return std::nullopt;
  }

  // lhs and rhs of one operand, treated alike; `swapped` when rhs is first.
  [[nodiscard]] std::optional<Side> read_pair(const TileInstruction& compare, bool& swapped) const {
    const std::optional<Side> first = read_side(compare.operands[0]);
    const std::optional<Side> second = read_side(compare.operands[1]);
    if (!first || !second || !(*first == *second) || first->input / 2 != second->input / 2 ||
        first->input == second->input) {
      return std::nullopt;
    }
    swapped = first->input > second->input;
    return swapped ? second : first;
  }

  [[nodiscard]] bool read_less(uint16_t reg, SortKey& key) const {
    const TileInstruction* compare = made_by(reg);
    if (compare == nullptr) return false;
    const bool is_total = compare->op == ScalarOp::kTotalLt || compare->op == ScalarOp::kTotalGt;
    const bool is_partial = compare->op == ScalarOp::kCompareLt || compare->op == ScalarOp::kCompareGt;
    if (!is_total && !is_partial) return false;
    bool swapped = false;
    const std::optional<Side> side = read_pair(*compare, swapped);
    if (!side) return false;
    key.operand = side->input / 2;
    key.dtype = program_.registers[static_cast<size_t>(side->input)];
    const bool is_float = tensor::is_float(key.dtype);
    const bool has_order = is_float ? tensor::size_bytes(key.dtype) > 1 : !tensor::is_complex(key.dtype);
    if (!has_order) return false;
    const bool greater = compare->op == ScalarOp::kTotalGt || compare->op == ScalarOp::kCompareGt;
    key.descending = greater != swapped;
    key.zeros_alike = is_float && (side->zeros_alike || is_partial);
    key.nans_alike = is_float && side->nans_alike && is_total;
    key.nan_bits = side->nan_bits;
    key.nan_is_unordered = is_float && is_partial;
    return true;
  }

  // Equal where the key is.
  [[nodiscard]] bool reads_equal(uint16_t reg, const SortKey& key) const {
    const TileInstruction* compare = made_by(reg);
    if (compare == nullptr) return false;
    const bool is_total = compare->op == ScalarOp::kTotalEq;
    if (!is_total && (compare->op != ScalarOp::kCompareEq || tensor::is_float(key.dtype))) return false;
    bool swapped = false;
    const std::optional<Side> side = read_pair(*compare, swapped);
    if (!side || side->input / 2 != key.operand) return false;
    if (!tensor::is_float(key.dtype)) return true;
    return !key.nan_is_unordered && side->zeros_alike == key.zeros_alike && side->nans_alike == key.nans_alike;
  }

  // less, or less or (equal and order of the rest).
  [[nodiscard]] bool read_order(uint16_t reg, std::vector<SortKey>& keys) const {
    SortKey key;
    if (read_less(reg, key)) {
      keys.push_back(key);
      return true;
    }
    const TileInstruction* either = made_by(reg);
    if (either == nullptr || either->op != ScalarOp::kOr) return false;
    for (int first = 0; first < 2; ++first) {
      if (!read_less(either->operands[static_cast<size_t>(first)], key)) continue;
      const TileInstruction* both = made_by(either->operands[static_cast<size_t>(1 - first)]);
      if (both == nullptr || both->op != ScalarOp::kAnd) continue;
      for (int equal = 0; equal < 2; ++equal) {
        if (!reads_equal(both->operands[static_cast<size_t>(equal)], key)) continue;
        std::vector<SortKey> rest;
        if (!read_order(both->operands[static_cast<size_t>(1 - equal)], rest)) continue;
        keys.push_back(key);
        keys.insert(keys.end(), rest.begin(), rest.end());
        return true;
      }
    }
    return false;
  }

  const TileProgram& program_;
};

// The order of bits: two's complement and sign-magnitude become unsigned.
enum class Bits : uint8_t { kUnsigned, kSigned, kFloat };

Bits bits_of(DType dtype) {
  if (tensor::is_float(dtype)) return Bits::kFloat;
  return tensor::is_signed_integer(dtype) ? Bits::kSigned : Bits::kUnsigned;
}

template <typename T, Bits kBits>
T to_key(T bits) {
  constexpr T kSign = static_cast<T>(T{1} << (sizeof(T) * 8 - 1));
  if constexpr (kBits == Bits::kUnsigned) return bits;
  if constexpr (kBits == Bits::kSigned) return static_cast<T>(bits ^ kSign);
  const T negative = static_cast<T>(T{0} - static_cast<T>(bits >> (sizeof(T) * 8 - 1)));  // all ones or none
  return static_cast<T>(bits ^ (negative | kSign));
}

template <typename T, Bits kBits>
T from_key(T key) {
  constexpr T kSign = static_cast<T>(T{1} << (sizeof(T) * 8 - 1));
  if constexpr (kBits == Bits::kUnsigned) return key;
  if constexpr (kBits == Bits::kSigned) return static_cast<T>(key ^ kSign);
  const T positive = static_cast<T>(T{0} - static_cast<T>(key >> (sizeof(T) * 8 - 1)));
  return static_cast<T>(key ^ (static_cast<T>(~positive) | kSign));
}

// The parameters of build() as scalars that a vector loop keeps in registers.
template <typename E>
struct KeyMasks {
  E flip;       // all ones: larger keys first
  E infinity;   // NaNs are above, sign left out
  E nan;        // what merged NaNs become
  E merge_nan;  // all ones or none
  E merge_zero;
};

// Elements of type E, keys of type T. No branches: the loop is a vector loop.
template <typename T, typename E, Bits kBits>
[[gnu::always_inline]] inline KeyFacts build_loop(const KeyMasks<E>& masks, const std::byte* elements, int64_t count,
                                                  T* keys) {
  constexpr E kSign = static_cast<E>(E{1} << (sizeof(E) * 8 - 1));
  constexpr E kOnes = static_cast<E>(~E{0});
  const E* in = reinterpret_cast<const E*>(elements);
  E nans = 0;
  E others = 0;  // bits that the key does not keep
  for (int64_t i = 0; i < count; ++i) {
    E bits = in[i];
    if constexpr (kBits == Bits::kFloat) {
      const E is_nan = static_cast<E>(bits & static_cast<E>(~kSign)) > masks.infinity ? kOnes : E{0};
      const E merged_nan = static_cast<E>(is_nan & masks.merge_nan);
      const E merged_zero = static_cast<E>((bits == kSign ? kOnes : E{0}) & masks.merge_zero);
      const E kept = static_cast<E>((bits & static_cast<E>(~(merged_nan | merged_zero))) | (merged_nan & masks.nan));
      nans = static_cast<E>(nans | is_nan);
      others = static_cast<E>(others | (bits ^ kept));
      bits = kept;
    }
    keys[i] = static_cast<T>(static_cast<E>(to_key<E, kBits>(bits) ^ masks.flip));
  }
  return {others == 0, nans != 0};
}

template <typename T, typename E, Bits kBits>
[[gnu::always_inline]] inline void restore_loop(E flip, const T* keys, int64_t count, std::byte* elements) {
  E* out = reinterpret_cast<E*>(elements);
  for (int64_t i = 0; i < count; ++i) out[i] = from_key<E, kBits>(static_cast<E>(static_cast<E>(keys[i]) ^ flip));
}

template <typename T, typename E, Bits kBits>
KeyFacts build_base(const KeyMasks<E>& masks, const std::byte* elements, int64_t count, T* keys) {
  return build_loop<T, E, kBits>(masks, elements, count, keys);
}
template <typename T, typename E, Bits kBits>
void restore_base(E flip, const T* keys, int64_t count, std::byte* elements) {
  restore_loop<T, E, kBits>(flip, keys, count, elements);
}
#if defined(__x86_64__)
template <typename T, typename E, Bits kBits>
[[gnu::target("arch=x86-64-v3")]] KeyFacts build_v3(const KeyMasks<E>& masks, const std::byte* elements, int64_t count,
                                                    T* keys) {
  return build_loop<T, E, kBits>(masks, elements, count, keys);
}
template <typename T, typename E, Bits kBits>
[[gnu::target("arch=x86-64-v3")]] void restore_v3(E flip, const T* keys, int64_t count, std::byte* elements) {
  restore_loop<T, E, kBits>(flip, keys, count, elements);
}
#endif

template <typename T, typename E, Bits kBits>
KeyFacts build(const SortKey& key, const std::byte* elements, int64_t count, T* keys) {
  constexpr E kOnes = static_cast<E>(~E{0});
  const KeyMasks<E> masks{.flip = key.descending ? kOnes : E{0},
                          .infinity = static_cast<E>(tensor::infinity_bits(key.dtype).value_or(0)),
                          .nan = static_cast<E>(key.nan_bits),
                          .merge_nan = key.nans_alike ? kOnes : E{0},
                          .merge_zero = key.zeros_alike ? kOnes : E{0}};
#if defined(__x86_64__)
  if (cpu_level() != CpuLevel::kBase) return build_v3<T, E, kBits>(masks, elements, count, keys);
#endif
  return build_base<T, E, kBits>(masks, elements, count, keys);
}

template <typename T, typename E, Bits kBits>
void restore(const SortKey& key, const T* keys, int64_t count, std::byte* elements) {
  const E flip = key.descending ? static_cast<E>(~E{0}) : E{0};
#if defined(__x86_64__)
  if (cpu_level() != CpuLevel::kBase) return restore_v3<T, E, kBits>(flip, keys, count, elements);
#endif
  restore_base<T, E, kBits>(flip, keys, count, elements);
}

// Calls visit(E{}, kind) with the dtype's unsigned type and its order of bits as compile-time constants.
template <typename Visit>
auto with_element(DType dtype, Visit&& visit) {
  const auto by_order = [&]<typename E>(E) {
    switch (bits_of(dtype)) {
      case Bits::kUnsigned:
        return visit(E{}, std::integral_constant<Bits, Bits::kUnsigned>{});
      case Bits::kSigned:
        return visit(E{}, std::integral_constant<Bits, Bits::kSigned>{});
      case Bits::kFloat:
        break;
    }
    return visit(E{}, std::integral_constant<Bits, Bits::kFloat>{});
  };
  switch (tensor::size_bytes(dtype)) {
    case 1:
      return by_order(uint8_t{});
    case 2:
      return by_order(uint16_t{});
    case 4:
      return by_order(uint32_t{});
    case 8:
      return by_order(uint64_t{});
    default:
      throw core::Error("internal", fmt::format("sort keys have at most 8 bytes, not {}", tensor::name(dtype)));
  }
}

}  // namespace

std::optional<std::vector<SortKey>> recognise_comparator(const TileProgram& comparator) {
  return Recogniser(comparator).run();
}

template <typename T>
KeyFacts build_keys(const SortKey& key, const std::byte* elements, int64_t count, T* keys) {
  return with_element(key.dtype, [&]<typename E, Bits kBits>(E, std::integral_constant<Bits, kBits>) {
    return build<T, E, kBits>(key, elements, count, keys);
  });
}

template <typename T>
void restore_elements(const SortKey& key, const T* keys, int64_t count, std::byte* elements) {
  with_element(key.dtype, [&]<typename E, Bits kBits>(E, std::integral_constant<Bits, kBits>) {
    restore<T, E, kBits>(key, keys, count, elements);
  });
}

namespace {

// Calls zero(i) and nan(i) for the elements that are alike.
template <typename E, typename Zero, typename Nan>
void for_each_alike(const SortKey& key, const std::byte* elements, int64_t count, const Zero& zero, const Nan& nan) {
  constexpr E kSign = static_cast<E>(E{1} << (sizeof(E) * 8 - 1));
  const E infinity = static_cast<E>(tensor::infinity_bits(key.dtype).value_or(0));
  const E* const in = reinterpret_cast<const E*>(elements);
  for (int64_t i = 0; i < count; ++i) {
    const E magnitude = static_cast<E>(in[i] & static_cast<E>(~kSign));
    if (key.zeros_alike && magnitude == 0) zero(i);
    if (key.nans_alike && magnitude > infinity) nan(i);
  }
}

}  // namespace

bool is_nan_like_nans(const SortKey& key) {
  if (!key.nans_alike) return true;
  const int bits = static_cast<int>(8 * tensor::size_bytes(key.dtype));
  const uint64_t magnitude = key.nan_bits & ((uint64_t{1} << (bits - 1)) - 1);
  return magnitude > tensor::infinity_bits(key.dtype).value_or(0);
}

AlikeElements count_alike(const SortKey& key, const std::byte* elements, int64_t count) {
  AlikeElements found;
  with_element(key.dtype, [&]<typename E, Bits kBits>(E, std::integral_constant<Bits, kBits>) {
    if constexpr (kBits == Bits::kFloat)
      for_each_alike<E>(
          key, elements, count, [&](int64_t) { ++found.zeros; }, [&](int64_t) { ++found.nans; });
  });
  return found;
}

template <typename T>
AlikeElements first_alike(const SortKey& key, const T* keys, int64_t count) {
  const auto place_of = [&](uint64_t bits) {
    T wanted{};
    with_element(key.dtype, [&]<typename E, Bits kBits>(E, std::integral_constant<Bits, kBits>) {
      const auto element = static_cast<E>(bits);
      build<T, E, kBits>(key, reinterpret_cast<const std::byte*>(&element), 1, &wanted);
    });
    return std::lower_bound(keys, keys + count, wanted) - keys;
  };
  return {.zeros = place_of(0), .nans = place_of(key.nan_bits)};
}

void place_alike(const SortKey& key, const std::byte* elements, int64_t count, AlikeElements places, std::byte* to) {
  with_element(key.dtype, [&]<typename E, Bits kBits>(E, std::integral_constant<Bits, kBits>) {
    if constexpr (kBits == Bits::kFloat) {
      const E* const in = reinterpret_cast<const E*>(elements);
      E* const out = reinterpret_cast<E*>(to);
      for_each_alike<E>(
          key, elements, count, [&](int64_t i) { out[places.zeros++] = in[i]; },
          [&](int64_t i) { out[places.nans++] = in[i]; });
    }
  });
}

template KeyFacts build_keys(const SortKey&, const std::byte*, int64_t, uint8_t*);
template KeyFacts build_keys(const SortKey&, const std::byte*, int64_t, uint16_t*);
template KeyFacts build_keys(const SortKey&, const std::byte*, int64_t, uint32_t*);
template KeyFacts build_keys(const SortKey&, const std::byte*, int64_t, uint64_t*);
template void restore_elements(const SortKey&, const uint8_t*, int64_t, std::byte*);
template void restore_elements(const SortKey&, const uint16_t*, int64_t, std::byte*);
template void restore_elements(const SortKey&, const uint32_t*, int64_t, std::byte*);
template void restore_elements(const SortKey&, const uint64_t*, int64_t, std::byte*);
template AlikeElements first_alike(const SortKey&, const uint8_t*, int64_t);
template AlikeElements first_alike(const SortKey&, const uint32_t*, int64_t);
template AlikeElements first_alike(const SortKey&, const uint64_t*, int64_t);

}  // namespace meshd::kernels
