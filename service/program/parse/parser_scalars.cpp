// Scalars and shapes of MLIR's dialects arith, tensor and shape, as torch-mlir and older pipelines print them between
// StableHLO's ops to compute sizes. A scalar is a tensor without dimensions, an index is an i64, and what is computed
// of them are ops of StableHLO.
//
//   %c = arith.constant 1 : index                       ->  constant dense<1> : tensor<i64>
//   %d = tensor.dim %a, %c : tensor<?x?xf32>            ->  convert(get_dimension_size(%a, dim = 1)) : tensor<i64>
//   %n = arith.index_cast %d : index to i32             ->  convert %d : tensor<i32>
//   %s = tensor.from_elements %n, %n : tensor<2xi32>    ->  concatenate(reshape %n, reshape %n)
//   %e = tensor.extract %s[%c] : tensor<2xi32>          ->  reshape(dynamic_slice(%s, %c)) : tensor<i32>
//   %v = shape.shape_of %a : tensor<?x?xf32> -> tensor<2xindex>  ->  the sizes of all dimensions, concatenated
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "service/program/literals/float_literal.h"
#include "service/program/parse/parser.h"

namespace meshd::program {

enum class ScalarForm : uint8_t {
  kConstant,
  kConstantShape,
  kBinary,  ///< arith.addi %a, %b : i64
  kUnary,
  kCompare,
  kSelect,
  kConvert,  ///< arith.index_cast %a : index to i64
  kBitcast,
  kCast,  ///< tensor.cast: another type of the same tensor
  kDim,
  kExtract,
  kFromElements,
  kDynamicReshape,
  kShapeOf,
  kElementCount,
  kBroadcastShapes,
};

/// A predicate of arith in MLIR's order. Ordered comparisons of floats are StableHLO's; of NE it has the unordered one.
struct Predicate {
  std::string_view name;
  std::string_view direction;  ///< empty: StableHLO has none
  bool is_unsigned = false;
};

struct ScalarRow {
  std::string_view name;
  ScalarForm form;
  std::string_view writes = {};          ///< an op of StableHLO, of forms that stand for one
  std::string_view writes_of_bits = {};  ///< the same of booleans, which wrap at one bit: as signed numbers 0 and -1
  std::span<const Predicate> predicates = {};
  bool is_unsigned = false;     ///< operands are read as unsigned
  bool gives_unsigned = false;  ///< kConvert: the result is
  bool has_sign = false;        ///< kConvert: the one bit of a boolean is its sign
  bool keeps_bits = false;      ///< kConvert: the last bit becomes a boolean, where StableHLO asks whether any is set
};

namespace {

using tensor::DType;

constexpr auto kIntegerPredicates = std::to_array<Predicate>({{"eq", "EQ"},
                                                              {"ne", "NE"},
                                                              {"slt", "LT"},
                                                              {"sle", "LE"},
                                                              {"sgt", "GT"},
                                                              {"sge", "GE"},
                                                              {"ult", "LT", true},
                                                              {"ule", "LE", true},
                                                              {"ugt", "GT", true},
                                                              {"uge", "GE", true}});
constexpr auto kFloatPredicates = std::to_array<Predicate>({{"false", ""},
                                                            {"oeq", "EQ"},
                                                            {"ogt", "GT"},
                                                            {"oge", "GE"},
                                                            {"olt", "LT"},
                                                            {"ole", "LE"},
                                                            {"one", ""},
                                                            {"ord", ""},
                                                            {"ueq", ""},
                                                            {"ugt", ""},
                                                            {"uge", ""},
                                                            {"ult", ""},
                                                            {"ule", ""},
                                                            {"une", "NE"},
                                                            {"uno", ""},
                                                            {"true", ""}});

constexpr auto kRows = std::to_array<ScalarRow>({
    {.name = "arith.constant", .form = ScalarForm::kConstant},
    {.name = "shape.const_shape", .form = ScalarForm::kConstantShape},
    {.name = "arith.addi", .form = ScalarForm::kBinary, .writes = "stablehlo.add", .writes_of_bits = "stablehlo.xor"},
    {.name = "arith.subi",
     .form = ScalarForm::kBinary,
     .writes = "stablehlo.subtract",
     .writes_of_bits = "stablehlo.xor"},
    {.name = "arith.muli",
     .form = ScalarForm::kBinary,
     .writes = "stablehlo.multiply",
     .writes_of_bits = "stablehlo.and"},
    {.name = "arith.divsi", .form = ScalarForm::kBinary, .writes = "stablehlo.divide"},
    {.name = "arith.remsi", .form = ScalarForm::kBinary, .writes = "stablehlo.remainder"},
    {.name = "arith.maxsi",
     .form = ScalarForm::kBinary,
     .writes = "stablehlo.maximum",
     .writes_of_bits = "stablehlo.and"},
    {.name = "arith.minsi",
     .form = ScalarForm::kBinary,
     .writes = "stablehlo.minimum",
     .writes_of_bits = "stablehlo.or"},
    {.name = "arith.andi", .form = ScalarForm::kBinary, .writes = "stablehlo.and"},
    {.name = "arith.ori", .form = ScalarForm::kBinary, .writes = "stablehlo.or"},
    {.name = "arith.xori", .form = ScalarForm::kBinary, .writes = "stablehlo.xor"},
    {.name = "arith.shli", .form = ScalarForm::kBinary, .writes = "stablehlo.shift_left"},
    {.name = "arith.shrsi", .form = ScalarForm::kBinary, .writes = "stablehlo.shift_right_arithmetic"},
    {.name = "arith.shrui", .form = ScalarForm::kBinary, .writes = "stablehlo.shift_right_logical"},
    {.name = "arith.divui", .form = ScalarForm::kBinary, .writes = "stablehlo.divide", .is_unsigned = true},
    {.name = "arith.remui", .form = ScalarForm::kBinary, .writes = "stablehlo.remainder", .is_unsigned = true},
    {.name = "arith.maxui", .form = ScalarForm::kBinary, .writes = "stablehlo.maximum", .is_unsigned = true},
    {.name = "arith.minui", .form = ScalarForm::kBinary, .writes = "stablehlo.minimum", .is_unsigned = true},
    {.name = "arith.addf", .form = ScalarForm::kBinary, .writes = "stablehlo.add"},
    {.name = "arith.subf", .form = ScalarForm::kBinary, .writes = "stablehlo.subtract"},
    {.name = "arith.mulf", .form = ScalarForm::kBinary, .writes = "stablehlo.multiply"},
    {.name = "arith.divf", .form = ScalarForm::kBinary, .writes = "stablehlo.divide"},
    {.name = "arith.remf", .form = ScalarForm::kBinary, .writes = "stablehlo.remainder"},
    {.name = "arith.maximumf", .form = ScalarForm::kBinary, .writes = "stablehlo.maximum"},
    {.name = "arith.minimumf", .form = ScalarForm::kBinary, .writes = "stablehlo.minimum"},
    {.name = "arith.negf", .form = ScalarForm::kUnary, .writes = "stablehlo.negate"},
    {.name = "arith.cmpi", .form = ScalarForm::kCompare, .predicates = kIntegerPredicates},
    {.name = "arith.cmpf", .form = ScalarForm::kCompare, .predicates = kFloatPredicates},
    {.name = "arith.select", .form = ScalarForm::kSelect},
    {.name = "arith.index_cast", .form = ScalarForm::kConvert, .has_sign = true, .keeps_bits = true},
    {.name = "arith.extsi", .form = ScalarForm::kConvert, .has_sign = true},
    {.name = "arith.trunci", .form = ScalarForm::kConvert, .keeps_bits = true},
    {.name = "arith.sitofp", .form = ScalarForm::kConvert, .has_sign = true},
    {.name = "arith.fptosi", .form = ScalarForm::kConvert},
    {.name = "arith.fptoui", .form = ScalarForm::kConvert, .gives_unsigned = true},
    {.name = "arith.extf", .form = ScalarForm::kConvert},
    {.name = "arith.truncf", .form = ScalarForm::kConvert},
    {.name = "arith.index_castui", .form = ScalarForm::kConvert, .is_unsigned = true, .keeps_bits = true},
    {.name = "arith.extui", .form = ScalarForm::kConvert, .is_unsigned = true},
    {.name = "arith.uitofp", .form = ScalarForm::kConvert, .is_unsigned = true},
    {.name = "arith.bitcast", .form = ScalarForm::kBitcast},
    {.name = "tensor.cast", .form = ScalarForm::kCast},
    {.name = "tensor.dim", .form = ScalarForm::kDim},
    {.name = "tensor.extract", .form = ScalarForm::kExtract},
    {.name = "shape.get_extent", .form = ScalarForm::kExtract},
    {.name = "tensor.from_elements", .form = ScalarForm::kFromElements},
    {.name = "tensor.reshape", .form = ScalarForm::kDynamicReshape},
    {.name = "shape.shape_of", .form = ScalarForm::kShapeOf},
    {.name = "shape.num_elements", .form = ScalarForm::kElementCount},
    {.name = "shape.broadcast", .form = ScalarForm::kBroadcastShapes},
});

const ScalarRow* find_row(std::string_view name) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const ScalarRow& row) { return row.name == name; });
  return found == kRows.end() ? nullptr : &*found;
}

ir::Type with_dtype(const ir::Type& type, DType dtype) {
  ir::Type out = type;
  out.tensor.dtype = dtype;
  return out;
}

/// The unsigned type of the same width; a boolean is one already.
DType unsigned_of(DType dtype) {
  const std::string_view name = tensor::row(dtype).stablehlo;
  const auto found = name.starts_with('i') ? tensor::dtype_from_stablehlo("u" + std::string(name)) : std::nullopt;
  return dtype == DType::kBool || !found ? dtype : *found;
}

/// `value` as the element of a tensor without dimensions; nothing where the attribute is no number.
std::optional<ir::DenseAttr> as_dense(const ir::Attribute& value) {
  if (const auto* dense = value.as<ir::DenseAttr>()) return *dense;
  const auto* integer = value.as<ir::IntegerAttr>();
  const auto* real = value.as<ir::FloatAttr>();
  if (integer == nullptr && real == nullptr) return std::nullopt;
  const std::string& name = integer != nullptr ? integer->type : real->type;
  const auto dtype = name == "index" ? std::optional(DType::kInt64) : tensor::dtype_from_stablehlo(name);
  if (!dtype || tensor::is_float(*dtype) != (real != nullptr)) return std::nullopt;
  uint64_t bits = real != nullptr ? float_bits(*dtype, real->value) : static_cast<uint64_t>(integer->value);
  // 15 : i4 is -1, and -1 : i1 is true.
  const int width = tensor::row(*dtype).bits;
  if (integer != nullptr && width < 64) {
    bits &= (uint64_t{1} << width) - 1;
    if (tensor::is_signed_integer(*dtype) && (bits >> (width - 1) & 1) != 0) bits |= UINT64_MAX << width;
  }
  std::vector<std::byte> element(static_cast<size_t>(tensor::size_bytes(*dtype)));
  std::memcpy(element.data(), &bits, element.size());
  return ir::splat_attr({*dtype, {}}, std::move(element));
}

}  // namespace

/// One op of these dialects with its parts, and the ops that it becomes.
struct Parser::ScalarOp {
  Parser& parser;
  const ScalarRow& row;
  const Token& where;
  ir::Op& source;
  ir::Type result = {};
  std::vector<ir::ValueId>& operands = source.operands;

  [[noreturn]] void refuse(const std::string& what) const {
    fail("invalid_program", where, fmt::format("'{}' {}", row.name, what));
  }

  [[nodiscard]] const ir::Type& type_of(ir::ValueId value) const { return parser.function_->type_of(value); }
  [[nodiscard]] const ir::Type& type(size_t operand) const { return type_of(operands[operand]); }

  ir::ValueId add(std::string_view name, std::vector<ir::ValueId> of, ir::Type made,
                  ir::AttributeList with = {}) const {
    return parser.append(name, source.location, std::move(of), {std::move(made)}, std::move(with), {});
  }

  /// `to` is a copy: types of values move when an op is added.
  ir::ValueId converted(ir::ValueId value, ir::Type to) const {
    if (type_of(value) == to) return value;
    return add("stablehlo.convert", {value}, std::move(to));
  }

  ir::ValueId integer(int64_t value, const tensor::Dims& dims = {}) const {
    const int64_t count = tensor::element_count({DType::kInt64, dims});
    return add("stablehlo.constant", {}, ir::Type::of({DType::kInt64, dims}),
               {{"value", ir::Attribute{ir::dense_integers_attr(std::vector<int64_t>(static_cast<size_t>(count), value),
                                                                dims)}}});
  }

  ir::ValueId reshaped(ir::ValueId value, tensor::Dims dims) const {
    if (type_of(value).dims() == dims) return value;
    ir::Type made = ir::Type::of({type_of(value).dtype(), std::move(dims)});
    return add("stablehlo.reshape", {value}, std::move(made));
  }

  /// A vector of the values, which are scalars.
  [[nodiscard]] ir::ValueId concatenated(const std::vector<ir::ValueId>& values, DType dtype) const {
    const auto count = static_cast<int64_t>(values.size());
    const ir::Type made = ir::Type::of({dtype, {count}});
    if (values.empty()) return converted(integer(0, {0}), made);
    std::vector<ir::ValueId> parts;
    for (const ir::ValueId value : values) parts.push_back(reshaped(value, {1}));
    if (count == 1) return parts[0];
    return add("stablehlo.concatenate", parts, made, {{"dimension", ir::integer_attr(0)}});
  }

  /// The element of a tensor at scalar indices.
  [[nodiscard]] ir::ValueId element(ir::ValueId of, const std::vector<ir::ValueId>& indices) const {
    if (indices.empty()) return of;
    const DType dtype = type_of(of).dtype();
    const tensor::Dims ones(indices.size(), 1);
    std::vector<ir::ValueId> all{of};
    all.insert(all.end(), indices.begin(), indices.end());
    const ir::ValueId slice =
        add("stablehlo.dynamic_slice", all, ir::Type::of({dtype, ones}),
            {{"slice_sizes", ir::Attribute{ir::IntArrayAttr{{ones.begin(), ones.end()}, "i64"}}}});
    return reshaped(slice, {});
  }

  [[nodiscard]] ir::ValueId size(ir::ValueId of, int64_t dim) const {
    const ir::ValueId size = add("stablehlo.get_dimension_size", {of}, ir::Type::of({DType::kInt32, {}}),
                                 {{"dimension", ir::integer_attr(dim)}});
    return converted(size, ir::Type::of({DType::kInt64, {}}));
  }

  [[nodiscard]] ir::ValueId sizes(ir::ValueId of) const {
    if (!type_of(of).is_tensor()) refuse("takes a tensor");
    std::vector<ir::ValueId> all;
    for (int64_t dim = 0; dim < type_of(of).rank(); ++dim) all.push_back(size(of, dim));
    return concatenated(all, DType::kInt64);
  }

  /// The number of elements of an operand with sizes, which must be known where the program is read.
  [[nodiscard]] int64_t length(size_t operand) const {
    const ir::Type& given = type(operand);
    if (given.is_tensor() && given.rank() == 1 && given.dims()[0] >= 0 && given.dims()[0] <= kMaxRank)
      return given.dims()[0];
    fail(
        "unsupported_type", where,
        fmt::format("'{}' takes sizes of a known number, such as tensor<2xindex>, got {}", row.name, to_string(given)));
  }

  void expect_operands(size_t count) const {
    if (operands.size() != count) refuse(fmt::format("takes {} operands, got {}", count, operands.size()));
  }

  [[nodiscard]] ir::ValueId constant() const {
    ir::AttributeList attributes = source.attributes;
    const std::string_view name = row.form == ScalarForm::kConstant ? "value" : "shape";
    const auto given =
        std::find_if(attributes.begin(), attributes.end(), [&](const auto& a) { return a.name == name; });
    auto dense = given == attributes.end() ? std::nullopt : as_dense(given->value);
    if (!dense) refuse("needs a number or dense<...>");
    dense->is_index = false;
    const ir::Type made = ir::Type::of(dense->type);
    std::optional<int64_t> known;
    if (made.rank() == 0 && made.dtype() == DType::kInt64) known = ir::dense_ints(*dense)[0];
    *given = {"value", ir::Attribute{std::move(*dense)}};
    const ir::ValueId out = add("stablehlo.constant", {}, made, std::move(attributes));
    if (known) parser.known_scalars_.emplace(out, *known);
    return out;
  }

  [[nodiscard]] ir::ValueId binary() const {
    expect_operands(2);
    const bool is_bit = type(0).is_tensor() && type(0).dtype() == DType::kBool;
    const std::string_view op = is_bit && !row.writes_of_bits.empty() ? row.writes_of_bits : row.writes;
    if (!row.is_unsigned) return add(op, operands, type(0));
    const ir::Type as = with_dtype(type(0), unsigned_of(type(0).dtype()));
    return converted(add(op, {converted(operands[0], as), converted(operands[1], as)}, as), type(0));
  }

  [[nodiscard]] ir::ValueId compare() const {
    expect_operands(2);
    const ir::Attribute* given = ir::find(source.attributes, "predicate");
    const auto* number = given == nullptr ? nullptr : given->as<ir::IntegerAttr>();
    if (number == nullptr || number->value < 0 || number->value >= static_cast<int64_t>(row.predicates.size()))
      refuse("needs a predicate");
    const Predicate& predicate = row.predicates[static_cast<size_t>(number->value)];
    if (predicate.direction.empty())
      fail("unsupported_op", where,
           fmt::format("'{}' with the predicate {} is not supported", row.name, predicate.name));
    const ir::Type as = predicate.is_unsigned ? with_dtype(type(0), unsigned_of(type(0).dtype())) : type(0);
    return add("stablehlo.compare", {converted(operands[0], as), converted(operands[1], as)},
               with_dtype(type(0), DType::kBool),
               {{"comparison_direction",
                 ir::Attribute{ir::EnumAttr{"comparison_direction", std::string(predicate.direction)}}}});
  }

  [[nodiscard]] ir::ValueId convert() const {
    expect_operands(1);
    if (!type(0).is_tensor() || !result.is_tensor()) refuse("takes a number or a tensor");
    const bool is_bit = type(0).dtype() == DType::kBool;
    ir::ValueId from = operands[0];
    if (row.is_unsigned) from = converted(from, with_dtype(type(0), unsigned_of(type(0).dtype())));
    if (row.gives_unsigned) from = converted(from, with_dtype(result, unsigned_of(result.dtype())));
    if (row.keeps_bits && result.dtype() == DType::kBool && !is_bit) {
      if (type(0).rank() != 0) refuse("to i1 takes a number");
      const ir::Type wide = type_of(from);
      from = add("stablehlo.and", {from, converted(integer(1), wide)}, wide);
    }
    const ir::ValueId out = converted(from, result);
    return is_bit && row.has_sign ? add("stablehlo.negate", {out}, result) : out;
  }

  [[nodiscard]] ir::ValueId element_count() const {
    expect_operands(1);
    ir::ValueId out = integer(1);
    for (int64_t i = 0; i < length(0); ++i) {
      const ir::ValueId next = element(operands[0], {integer(i)});
      out = add("stablehlo.multiply", {out, next}, type_of(out));
    }
    return out;
  }

  /// Sizes of one are those of the other shape, from the last on.
  [[nodiscard]] ir::ValueId broadcast_shapes() const {
    if (operands.empty()) refuse("takes at least one operand");
    int64_t rank = 0;
    for (size_t i = 0; i < operands.size(); ++i) rank = std::max(rank, length(i));
    ir::ValueId out = ir::kNoValue;
    for (size_t i = 0; i < operands.size(); ++i) {
      ir::ValueId sizes = operands[i];
      const ir::Type all = ir::Type::of({DType::kInt64, {rank}});
      const int64_t missing = rank - length(i);
      if (missing > 0)
        sizes = add("stablehlo.concatenate", {integer(1, {missing}), sizes}, all, {{"dimension", ir::integer_attr(0)}});
      if (out == ir::kNoValue) {
        out = sizes;
        continue;
      }
      const ir::ValueId is_one =
          add("stablehlo.compare", {out, integer(1, {rank})}, with_dtype(all, DType::kBool),
              {{"comparison_direction", ir::Attribute{ir::EnumAttr{"comparison_direction", "EQ"}}}});
      out = add("stablehlo.select", {is_one, sizes, out}, all);
    }
    return out;
  }

  [[nodiscard]] ir::ValueId write() const {
    switch (row.form) {
      case ScalarForm::kConstant:
      case ScalarForm::kConstantShape:
        return constant();
      case ScalarForm::kBinary:
        return binary();
      case ScalarForm::kUnary:
        expect_operands(1);
        return add(row.writes, operands, type(0));
      case ScalarForm::kCompare:
        return compare();
      case ScalarForm::kSelect:
        expect_operands(3);
        return add("stablehlo.select", operands, type(1));
      case ScalarForm::kConvert:
        return convert();
      case ScalarForm::kBitcast:
        expect_operands(1);
        return add("stablehlo.bitcast_convert", operands, result);
      case ScalarForm::kCast:
        expect_operands(1);
        return add("stablehlo.convert", operands, result);
      case ScalarForm::kDim: {
        expect_operands(2);
        const auto dim = parser.known_scalars_.find(operands[1]);
        if (dim == parser.known_scalars_.end()) return element(sizes(operands[0]), {operands[1]});
        return size(operands[0], dim->second);
      }
      case ScalarForm::kExtract:
        if (operands.empty() || !type(0).is_tensor() || type(0).rank() != static_cast<int64_t>(operands.size()) - 1)
          refuse("takes a tensor and an index for each of its dimensions");
        return element(operands[0], {operands.begin() + 1, operands.end()});
      case ScalarForm::kFromElements:
        if (!result.is_tensor()) refuse("gives a tensor");
        if (operands.size() == 1 && result.rank() == 0) return operands[0];
        return reshaped(concatenated(operands, result.dtype()), result.dims());
      case ScalarForm::kDynamicReshape:
        expect_operands(2);
        return add("stablehlo.dynamic_reshape", operands, result);
      case ScalarForm::kShapeOf:
        expect_operands(1);
        return sizes(operands[0]);
      case ScalarForm::kElementCount:
        return element_count();
      case ScalarForm::kBroadcastShapes:
        return broadcast_shapes();
    }
    refuse("is not supported");
  }
};

bool Parser::is_scalar_op(std::string_view name) { return find_row(name) != nullptr; }

ir::Type Parser::scalar_or_tensor() {
  if (!token_.is(TokenKind::kWord) || at("tensor") || at("tuple")) return type();
  return ir::Type::of({element_type().dtype, {}});
}

void Parser::pretty_scalar(OperationState& state, ScalarOp& op) {
  const ScalarForm form = op.row.form;
  ir::AttributeList& attributes = state.op.attributes;
  for (auto& entry : optional_attribute_dict()) attributes.push_back(std::move(entry));
  if (form == ScalarForm::kConstantShape) {
    const std::vector<int64_t> sizes = integer_list("around sizes");
    attributes.emplace_back("shape",
                            ir::Attribute{ir::dense_integers_attr(sizes, {static_cast<int64_t>(sizes.size())})});
    expect(':', "before the type of an op");
    type();
    return;
  }
  if (form == ScalarForm::kConstant) {
    attributes.emplace_back("value", attribute());
    return;
  }
  if (form == ScalarForm::kCompare) {
    const Token word = expect(TokenKind::kWord, "a predicate such as slt");
    const std::span<const Predicate> all = op.row.predicates;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Predicate& p) { return p.name == word.text; });
    if (found == all.end()) fail("program_syntax", word, describe(word) + " is no predicate of " + state.op.name);
    attributes.emplace_back("predicate", ir::integer_attr(found - all.begin()));
    expect(',', "behind a predicate");
  }
  std::vector<ir::ValueId>& operands = state.op.operands;
  if (token_.is(TokenKind::kValue)) {
    do operands.push_back(value_use());
    while (accept(','));
  }
  if (at('[')) list('[', ']', "around indices", [&] { operands.push_back(value_use()); });
  if (at('(')) {
    for (const ir::ValueId value : operands_in_parentheses()) operands.push_back(value);
  }
  // What may be assumed of a result: overflow<nsw>, fastmath<fast>.
  while (token_.is(TokenKind::kWord)) {
    advance();
    skip_balanced();
  }
  for (auto& entry : optional_attribute_dict()) attributes.push_back(std::move(entry));
  expect(':', "before the type of an op");
  if (at('(')) {
    list('(', ')', "around types", [&] { state.result_types.push_back(scalar_or_tensor()); });
  } else {
    do state.result_types.push_back(scalar_or_tensor());
    while (accept(','));
  }
  std::vector<ir::Type>& types = state.result_types;
  if (types.empty()) fail("program_syntax", token_, "expected the types of '" + state.op.name + "'");
  if (accept("to") || token_.is(TokenKind::kArrow)) {
    if (token_.is(TokenKind::kArrow)) advance();
    check_operands(state, types);
    op.result = scalar_or_tensor();
  } else if (form == ScalarForm::kFromElements) {
    op.result = types[0];
  } else if (form == ScalarForm::kDim || form == ScalarForm::kExtract) {
    const ir::Type index = ir::Type::of({DType::kInt64, {}});
    types.resize(operands.size(), index);
    check_operands(state, types);
  } else if (form == ScalarForm::kSelect && types.size() == 2) {
    check_operands(state, {types[0], types[1], types[1]});
  } else {
    const bool chooses = form == ScalarForm::kSelect && !operands.empty();
    std::vector<ir::Type> same(operands.size(), types[0]);
    if (chooses) same[0] = ir::Type::of({DType::kBool, {}});
    check_operands(state, same);
  }
}

void Parser::scalar_op(OperationState& state, const Token& where, const std::string& name, bool is_generic) {
  state.op.name = name;
  ScalarOp op{*this, *find_row(name), where, state.op};
  if (is_generic) {
    state.op.operands = operands_in_parentheses();
    if (accept('<')) {
      state.op.attributes = attribute_dict();
      expect('>', "behind the properties of an op");
    }
    for (auto& entry : optional_attribute_dict()) state.op.attributes.push_back(std::move(entry));
    expect(':', "before the type of an op");
    std::vector<ir::Type> types;
    list('(', ')', "around types", [&] { types.push_back(scalar_or_tensor()); });
    check_operands(state, types);
    expect(TokenKind::kArrow, "'->' in the type of an op");
    op.result = scalar_or_tensor();
  } else {
    pretty_scalar(state, op);
  }
  state.op.location.name = optional_location();
  name_results(state, where, op.write(), 1);
}

}  // namespace meshd::program
