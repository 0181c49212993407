// Hex digits of constants, read fast: they are most of the bytes of large programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "service/tensor/shape.h"

namespace meshd::program {

/// Bytes of "0x00FF..." in `out`; false when it is not "0x" and an even number of hex digits.
bool decode_hex(std::string_view text, std::vector<std::byte>& out);

/// Fills the unused high bits of elements of a type of fewer than 8 bits: with the sign, or with zeros in unsigned
/// types. Bytes of other types stay as they are. 0x0F of int4 is 0xFF, -1.
void extend_narrow(tensor::DType dtype, std::span<std::byte> bytes);

/// Makes raw bytes of a constant ours: bits packed eight to a byte become one byte each (older texts store i1 so),
/// booleans 0 or 1. Returns true when the bytes are those of one element (a splat) of a constant of `count` elements.
bool adopt_stored_bytes(const tensor::TensorType& type, int64_t count, std::vector<std::byte>& bytes);

/// "0x" and two upper-case digits a byte.
std::string encode_hex(const std::vector<std::byte>& bytes);

}  // namespace meshd::program
