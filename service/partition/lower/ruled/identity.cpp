#include "service/partition/lower/ruled/identity.h"

#include <cstring>
#include <limits>

#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::partition {
namespace {

using kernels::Identity;
using kernels::ScalarOp;
using tensor::DType;

std::vector<std::byte> pattern(uint64_t bits, int64_t bytes) {
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  std::memcpy(out.data(), &bits, out.size() < 8 ? out.size() : 8);
  return out;
}

// -0 in each of `parts` numbers: 0 would make -0 + 0 a 0.
std::vector<std::byte> negative_zero(int64_t bytes, int64_t parts) {
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  for (int64_t part = 1; part <= parts; ++part) out[static_cast<size_t>(part * bytes / parts - 1)] = std::byte{0x80};
  return out;
}

std::optional<uint64_t> integer_bits(Identity identity, DType dtype) {
  const int bits = tensor::row(dtype).bits;
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const bool is_signed = tensor::is_signed_integer(dtype);
  // Narrow integers are stored sign-extended in a byte.
  const auto widen = [&](uint64_t value) {
    return is_signed && bits < 8 && (value >> (bits - 1) & 1) ? (value | ~ones) & 0xFF : value;
  };
  switch (identity) {
    case Identity::kNone:
      break;
    case Identity::kSum:
    case Identity::kZero:
      return 0;
    case Identity::kOne:
      return 1;
    case Identity::kOnes:
      return widen(ones);
    case Identity::kLowest:
      return is_signed ? widen(uint64_t{1} << (bits - 1)) : 0;
    case Identity::kHighest:
      return is_signed ? ones >> 1 : ones;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<std::byte>> identity_element(ScalarOp op, DType dtype) {
  const int64_t bytes = tensor::size_bytes(dtype);
  const Identity identity = kernels::identity_of(op);
  if (identity == Identity::kNone) return std::nullopt;
  if (dtype == DType::kBool) {
    const bool is_false = identity == Identity::kSum || identity == Identity::kZero || identity == Identity::kLowest;
    return pattern(is_false ? 0 : 1, bytes);
  }
  if (tensor::is_integer(dtype)) {
    const auto bits = integer_bits(identity, dtype);
    if (!bits) return std::nullopt;
    return pattern(*bits, bytes);
  }
  if (tensor::is_complex(dtype)) {
    if (identity == Identity::kSum) return negative_zero(bytes, 2);
    if (identity != Identity::kOne) return std::nullopt;
    return pattern(tensor::one_bits(tensor::part_of(dtype)), bytes);
  }
  // Of float8 nothing is known here: its sums are made in a wider type.
  const std::optional<uint64_t> infinity = tensor::infinity_bits(dtype);
  if (!infinity || bytes < 2) return std::nullopt;
  switch (identity) {
    case Identity::kSum:
      return negative_zero(bytes, 1);
    case Identity::kOne:
      return pattern(tensor::one_bits(dtype), bytes);
    case Identity::kLowest:
      return pattern(*infinity | tensor::sign_bit(dtype), bytes);
    case Identity::kHighest:
      return pattern(*infinity, bytes);
    case Identity::kNone:
    case Identity::kZero:
    case Identity::kOnes:
      break;  // floats have no such operation
  }
  return std::nullopt;
}

bool is_identity(const ir::DenseAttr& constant, ScalarOp op) {
  if (!constant.splat && tensor::element_count(constant.type) != 1) return false;
  const auto expected = identity_element(op, constant.type.dtype);
  if (!expected) return false;
  if (*constant.bytes == *expected) return true;
  // Starting with 0 on every shard instead of on one does not change a sum.
  const std::vector<std::byte> zero(expected->size());
  return kernels::identity_of(op) == Identity::kSum && *constant.bytes == zero;
}

}  // namespace meshd::partition
