#include "service/partition/lower/identity.h"

#include "service/kernels/elementwise/scalar_op.h"

#include <cstring>
#include <limits>

namespace meshd::partition {
namespace {

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

// Bits of 0, 1, -infinity and +infinity; floats only.
struct FloatBits {
  uint64_t one;
  uint64_t lowest;
  uint64_t highest;
};

std::optional<FloatBits> float_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return FloatBits{0x3C00, 0xFC00, 0x7C00};
    case DType::kBfloat16:
      return FloatBits{0x3F80, 0xFF80, 0x7F80};
    case DType::kFloat32:
      return FloatBits{0x3F800000, 0xFF800000, 0x7F800000};
    case DType::kFloat64:
      return FloatBits{0x3FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000000};
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> integer_bits(ScalarOp op, DType dtype) {
  const int bits = tensor::row(dtype).bits;
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const bool is_signed = tensor::is_signed_integer(dtype);
  // Narrow integers lie sign-extended in their byte.
  const auto widen = [&](uint64_t value) {
    return is_signed && bits < 8 && (value >> (bits - 1) & 1) ? (value | ~ones) & 0xFF : value;
  };
  switch (op) {
    case ScalarOp::kAdd:
    case ScalarOp::kOr:
    case ScalarOp::kXor:
      return 0;
    case ScalarOp::kMultiply:
      return 1;
    case ScalarOp::kAnd:
      return widen(ones);
    case ScalarOp::kMaximum:
      return is_signed ? widen(uint64_t{1} << (bits - 1)) : 0;
    case ScalarOp::kMinimum:
      return is_signed ? ones >> 1 : ones;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::vector<std::byte>> identity_element(ScalarOp op, DType dtype) {
  const int64_t bytes = tensor::size_bytes(dtype);
  if (dtype == DType::kBool) {
    switch (op) {
      case ScalarOp::kAnd:
      case ScalarOp::kMultiply:
      case ScalarOp::kMinimum:
        return pattern(1, bytes);
      case ScalarOp::kOr:
      case ScalarOp::kAdd:
      case ScalarOp::kXor:
      case ScalarOp::kMaximum:
        return pattern(0, bytes);
      default:
        return std::nullopt;
    }
  }
  if (tensor::is_integer(dtype)) {
    const auto bits = integer_bits(op, dtype);
    if (!bits) return std::nullopt;
    return pattern(*bits, bytes);
  }
  if (tensor::is_complex(dtype)) {
    if (op == ScalarOp::kAdd) return negative_zero(bytes, 2);
    if (op != ScalarOp::kMultiply) return std::nullopt;
    return pattern(float_bits(bytes == 8 ? DType::kFloat32 : DType::kFloat64)->one, bytes);
  }
  const auto bits = float_bits(dtype);
  if (!bits) return std::nullopt;
  switch (op) {
    case ScalarOp::kAdd:
      return negative_zero(bytes, 1);
    case ScalarOp::kMultiply:
      return pattern(bits->one, bytes);
    case ScalarOp::kMaximum:
      return pattern(bits->lowest, bytes);
    case ScalarOp::kMinimum:
      return pattern(bits->highest, bytes);
    default:
      return std::nullopt;
  }
}

bool is_idempotent(kernels::ScalarOp op) {
  return op == kernels::ScalarOp::kMaximum || op == kernels::ScalarOp::kMinimum || op == kernels::ScalarOp::kAnd ||
         op == kernels::ScalarOp::kOr;
}

bool is_identity(const ir::DenseAttr& constant, ScalarOp op) {
  if (!constant.splat && tensor::element_count(constant.type) != 1) return false;
  const auto expected = identity_element(op, constant.type.dtype);
  if (!expected) return false;
  if (*constant.bytes == *expected) return true;
  // A sum that begins with 0 on every shard is what it is when one begins with 0.
  const std::vector<std::byte> zero(expected->size());
  return op == ScalarOp::kAdd && *constant.bytes == zero;
}

}  // namespace meshd::partition
