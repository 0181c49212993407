// Element types, one row each: every name that a type has on any surface is in this table and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace meshd::tensor {

/// Element types in the order of kDTypeTable. Types of fewer than 8 bits take one byte an element, in memory and on the
/// wire.
enum class DType : uint8_t {
  kBool,
  kInt2,
  kInt4,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint2,
  kUint4,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat4E2M1FN,
  kFloat6E2M3FN,
  kFloat6E3M2FN,
  kFloat8E3M4,
  kFloat8E4M3,
  kFloat8E4M3B11FNUZ,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat8E8M0FNU,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};

enum class DTypeClass : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex };

/// How a float format spends its codes for infinities and NaN.
enum class FloatSpecials : uint8_t {
  kIeee,         ///< the top exponent holds infinity and NaNs
  kFinite,       ///< "FN": no infinity, the code with all bits set is NaN
  kNegZeroNan,   ///< "FNUZ": no infinity, no negative zero; its code is the only NaN
  kPowersOfTwo,  ///< "FNU": no sign, zero or infinity; the code with all bits set is NaN
  kNone          ///< "FN" of fewer than 8 bits: every code is a number
};

/// A binary floating-point format; all zero for types that are no floats.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  FloatSpecials specials = FloatSpecials::kIeee;
};

constexpr FloatFormat ieee(int exponent, int mantissa, int bias) {
  return {exponent, mantissa, bias, FloatSpecials::kIeee};
}
constexpr FloatFormat finite(int exponent, int mantissa, int bias) {
  return {exponent, mantissa, bias, FloatSpecials::kFinite};
}
constexpr FloatFormat fnuz(int exponent, int mantissa, int bias) {
  return {exponent, mantissa, bias, FloatSpecials::kNegZeroNan};
}
constexpr FloatFormat powers_of_two(int exponent, int mantissa, int bias) {
  return {exponent, mantissa, bias, FloatSpecials::kPowersOfTwo};
}

constexpr FloatFormat numbers_only(int exponent, int mantissa, int bias) {
  return {exponent, mantissa, bias, FloatSpecials::kNone};
}

/// One row. Empty names mean that the surface has none.
struct DTypeRow {
  DType dtype;
  std::string_view name;         ///< ours and NumPy's: "float32"
  std::string_view stablehlo;    ///< in program text: "f32"
  std::string_view npy;          ///< NumPy descr: "<f4"; of ml_dtypes' types "<V2" and "<V1", which several share
  std::string_view oip;          ///< Open Inference Protocol: "FP32"
  std::string_view zarr3;        ///< Zarr v3 data_type
  std::string_view safetensors;  ///< safetensors dtype
  DTypeClass kind;
  int bits;   ///< meaningful bits of one element (both parts of a complex)
  int bytes;  ///< bytes one element takes in memory and on the wire
  FloatFormat format = {};
};

inline constexpr DTypeRow kDTypeTable[] = {
    {DType::kBool, "bool", "i1", "|b1", "BOOL", "bool", "BOOL", DTypeClass::kBool, 1, 1},
    {DType::kInt2, "int2", "i2", "<V1", "", "", "", DTypeClass::kSigned, 2, 1},
    {DType::kInt4, "int4", "i4", "<V1", "", "", "", DTypeClass::kSigned, 4, 1},
    {DType::kInt8, "int8", "i8", "|i1", "INT8", "int8", "I8", DTypeClass::kSigned, 8, 1},
    {DType::kInt16, "int16", "i16", "<i2", "INT16", "int16", "I16", DTypeClass::kSigned, 16, 2},
    {DType::kInt32, "int32", "i32", "<i4", "INT32", "int32", "I32", DTypeClass::kSigned, 32, 4},
    {DType::kInt64, "int64", "i64", "<i8", "INT64", "int64", "I64", DTypeClass::kSigned, 64, 8},
    {DType::kUint2, "uint2", "ui2", "<V1", "", "", "", DTypeClass::kUnsigned, 2, 1},
    {DType::kUint4, "uint4", "ui4", "<V1", "", "", "", DTypeClass::kUnsigned, 4, 1},
    {DType::kUint8, "uint8", "ui8", "|u1", "UINT8", "uint8", "U8", DTypeClass::kUnsigned, 8, 1},
    {DType::kUint16, "uint16", "ui16", "<u2", "UINT16", "uint16", "U16", DTypeClass::kUnsigned, 16, 2},
    {DType::kUint32, "uint32", "ui32", "<u4", "UINT32", "uint32", "U32", DTypeClass::kUnsigned, 32, 4},
    {DType::kUint64, "uint64", "ui64", "<u8", "UINT64", "uint64", "U64", DTypeClass::kUnsigned, 64, 8},
    {DType::kFloat4E2M1FN, "float4_e2m1fn", "f4E2M1FN", "<V1", "", "", "", DTypeClass::kFloat, 4, 1,
     numbers_only(2, 1, 1)},
    {DType::kFloat6E2M3FN, "float6_e2m3fn", "f6E2M3FN", "<V1", "", "", "", DTypeClass::kFloat, 6, 1,
     numbers_only(2, 3, 1)},
    {DType::kFloat6E3M2FN, "float6_e3m2fn", "f6E3M2FN", "<V1", "", "", "", DTypeClass::kFloat, 6, 1,
     numbers_only(3, 2, 3)},
    {DType::kFloat8E3M4, "float8_e3m4", "f8E3M4", "<V1", "", "", "", DTypeClass::kFloat, 8, 1, ieee(3, 4, 3)},
    {DType::kFloat8E4M3, "float8_e4m3", "f8E4M3", "<V1", "", "", "", DTypeClass::kFloat, 8, 1, ieee(4, 3, 7)},
    {DType::kFloat8E4M3B11FNUZ, "float8_e4m3b11fnuz", "f8E4M3B11FNUZ", "<V1", "", "", "", DTypeClass::kFloat, 8, 1,
     fnuz(4, 3, 11)},
    {DType::kFloat8E4M3FN, "float8_e4m3fn", "f8E4M3FN", "<V1", "", "", "F8_E4M3", DTypeClass::kFloat, 8, 1,
     finite(4, 3, 7)},
    {DType::kFloat8E4M3FNUZ, "float8_e4m3fnuz", "f8E4M3FNUZ", "<V1", "", "", "F8_E4M3FNUZ", DTypeClass::kFloat, 8, 1,
     fnuz(4, 3, 8)},
    {DType::kFloat8E5M2, "float8_e5m2", "f8E5M2", "<V1", "", "", "F8_E5M2", DTypeClass::kFloat, 8, 1, ieee(5, 2, 15)},
    {DType::kFloat8E5M2FNUZ, "float8_e5m2fnuz", "f8E5M2FNUZ", "<V1", "", "", "F8_E5M2FNUZ", DTypeClass::kFloat, 8, 1,
     fnuz(5, 2, 16)},
    {DType::kFloat8E8M0FNU, "float8_e8m0fnu", "f8E8M0FNU", "<V1", "", "", "F8_E8M0", DTypeClass::kFloat, 8, 1,
     powers_of_two(8, 0, 127)},
    {DType::kFloat16, "float16", "f16", "<f2", "FP16", "float16", "F16", DTypeClass::kFloat, 16, 2, ieee(5, 10, 15)},
    {DType::kBfloat16, "bfloat16", "bf16", "<V2", "BF16", "", "BF16", DTypeClass::kFloat, 16, 2, ieee(8, 7, 127)},
    {DType::kFloat32, "float32", "f32", "<f4", "FP32", "float32", "F32", DTypeClass::kFloat, 32, 4, ieee(8, 23, 127)},
    {DType::kFloat64, "float64", "f64", "<f8", "FP64", "float64", "F64", DTypeClass::kFloat, 64, 8, ieee(11, 52, 1023)},
    {DType::kComplex64, "complex64", "complex<f32>", "<c8", "", "complex64", "C64", DTypeClass::kComplex, 64, 8},
    {DType::kComplex128, "complex128", "complex<f64>", "<c16", "", "complex128", "", DTypeClass::kComplex, 128, 16},
};

/// Rows are at the number of their type, so that none is forgotten and none is another's.
constexpr bool dtypes_are_in_order() {
  for (size_t i = 0; i < std::size(kDTypeTable); ++i) {
    if (static_cast<size_t>(kDTypeTable[i].dtype) != i) return false;
  }
  return std::size(kDTypeTable) == static_cast<size_t>(DType::kComplex128) + 1;
}
static_assert(dtypes_are_in_order());

/// The row of a type.
constexpr const DTypeRow& row(DType dtype) { return kDTypeTable[static_cast<size_t>(dtype)]; }
constexpr std::string_view name(DType dtype) { return row(dtype).name; }
constexpr int64_t size_bytes(DType dtype) { return row(dtype).bytes; }
constexpr bool is_complex(DType d) { return row(d).kind == DTypeClass::kComplex; }
/// The type of the two parts of a complex number; other types themselves.
constexpr DType part_of(DType d) {
  return d == DType::kComplex64 ? DType::kFloat32 : d == DType::kComplex128 ? DType::kFloat64 : d;
}
/// The complex type of two parts of a float type; complex64 for narrow floats.
constexpr DType complex_of(DType part) { return part == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64; }
constexpr bool is_float(DType d) { return row(d).kind == DTypeClass::kFloat; }
constexpr bool is_integer(DType d) {
  return row(d).kind == DTypeClass::kSigned || row(d).kind == DTypeClass::kUnsigned;
}
constexpr bool is_signed_integer(DType d) { return row(d).kind == DTypeClass::kSigned; }
constexpr bool is_unsigned_integer(DType d) { return row(d).kind == DTypeClass::kUnsigned; }

/// The bits of 1 in a float type.
constexpr uint64_t one_bits(DType d) {
  return static_cast<uint64_t>(row(d).format.bias) << row(d).format.mantissa_bits;
}
/// The bits of infinity in a float type; nothing where it has none.
constexpr std::optional<uint64_t> infinity_bits(DType d) {
  const FloatFormat& format = row(d).format;
  if (!is_float(d) || format.specials != FloatSpecials::kIeee) return std::nullopt;
  return ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
}
/// The sign of a float's bits.
constexpr uint64_t sign_bit(DType d) { return uint64_t{1} << (row(d).bits - 1); }

/// The range of an integer type: -128 and 127 of int8. The largest as an unsigned number, for uint64's sake.
constexpr int64_t least_value(DType d) { return is_signed_integer(d) ? INT64_MIN >> (64 - row(d).bits) : 0; }
constexpr uint64_t largest_value(DType d) { return UINT64_MAX >> (64 - row(d).bits + (is_signed_integer(d) ? 1 : 0)); }
static_assert(least_value(DType::kInt2) == -2 && largest_value(DType::kInt2) == 1);
static_assert(least_value(DType::kInt64) == INT64_MIN && largest_value(DType::kInt64) == INT64_MAX);
static_assert(least_value(DType::kUint64) == 0 && largest_value(DType::kUint64) == UINT64_MAX);

/// visit(T{}) with the C++ integer that holds an element of an integer type or of bool (as uint8_t): int4 is an int8_t.
/// Other types give `otherwise()`.
template <typename Visit, typename Otherwise>
constexpr auto with_integer(DType d, Visit&& visit, Otherwise&& otherwise) {
  if (row(d).kind == DTypeClass::kSigned) {
    if (row(d).bytes == 1) return visit(int8_t{});
    if (row(d).bytes == 2) return visit(int16_t{});
    if (row(d).bytes == 4) return visit(int32_t{});
    if (row(d).bytes == 8) return visit(int64_t{});
  }
  if (row(d).kind == DTypeClass::kUnsigned || row(d).kind == DTypeClass::kBool) {
    if (row(d).bytes == 1) return visit(uint8_t{});
    if (row(d).bytes == 2) return visit(uint16_t{});
    if (row(d).bytes == 4) return visit(uint32_t{});
    if (row(d).bytes == 8) return visit(uint64_t{});
  }
  return otherwise();
}

/// The type with this name of ours ("float32"), or nothing.
std::optional<DType> dtype_from_name(std::string_view name);
/// The type that program text calls so ("f32", "complex<f32>", "ui8"), or nothing.
std::optional<DType> dtype_from_stablehlo(std::string_view text);
/// NumPy itself has no such type: files say "<V2" or "<V1", bytes of a size, as they do of all types of ml_dtypes.
constexpr bool is_void_in_numpy(DType d) { return row(d).npy.starts_with("<V"); }
/// The type with this NumPy descr ("<f4"), or nothing: none has it, or several do ("<V1").
std::optional<DType> dtype_from_npy(std::string_view descr);

/// The type that an unknown name probably means, for "did you mean": its name on another surface, of another library or
/// language ("F32", "torch.float32", "double", "s32"), or one that is nearly ours ("flaot32"). Nothing for what is as
/// near to a type that there is not ("float8", "i3"), and for a name that several types share ("<V1").
std::optional<DType> dtype_meant(std::string_view name);
/// What a message says behind an unknown name of ours: "; did you mean 'float32'?", or which types there are.
std::string dtype_advice(std::string_view name, char quote = '\'');

}  // namespace meshd::tensor
