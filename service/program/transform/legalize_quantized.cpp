#include "service/program/transform/legalize_quantized.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "service/ir/op_builder.h"
#include "service/ops/op_def.h"
#include "service/program/literals/float_literal.h"
#include "service/program/literals/hex.h"

namespace meshd::program {
namespace {

using ir::Quantization;
using ir::ValueId;
using ops::QuantizedForm;
using tensor::DType;

constexpr int kIntegerBits = 32;

std::vector<std::byte> bytes_of(uint64_t bits, DType dtype) {
  std::vector<std::byte> out(static_cast<size_t>(tensor::size_bytes(dtype)));
  std::memcpy(out.data(), &bits, out.size());
  return out;
}

std::vector<std::byte> float_bytes(double value, DType dtype) { return bytes_of(float_bits(dtype, value), dtype); }

/// What differences of stored values are computed in: 32 bits, as in StableHLO's own legalisation, and 64 where the
/// stored values have 32 themselves.
DType integer_of(DType storage) { return tensor::row(storage).bits < kIntegerBits ? DType::kInt32 : DType::kInt64; }

/// Rewrites one function in place.
class Legalizer {
 public:
  explicit Legalizer(ir::Function& function) : function_(function), builder_(function, ops::code_of) {}

  void run() {
    rewrite(function_.body);
    for (ir::Value& value : function_.values) value.type = ir::storage_type(std::move(value.type));
    for (auto* parameters : {&function_.arguments, &function_.results}) {
      for (ir::Parameter& parameter : *parameters) {
        if (parameter.type.is_quantized()) parameter.quantized = to_string(*parameter.type.quantization);
        parameter.type = ir::storage_type(std::move(parameter.type));
      }
    }
  }

 private:
  void rewrite(ir::Region& region) {
    std::vector<ir::Op> written;
    const ir::OpBuilder::InsertionGuard inside(builder_, written);
    for (ir::Op& op : region.ops) {
      for (ir::Region& nested : op.regions) rewrite(nested);
      builder_.set_location(op.location);
      write(std::move(op));
    }
    region.ops = std::move(written);
  }

  [[nodiscard]] bool is_quantized(const std::vector<ValueId>& values) const {
    return std::any_of(values.begin(), values.end(), [&](ValueId id) { return function_.type_of(id).is_quantized(); });
  }

  void write(ir::Op op) {
    const bool is_touched = is_quantized(op.operands) || is_quantized(op.results);
    const ops::OpDef& def = ops::op(op.code);
    if (is_touched && def.quantized.form == QuantizedForm::kExpressed) return expressed(std::move(op));
    if (is_touched && def.quantized.form == QuantizedForm::kConvert) return convert(op);
    if (is_touched && ops::role_of(def.body) == ops::Structural::kConstant) constant(op);
    builder_.insert(std::move(op));
  }

  /// Dequantised operands, the op on floats, quantised results.
  void expressed(ir::Op op) {
    for (ValueId& operand : op.operands) operand = dequantized(operand);
    std::vector<std::pair<ValueId, ValueId>> quantized;  // floats, and what they become
    for (ValueId& result : op.results) {
      const ir::Type type = function_.type_of(result);
      if (!type.is_quantized()) continue;
      const ValueId floats = function_.add_value(ir::expressed_type(type));
      quantized.emplace_back(floats, result);
      result = floats;
    }
    builder_.insert(std::move(op));
    for (const auto& [floats, result] : quantized) quantize(floats, result, {});
  }

  void convert(const ir::Op& op) {
    const ValueId result = op.results[0];
    if (function_.type_of(result).is_quantized()) {
      quantize(dequantized(op.operands[0]), result, op.attributes);
    } else {
      dequantize(op.operands[0], result, op.attributes);
    }
  }

  /// The text writes elements as signless integers: an unsigned storage type reads the same bits.
  void constant(ir::Op& op) const {
    const DType storage = function_.type_of(op.results[0]).dtype();
    for (ir::NamedAttribute& entry : op.attributes) {
      auto* dense = entry.name == "value" ? std::get_if<ir::DenseAttr>(&entry.value.value) : nullptr;
      if (dense == nullptr || dense->type.dtype == storage) continue;
      dense->type.dtype = storage;
      if (tensor::row(storage).bits >= 8) continue;
      auto bytes = *dense->bytes;
      extend_narrow(storage, bytes);
      dense->bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    }
  }

  /// The value itself where it is not quantised.
  ValueId dequantized(ValueId value) {
    const ir::Type type = function_.type_of(value);
    if (!type.is_quantized()) return value;
    const ValueId result = function_.add_value(ir::expressed_type(type));
    dequantize(value, result, {});
    return result;
  }

  /// (value - zero point) * scale. Defines `result`.
  void dequantize(ValueId value, ValueId result, const ir::AttributeList& attributes) {
    const ir::Type type = function_.type_of(value);
    const Quantization& of = *type.quantization;
    const DType integer = integer_of(of.storage);
    ValueId stored = builder_.create_one("stablehlo.convert", {value}, ir::Type::of({integer, type.dims()}));
    if (has_zero_points(of)) stored = binary("chlo.broadcast_subtract", stored, zero_points(of, integer), of);
    const ir::Type floats = ir::expressed_type(type);
    const ValueId converted = builder_.create_one("stablehlo.convert", {stored}, floats);
    builder_.define({result}, "chlo.broadcast_multiply", {converted, scales(of)}, along(of, attributes));
  }

  /// round_nearest_even(clamp(min, floats / scale + zero point, max)). Defines `result`, whose type has the parameters.
  void quantize(ValueId floats, ValueId result, const ir::AttributeList& attributes) {
    const ir::QuantizationRef parameters_of_result = function_.type_of(result).quantization;
    const Quantization& of = *parameters_of_result;
    ValueId value = binary("chlo.broadcast_divide", floats, scales(of), of);
    if (has_zero_points(of)) value = binary("chlo.broadcast_add", value, zero_points(of, of.expressed), of);
    const ir::Type type = function_.type_of(floats);
    const auto bound = [&](int64_t at) {
      return builder_.constant(ir::splat_attr({of.expressed, {}}, float_bytes(static_cast<double>(at), of.expressed)));
    };
    const ValueId least = bound(of.storage_min);
    const ValueId largest = bound(of.storage_max);
    value = builder_.create_one("stablehlo.clamp", {least, value, largest}, type);
    value = builder_.create_one("stablehlo.round_nearest_even", {value}, type);
    builder_.define({result}, "stablehlo.convert", {value}, attributes);
  }

  static bool has_zero_points(const Quantization& of) {
    return std::any_of(of.zero_points.begin(), of.zero_points.end(), [](int64_t zero) { return zero != 0; });
  }

  /// An op on a value and what is beside it: a scalar, or one element for each slice of the quantisation dimension.
  ValueId binary(std::string_view name, ValueId value, ValueId beside, const Quantization& of) {
    const ir::Type type = function_.type_of(value);
    return builder_.create_one(name, {value, beside}, type, along(of, {}));
  }

  static ir::AttributeList along(const Quantization& of, ir::AttributeList attributes) {
    if (of.is_per_axis()) ir::set(attributes, "broadcast_dimensions", ir::int_array_attr({of.dimension}));
    return attributes;
  }

  template <typename Bytes>
  ValueId parameters(const Quantization& of, DType dtype, Bytes&& bytes_at) {
    if (!of.is_per_axis()) return builder_.constant(ir::splat_attr({dtype, {}}, bytes_at(0)));
    ir::DenseAttr dense;
    dense.type = {dtype, {static_cast<int64_t>(of.scales.size())}};
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < of.scales.size(); ++i) {
      const std::vector<std::byte> element = bytes_at(i);
      bytes.insert(bytes.end(), element.begin(), element.end());
    }
    dense.splat = of.scales.size() == 1;
    dense.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    return builder_.constant(std::move(dense));
  }

  ValueId scales(const Quantization& of) {
    return parameters(of, of.expressed, [&](size_t i) { return float_bytes(of.scales[i], of.expressed); });
  }

  ValueId zero_points(const Quantization& of, DType dtype) {
    return parameters(of, dtype, [&](size_t i) {
      return tensor::is_float(dtype) ? float_bytes(static_cast<double>(of.zero_points[i]), dtype)
                                     : bytes_of(static_cast<uint64_t>(of.zero_points[i]), dtype);
    });
  }

  ir::Function& function_;
  ir::OpBuilder builder_;
};

}  // namespace

bool has_quantized_types(const ir::Module& module) {
  return std::any_of(module.functions.begin(), module.functions.end(), [](const ir::Function& function) {
    return std::any_of(function.values.begin(), function.values.end(),
                       [](const ir::Value& value) { return ir::has_quantized(value.type); });
  });
}

ir::Module legalize_quantized(ir::Module module) {
  for (ir::Function& function : module.functions) Legalizer(function).run();
  return module;
}

}  // namespace meshd::program
