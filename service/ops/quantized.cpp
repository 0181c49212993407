#include "service/ops/quantized.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/ops/checks.h"

namespace meshd::ops {
namespace {

const std::string& name_of(const OpView& view) { return view.op->name; }

/// "add" of "stablehlo.add". For messages.
std::string short_name(const OpView& view) { return name_of(view).substr(name_of(view).find('.') + 1); }

std::vector<const ir::Type*> quantized_types(const OpView& view) {
  std::vector<const ir::Type*> out;
  for (const auto types : {view.operands, view.results}) {
    for (const ir::Type& type : types) {
      if (type.is_quantized()) out.push_back(&type);
    }
  }
  return out;
}

/// Parameters with the dimension left out: what stays where dimensions change places.
ir::Quantization without_dimension(const ir::Type& type) {
  ir::Quantization out = *type.quantization;
  out.dimension = type.quantization->is_per_axis() ? 0 : -1;
  return out;
}

bool same_baseline(const ir::Type& a, const ir::Type& b) {
  return a.quantization->storage == b.quantization->storage && a.quantization->expressed == b.quantization->expressed;
}

std::string pair_text(const ir::Type& a, const ir::Type& b) {
  return fmt::format(" ({} and {})", ir::to_string(a), ir::to_string(b));
}

void expect_same(const OpView& view, const ir::Type& a, const ir::Type& b) {
  if (a.quantization == b.quantization) return;
  reject(view, short_name(view) + ": tensors whose elements are moved have one element type, quantized alike" +
                   pair_text(a, b));
}

/// Booleans are never quantised: predicates, and what is asked of each element.
bool is_boolean(const ir::Type& type) { return type.is_tensor() && type.dtype() == tensor::DType::kBool; }

void expect_plain(const OpView& view, size_t operand) {
  if (!view.operands[operand].is_quantized()) return;
  reject(view, fmt::format("{}: operand {} is an index or a shape, which is not quantized, got {}", short_name(view),
                           operand, operand_text(view, operand)));
}

void check_same(const OpView& view, const QuantizedTypes& types) {
  const size_t count = view.operands.size();
  const size_t pairs = std::min(count, view.results.size());
  if (types.same == SameQuantized::kEach || types.same == SameQuantized::kReduced) {
    const size_t last = types.same == SameQuantized::kReduced ? count - pairs : count;
    for (size_t i = 0; i < pairs; ++i) expect_same(view, view.operands[i], view.results[i]);
    for (size_t i = pairs; i < last; ++i) expect_plain(view, i);
    for (size_t i = last; i < count; ++i) expect_same(view, view.operands[i], view.operands[i - last]);
  }
  if (types.same == SameQuantized::kAll) {
    for (size_t i = 0; i < count; ++i) {
      if (i >= types.element_operands) {
        expect_plain(view, i);
      } else if (!is_boolean(view.operands[i])) {
        expect_same(view, view.operands[i], view.results[0]);
      }
    }
  }
}

/// The operands whose elements value `index` of a region on scalars is one of.
std::span<const ir::Type> operands_of(const OpView& view, RegionArguments arguments, size_t index) {
  size_t operand = 0;
  switch (arguments) {
    case RegionArguments::kOther:
    case RegionArguments::kFixed:
      return view.operands;
    case RegionArguments::kEach:
      operand = index;
      break;
    case RegionArguments::kPairs:
      operand = index / 2;
      break;
    case RegionArguments::kReduction:
    case RegionArguments::kScatter:
      operand = index % view.results.size();
      break;
  }
  return operand < view.operands.size() ? view.operands.subspan(operand, 1) : std::span<const ir::Type>();
}

/// Regions on scalars take and return elements of the operands, quantised as these; some answer with a boolean.
void check_regions(const OpView& view, const OpDef& def) {
  const auto check = [&](const std::vector<ir::Type>& values, std::string_view before, std::string_view behind) {
    for (size_t i = 0; i < values.size(); ++i) {
      for (const ir::Type& operand : operands_of(view, def.region_arguments, i)) {
        const ir::Type element = ir::scalar_of(operand);
        if (values[i].dtype() == element.dtype() && values[i].quantization == element.quantization) continue;
        reject(view, fmt::format("{}: {}{}{} is {}, but elements of the operand are {}", short_name(view), before, i,
                                 behind, ir::to_string(values[i]), ir::to_string(element)));
      }
    }
  };
  for (const ir::Region& region : view.regions) {
    check(argument_types(view, region), "argument ", " of its region");
    const std::vector<ir::Type> returned = returned_types(view, region);
    if (!std::all_of(returned.begin(), returned.end(), is_boolean))
      check(returned, "value ", " that its region returns");
  }
}

/// As operand and result of a kind of movement: both quantised, with the same parameters.
std::pair<const ir::Quantization*, const ir::Quantization*> moved(const OpView& view, std::string_view label) {
  const ir::Type& operand = view.operands[0];
  const ir::Type& result = view.results[0];
  if (!operand.is_quantized() || !result.is_quantized() ||
      operand.quantization->is_per_axis() != result.quantization->is_per_axis()) {
    reject(view, std::string(label) + ": operand and result are quantized alike" + pair_text(operand, result));
  }
  for (size_t i = 1; i < view.operands.size(); ++i) expect_plain(view, i);
  return {&*operand.quantization, &*result.quantization};
}

int64_t count_of(const tensor::Dims& dims, int64_t first, int64_t last) {
  int64_t out = 1;
  for (int64_t i = first; i < last; ++i) out *= dims[static_cast<size_t>(i)];
  return out;
}

/// Constraints that dot_general and convolution share; `labels` are theirs.
struct ProductLabels {
  std::string_view quantized, storage, expressed, granularity, hybrid;
};

void check_product(const OpView& view, const ProductLabels& labels) {
  const ir::Type& lhs = view.operands[0];
  const ir::Type& rhs = view.operands[1];
  const ir::Type& result = view.results[0];
  const auto wrong = [&](std::string_view label, const std::string& rule) {
    reject(view, fmt::format("{} {}: {} ({}, {} and {})", short_name(view), label, rule, ir::to_string(lhs),
                             ir::to_string(rhs), ir::to_string(result)));
  };
  if (!rhs.is_quantized() || lhs.is_quantized() != result.is_quantized())
    wrong(labels.quantized, "rhs is quantized, and the result where lhs is");
  if (!lhs.is_quantized()) {
    const tensor::DType expressed = rhs.quantization->expressed;
    if (lhs.dtype() != expressed || result.dtype() != expressed)
      wrong(labels.hybrid, "lhs and result have the expressed type of rhs");
    return;
  }
  if (lhs.dtype() != rhs.dtype()) wrong(labels.storage, "lhs and rhs have one storage type");
  if (lhs.quantization->expressed != rhs.quantization->expressed ||
      lhs.quantization->expressed != result.quantization->expressed)
    wrong(labels.expressed, "lhs, rhs and result have one expressed type");
  if (!rhs.quantization->is_per_axis() && result.quantization->is_per_axis())
    wrong(labels.granularity, "the result is quantized per tensor where rhs is");
}

}  // namespace

void check_quantized(const OpView& view, const OpDef& def) {
  if (def.quantized.form == QuantizedForm::kRefused) {
    const std::vector<const ir::Type*> types = quantized_types(view);
    reject(view, "unsupported_type",
           "'" + name_of(view) + "' does not take quantized types" +
               (types.empty() ? std::string() : fmt::format(", got {}", ir::to_string(*types.front()))) +
               ": dequantize its operands before it (stablehlo.uniform_dequantize)");
  }
  if (view.results.empty()) return;  // infer refuses it where the op has results
  for (const ir::Type* type : quantized_types(view)) {
    if (def.quantized.per_axis || !type->quantization->is_per_axis()) continue;
    reject(view,
           fmt::format("{}: its tensors are quantized per tensor, got {}", short_name(view), ir::to_string(*type)));
  }
  check_same(view, def.quantized);
  if (def.quantized.same != SameQuantized::kNone) check_regions(view, def);
  if (def.quantized.check != nullptr) def.quantized.check(view);
}

ir::Type type_for_infer(ir::Type type, const QuantizedTypes& types) {
  if (types.form == QuantizedForm::kExpressed) return ir::expressed_type(type);
  const bool is_compared = types.same != SameQuantized::kNone || types.check != nullptr;
  if (types.form == QuantizedForm::kStorage && is_compared) return ir::storage_type(std::move(type));
  return type;
}

void check_baseline_types(const OpView& view) {
  const ir::Type* first = nullptr;
  for (const auto types : {view.operands, view.results}) {
    for (const ir::Type& type : types) {
      if (is_boolean(type)) continue;
      if (first == nullptr) first = &type;
      if (type.is_quantized() && first->is_quantized() && same_baseline(*first, type)) continue;
      reject(view, short_name(view) +
                       ": operands and results are all quantized, with one storage type and one expressed type" +
                       pair_text(*first, type));
    }
  }
}

void check_quantized_sum(const OpView& view) {
  check_baseline_types(view);
  const auto is_quantized = [](const ir::Type& type) { return type.is_quantized(); };
  if (!std::all_of(view.operands.begin(), view.operands.end(), is_quantized) ||
      !std::all_of(view.results.begin(), view.results.end(), is_quantized))
    return;  // one is boolean: infer refuses it
  const ir::Quantization& result = *view.results[0].quantization;
  const auto per_axis = [](const ir::Type& type) { return type.quantization->is_per_axis(); };
  if (std::any_of(view.operands.begin(), view.operands.end(), per_axis) != result.is_per_axis())
    reject(view, "add C5: the result is quantized per axis where an operand is");
  for (size_t i = 0; i < view.operands.size(); ++i) {
    const ir::Quantization& operand = *view.operands[i].quantization;
    if (!operand.is_per_axis() || operand.dimension == result.dimension) continue;
    reject(view, fmt::format("add C{}: the quantization dimension of operand {} is {}, that of the result is {}", 6 + i,
                             i, operand.dimension, result.dimension));
  }
}

void check_quantized_reshape(const OpView& view) {
  const auto [from, to] = moved(view, "reshape C1");
  if (without_dimension(view.operands[0]) != without_dimension(view.results[0]))
    reject(view, "reshape C1: operand and result have one element type" + pair_text(view.operands[0], view.results[0]));
  if (!from->is_per_axis()) return;
  const tensor::Dims& a = view.operands[0].dims();
  const tensor::Dims& b = view.results[0].dims();
  if (contains(a, tensor::kDynamicDim) || contains(b, tensor::kDynamicDim)) return;
  if (count_of(a, 0, from->dimension) != count_of(b, 0, to->dimension) ||
      a[static_cast<size_t>(from->dimension)] != b[static_cast<size_t>(to->dimension)]) {
    reject(view, "reshape C3: the quantization dimension keeps its size and its place" +
                     pair_text(view.operands[0], view.results[0]));
  }
}

void check_quantized_transpose(const OpView& view) {
  const auto [from, to] = moved(view, "transpose C1");
  if (without_dimension(view.operands[0]) != without_dimension(view.results[0])) {
    reject(view,
           "transpose C1: operand and result have one element type" + pair_text(view.operands[0], view.results[0]));
  }
  const std::vector<int64_t> permutation = ir::ints(attributes_of(view), "permutation");
  if (!from->is_per_axis() || to->dimension >= static_cast<int64_t>(permutation.size())) return;
  if (permutation[static_cast<size_t>(to->dimension)] == from->dimension) return;
  reject(view, "transpose C4: the quantization dimension of the result is that of the operand in its new place" +
                   pair_text(view.operands[0], view.results[0]));
}

void check_quantized_broadcast(const OpView& view) {
  const auto [from, to] = moved(view, "broadcast_in_dim C1");
  if (!from->is_per_axis()) {
    if (*from == *to) return;
    reject(view, "broadcast_in_dim C1: operand and result have one element type" +
                     pair_text(view.operands[0], view.results[0]));
  }
  const std::vector<int64_t> dims = ir::ints(attributes_of(view), "broadcast_dimensions");
  if (from->dimension >= static_cast<int64_t>(dims.size()) ||
      dims[static_cast<size_t>(from->dimension)] != to->dimension)
    reject(view, "broadcast_in_dim C6: the quantization dimension of the result is that to which the operand's goes" +
                     pair_text(view.operands[0], view.results[0]));
  const bool is_repeated = from->scales.size() == 1;
  for (size_t i = 0; i < to->scales.size(); ++i) {
    const size_t source = is_repeated ? 0 : i;
    if (source < from->scales.size() && from->scales[source] == to->scales[i] &&
        from->zero_points[source] == to->zero_points[i])
      continue;
    reject(view, "broadcast_in_dim C6: scales and zero points of the result are those of the operand" +
                     pair_text(view.operands[0], view.results[0]));
  }
}

void check_quantized_dot_general(const OpView& view) {
  check_product(view, {"C14", "C17", "C18", "C19", "C20"});
  const ir::Quantization& rhs = *view.operands[1].quantization;
  if (std::any_of(rhs.zero_points.begin(), rhs.zero_points.end(), [](int64_t zero) { return zero != 0; }))
    reject(view, "dot_general C15: the zero points of rhs are 0, got " + operand_text(view, 1));
  const ir::DictAttr& numbers = ir::dict(attributes_of(view), "dot_dimension_numbers");
  if (rhs.is_per_axis() && contains(ir::ints_or(numbers.entries, "rhs_contracting_dimensions", {}), rhs.dimension))
    reject(view, "dot_general C16: the quantization dimension of rhs is not contracted, got " + operand_text(view, 1));
}

void check_quantized_convolution(const OpView& view) {
  check_product(view, {"C28", "C31", "C32", "C33", "C34"});
  const ir::DictAttr& numbers = ir::dict(attributes_of(view), "dimension_numbers");
  const auto expect_dimension = [&](const ir::Type& type, std::string_view field, std::string_view label) {
    if (!type.is_quantized() || !type.quantization->is_per_axis()) return;
    const int64_t dimension = ir::int_or(numbers.entries, field, 0);
    if (type.quantization->dimension == dimension) return;
    reject(view, fmt::format("convolution {}: the quantization dimension is {}, {}, got {}", label, field, dimension,
                             ir::to_string(type)));
  };
  expect_dimension(view.operands[1], "kernel_output_feature_dimension", "C29");
  expect_dimension(view.results[0], "output_feature_dimension", "C30");
}

}  // namespace meshd::ops
