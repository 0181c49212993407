#include "service/kernels/elementwise/scalar_op.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <type_traits>

#include "service/core/error.h"
#include "service/kernels/element_width.h"
#include "service/kernels/elementwise/lanes/narrow_lanes.h"
#include "service/kernels/elementwise/scalar/scalar_table.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

template <size_t... kNumber>
constexpr std::array<ScalarFacts, sizeof...(kNumber)> all_facts(std::index_sequence<kNumber...>) {
  return {kFactsOf<kNumber>...};
}
constexpr auto kFacts = all_facts(std::make_index_sequence<kScalarOpCount>{});

/// Which columns of a row call a function for each element.
struct Calling {
  bool floats;
  bool integers;
  bool wide_integers;  ///< of more than 32 bits
  bool complexes;
  bool wide_complexes;  ///< of doubles
};
template <size_t... kNumber>
constexpr std::array<Calling, sizeof...(kNumber)> all_calling(std::index_sequence<kNumber...>) {
  return {Calling{kIsCall<typename ScalarRow<kNumber>::Floats>, kIsCall<typename ScalarRow<kNumber>::Integers>,
                  kIsWideCall<typename ScalarRow<kNumber>::Integers>, kIsCall<typename ScalarRow<kNumber>::Complexes>,
                  kIsWideCall<typename ScalarRow<kNumber>::Complexes>}...};
}
constexpr auto kCalling = all_calling(std::make_index_sequence<kScalarOpCount>{});

/// Rows with an enumerator are at its number, and only they.
constexpr bool rows_are_in_order() {
  constexpr size_t kNamed = static_cast<size_t>(ScalarOp::kClamp) + 1;
  for (size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].op != (i < kNamed ? static_cast<ScalarOp>(i) : kUnnamed)) return false;
  }
  return kFacts.size() < static_cast<size_t>(kUnnamed);
}
static_assert(rows_are_in_order());

template <size_t Bytes>
void copy_elements(const std::byte* const* operands, std::byte* result, int64_t count) {
  if (count > 0)
    std::memmove(result, operands[0], static_cast<size_t>(count) * Bytes);  // of nothing there may be no memory
}

template <class T>
struct Select {
  static T apply(uint8_t which, T on_true, T on_false) { return which != 0 ? on_true : on_false; }
};

ScalarKernel find_bitcast_kernel(DType in, DType out) {
  if (tensor::row(in).bits != tensor::row(out).bits) return nullptr;
  // Few bits in a byte: the upper bits follow the sign of the type. The code of a float is kept as an unsigned integer.
  if (is_narrow_integer(in) || is_narrow_integer(out)) {
    const auto integer_of = [](DType dtype) { return tensor::is_float(dtype) ? DType::kUint4 : dtype; };
    return find_convert_kernel(integer_of(in), integer_of(out));
  }
  return find_copy_kernel(tensor::size_bytes(in));
}

ScalarKernel find_family_kernel(ScalarOp op, DType in) {
  switch (in) {
    case DType::kFloat32:
      return find_float32_kernel(op);
    case DType::kFloat64:
      return find_float64_kernel(op);
    case DType::kComplex64:
    case DType::kComplex128:
      return find_complex_kernel(op, in);
    case DType::kFloat16:
      return op == ScalarOp::kNextAfter ? find_half_next_after_kernel(in) : find_narrow_kernel(op, in);
    case DType::kBfloat16: {
      if (op == ScalarOp::kNextAfter) return find_half_next_after_kernel(in);
      const ScalarKernel own = find_bfloat16_kernel(op);
      return own != nullptr ? own : find_narrow_kernel(op, in);
    }
    default:
      return is_narrow_float(in) || is_narrow_integer(in) ? find_narrow_kernel(op, in) : find_integer_kernel(op, in);
  }
}

}  // namespace

const ScalarFacts& facts_of(ScalarOp op) { return kFacts[static_cast<size_t>(op)]; }

ScalarOp scalar_op(std::string_view name) {
  for (size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == name) return static_cast<ScalarOp>(i);
  }
  throw core::Error("internal", fmt::format("there is no scalar operation '{}'", name));
}

size_t scalar_op_count() { return kFacts.size(); }
int operand_count(ScalarOp op) { return facts_of(op).operands; }
bool is_associative(ScalarOp op) { return facts_of(op).identity != Identity::kNone; }
Identity identity_of(ScalarOp op) { return facts_of(op).identity; }
bool is_idempotent(ScalarOp op) { return facts_of(op).is_idempotent; }
double cost_of(ScalarOp op) { return facts_of(op).cost; }
std::string_view name(ScalarOp op) { return facts_of(op).name; }

bool is_lane_by_lane(ScalarOp op, DType in) {
  const Calling& calling = kCalling[static_cast<size_t>(op)];
  if (tensor::is_complex(in)) return in == DType::kComplex128 ? calling.wide_complexes : calling.complexes;
  if (tensor::is_float(in)) return calling.floats;
  return tensor::size_bytes(in) > 4 ? calling.wide_integers : calling.integers;
}

DType result_dtype(ScalarOp op, DType in) {
  switch (facts_of(op).result) {
    case ScalarResult::kSame:
      return in;
    case ScalarResult::kBool:
      return DType::kBool;
    case ScalarResult::kPart:
      return tensor::part_of(in);
    case ScalarResult::kComplex:
      return tensor::complex_of(in);
  }
  return in;
}

ScalarKernel find_copy_kernel(int64_t element_bytes) {
  ScalarKernel out = nullptr;
  with_element(element_bytes, [&](auto element) { out = copy_elements<sizeof(element)>; });
  return out;
}

ScalarKernel find_select_kernel(int64_t element_bytes) {
  ScalarKernel out = nullptr;
  with_element(element_bytes, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, Element16>) {
      out = call_kernel<Select<T>, T, uint8_t, T, T>();
    } else {
      out = vector_kernel<Select<T>, T, uint8_t, T, T>();
    }
  });
  return out;
}

ScalarKernel find_scalar_kernel(ScalarOp op, DType in, DType out) {
  if (op == ScalarOp::kConvert) return find_convert_kernel(in, out);
  if (op == ScalarOp::kBitcast) return find_bitcast_kernel(in, out);
  if (out != result_dtype(op, in)) return nullptr;
  if (op == ScalarOp::kCopy) return find_copy_kernel(tensor::size_bytes(in));
  if (op == ScalarOp::kSelect) return find_select_kernel(tensor::size_bytes(in));
  return find_family_kernel(op, in);
}

}  // namespace meshd::kernels
