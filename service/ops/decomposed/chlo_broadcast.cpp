// chlo.broadcast_*: pointwise ops of operands whose shapes NumPy would broadcast. The operand of lower rank is aligned
// at the last dimensions, or at broadcast_dimensions; then dimensions of one element are repeated.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/fixed_string.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using tensor::kDynamicDim;
using Values = std::optional<std::vector<ir::ValueId>>;

/// Where the dimensions of an operand go in a result of `rank` dimensions.
std::vector<int64_t> places(const OpView& view, const ir::Type& operand, int64_t rank) {
  if (operand.rank() < rank && ir::find(attributes_of(view), "broadcast_dimensions") != nullptr)
    return ir::ints(attributes_of(view), "broadcast_dimensions");
  std::vector<int64_t> out;
  for (int64_t d = rank - operand.rank(); d < rank; ++d) out.push_back(d);
  return out;
}

/// The shape that all operands broadcast to.
Dims broadcast_shape(const OpView& view, const std::string& op) {
  int64_t rank = 0;
  for (const ir::Type& operand : view.operands) rank = std::max(rank, operand.rank());
  Dims out(static_cast<size_t>(rank), 1);
  for (size_t i = 0; i < view.operands.size(); ++i) {
    const ir::Type& operand = view.operands[i];
    const std::vector<int64_t> into = places(view, operand, rank);
    bool fits = static_cast<int64_t>(into.size()) == operand.rank() && std::is_sorted(into.begin(), into.end());
    for (size_t d = 0; fits && d < into.size(); ++d) {
      fits = into[d] >= 0 && into[d] < rank;
      if (!fits) break;
      int64_t& size = out[static_cast<size_t>(into[d])];
      const int64_t own = operand.dims()[d];
      fits = own == 1 || size == 1 || own == size || own == kDynamicDim || size == kDynamicDim;
      if (own == 1 || own == size) continue;
      // A dynamic dimension beside a larger one can only be that, or one.
      if (size == 1 || (size == kDynamicDim && own != kDynamicDim)) size = own;
    }
    if (!fits) {
      reject(view, fmt::format("{} C1: shapes do not broadcast together: operand {} is {}, the others have {}", op, i,
                               operand_text(view, i), tensor::to_string(std::span<const int64_t>(out))));
    }
  }
  return out;
}

/// The op that is broadcast: "chlo.broadcast_add" -> stablehlo.add, "chlo.broadcast_zeta" -> chlo.zeta.
std::string plain_name(std::string_view name) {
  const std::string op(name.substr(std::string_view("chlo.broadcast_").size()));
  const std::string full = "stablehlo." + op;
  return find_op(full) != nullptr ? full : "chlo." + op;
}

/// Attributes as the plain op writes them.
ir::AttributeList plain_attributes(const OpView& view) {
  ir::AttributeList out;
  for (const auto& [name, attribute] : attributes_of(view)) {
    if (name == "broadcast_dimensions" || name == "sdy.sharding") continue;
    ir::Attribute plain = attribute;
    if (const auto* word = attribute.as<ir::EnumAttr>(); word != nullptr && word->kind.starts_with("chlo."))
      plain.value = ir::EnumAttr{word->kind.substr(5), word->value};
    out.emplace_back(name, std::move(plain));
  }
  return out;
}

/// Types of the operands once they have one shape.
std::vector<ir::Type> broadcast_types(const OpView& view, const Dims& dims) {
  std::vector<ir::Type> out;
  for (const ir::Type& operand : view.operands) out.push_back(ir::Type::of({operand.dtype(), dims}));
  return out;
}

template <FixedString kName>
std::vector<ir::Type> infer_chlo_broadcast(const OpView& view) {
  const std::string op(mnemonic(kName.view()));
  for (size_t i = 0; i < view.operands.size(); ++i) expect_tensor(view, op, i);
  const std::vector<ir::Type> operands = broadcast_types(view, broadcast_shape(view, op));
  const ir::AttributeList attributes = plain_attributes(view);
  OpView plain = view;
  plain.operands = operands;
  plain.attributes = &attributes;
  plain.results = {};
  return agree(view, op + " C2", find_op(plain_name(kName.view()))->infer(plain));
}

Values expand(const OpView& view, Writer& writer) {
  const std::string op(mnemonic(view.op->name));
  const Dims dims = broadcast_shape(view, op);
  if (std::count(dims.begin(), dims.end(), kDynamicDim) != 0) return std::nullopt;
  std::vector<ir::ValueId> operands;
  for (size_t i = 0; i < view.operands.size(); ++i) {
    operands.push_back(writer.broadcast(view.op->operands[i], dims,
                                        places(view, view.operands[i], static_cast<int64_t>(dims.size()))));
  }
  return std::vector{writer.add(plain_name(view.op->name), std::move(operands), plain_attributes(view))};
}

template <FixedString kName, FixedString kElement = "f32", FixedString kResult = kElement>
OpDef binary(std::string_view summary) {
  OpDef def;
  def.name = kName.view();
  def.summary = summary;
  def.signature = {.operand_min = 2,
                   .operand_max = 2,
                   .attributes = {{"broadcast_dimensions", false, "result dims of the operand of lower rank"}}};
  def.infer = infer_chlo_broadcast<kName>;
  def.bounded = BoundedForm::kBroadcasting;
  def.propagation.elementwise = Elementwise::kAlways;
  def.expand = expand;
  def.example = Joined<"module @jit_f {\n  func.func public @main(%arg0: tensor<3x4x", kElement, ">, %arg1: tensor<4x",
                       kElement, ">) -> tensor<3x4x", kResult, "> {\n    %0 = ", kName, " %arg0, %arg1 : (tensor<3x4x",
                       kElement, ">, tensor<4x", kElement, ">) -> tensor<3x4x", kResult,
                       ">\n    return %0 : tensor<3x4x", kResult, ">\n  }\n}\n">::view;
  return def;
}

OpDef broadcast_compare_row() {
  OpDef def = binary<"chlo.broadcast_compare", "f32", "i1">("comparison of broadcast operands");
  def.signature.attributes.push_back({"comparison_direction", true, "EQ, NE, GE, GT, LE or LT"});
  def.signature.attributes.push_back({"compare_type", false, "FLOAT, TOTALORDER, SIGNED or UNSIGNED"});
  def.example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<4xf32>) -> tensor<3x4xi1> {
    %0 = chlo.broadcast_compare %arg0, %arg1 {comparison_direction = #chlo<comparison_direction LT>} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xi1>
    return %0 : tensor<3x4xi1>
  }
}
)";
  return def;
}

OpDef broadcast_select_row() {
  OpDef def;
  def.name = "chlo.broadcast_select";
  def.summary = "select among broadcast operands";
  def.signature = {.operand_min = 3, .operand_max = 3};
  def.infer = infer_chlo_broadcast<"chlo.broadcast_select">;
  def.bounded = BoundedForm::kBroadcasting;
  def.propagation.elementwise = Elementwise::kAlways;
  def.expand = expand;
  def.example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xi1>, %arg1: tensor<3x4xf32>, %arg2: tensor<f32>) -> tensor<3x4xf32> {
    %0 = chlo.broadcast_select %arg0, %arg1, %arg2 : (tensor<4xi1>, tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
)";
  return def;
}

}  // namespace

std::vector<OpDef> chlo_broadcast_rows() {
  return {
      binary<"chlo.broadcast_add">("sum of broadcast operands"),
      binary<"chlo.broadcast_and", "i32">("bits of both broadcast operands"),
      binary<"chlo.broadcast_atan2">("angle of broadcast operands"),
      broadcast_compare_row(),
      binary<"chlo.broadcast_complex", "f32", "complex<f32>">("complex numbers of broadcast parts"),
      binary<"chlo.broadcast_divide">("quotient of broadcast operands"),
      binary<"chlo.broadcast_maximum">("larger of broadcast operands"),
      binary<"chlo.broadcast_minimum">("smaller of broadcast operands"),
      binary<"chlo.broadcast_multiply">("product of broadcast operands"),
      binary<"chlo.broadcast_next_after">("next number after the first towards the second of broadcast operands"),
      binary<"chlo.broadcast_or", "i32">("bits of either broadcast operand"),
      binary<"chlo.broadcast_polygamma">("polygamma of broadcast operands"),
      binary<"chlo.broadcast_power">("power of broadcast operands"),
      binary<"chlo.broadcast_remainder">("remainder of broadcast operands"),
      broadcast_select_row(),
      binary<"chlo.broadcast_shift_left", "i32">("bits of the first broadcast operand, moved up by the second"),
      binary<"chlo.broadcast_shift_right_arithmetic", "i32">(
          "bits of the first broadcast operand, moved down by the second, with the sign"),
      binary<"chlo.broadcast_shift_right_logical", "i32">(
          "bits of the first broadcast operand, moved down by the second, with zeros"),
      binary<"chlo.broadcast_subtract">("difference of broadcast operands"),
      binary<"chlo.broadcast_xor", "i32">("bits of one broadcast operand alone"),
      binary<"chlo.broadcast_zeta">("Hurwitz zeta of broadcast operands"),
  };
}

}  // namespace meshd::ops
