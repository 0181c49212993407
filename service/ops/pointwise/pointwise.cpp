#include "service/ops/pointwise/pointwise.h"

#include <fmt/core.h>

#include <string>

#include "service/ops/checks.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using tensor::DType;
using tensor::DTypeClass;

DType result_of(Gives gives, DType operand) {
  switch (gives) {
    case Gives::kSame:
      return operand;
    case Gives::kBool:
      return DType::kBool;
    case Gives::kPart:
      return part_of(operand);
    case Gives::kComplex:
      return tensor::complex_of(operand);
  }
  return operand;
}

}  // namespace

bool contains(DTypeSet set, DType dtype) {
  switch (tensor::row(dtype).kind) {
    case DTypeClass::kBool:
      return (set & kBools) != 0;
    case DTypeClass::kSigned:
      return (set & kSignedIntegers) != 0;
    case DTypeClass::kUnsigned:
      return (set & kUnsignedIntegers) != 0;
    case DTypeClass::kFloat:
      return (set & kFloats) != 0;
    case DTypeClass::kComplex:
      return (set & kComplexes) != 0;
  }
  return false;
}

std::string text(DTypeSet set) {
  std::vector<std::string> words;
  if ((set & kBools) != 0) words.emplace_back("boolean");
  if ((set & kIntegers) == kIntegers) {
    words.emplace_back("integer");
  } else if ((set & kSignedIntegers) != 0) {
    words.emplace_back("signed integer");
  } else if ((set & kUnsignedIntegers) != 0) {
    words.emplace_back("unsigned integer");
  }
  if ((set & kFloats) != 0) words.emplace_back("floating-point");
  if ((set & kComplexes) != 0) words.emplace_back("complex");
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i != 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::vector<ir::Type> infer_pointwise(const OpView& view, std::string_view op, size_t operand_count, DTypeSet takes,
                                      Gives gives) {
  expect_operand_count(view, op, operand_count);
  for (size_t i = 0; i < operand_count; ++i) {
    expect_tensor(view, op, i);
    if (!contains(takes, view.operands[i].dtype())) {
      reject(view,
             fmt::format("{} I{}: element type must be {}, got {}", op, i + 1, text(takes), operand_text(view, i)));
    }
  }
  // checks: pointwise C1: operands have one type, and the result their shape
  tensor::Dims dims = view.operands[0].dims();
  for (size_t i = 1; i < operand_count; ++i) {
    if (!compatible(view.operands[0], view.operands[i])) {
      reject(view, fmt::format("{} C1: operands must have one type (operand 0 is {}, operand {} is {})", op,
                               operand_text(view, 0), i, operand_text(view, i)));
    }
    dims = merged(dims, view.operands[i].dims());
  }
  return agree(view, std::string(op) + " C1",
               {ir::Type::of({result_of(gives, view.operands[0].dtype()), std::move(dims)})});
}

sharding::FactorRule pointwise_rule(const OpView& view) { return rule_builder(view).pointwise().build(); }

}  // namespace meshd::ops
