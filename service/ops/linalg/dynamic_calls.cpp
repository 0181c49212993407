#include "service/ops/linalg/dynamic_calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/ops/checks.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using Ints = std::vector<int64_t>;
using Values = std::optional<std::vector<ir::ValueId>>;

constexpr std::string_view kShapes = "indices_of_shape_operands";

bool has_static_shape(const ir::Type& type) {
  return !type.is_tensor() || std::count(type.dims().begin(), type.dims().end(), tensor::kDynamicDim) == 0;
}

bool have_static_shapes(std::span<const ir::Type> types) {
  return std::all_of(types.begin(), types.end(), has_static_shape);
}

void expect_operands(const OpView& view, bool holds, const std::string& what) {
  if (holds) return;
  reject(view, fmt::format("{}: takes {}, got {} operands", call_text(view), what, view.operands.size()));
}

/// The type of a result whose shape operand `shape` has; nothing where neither says it.
std::optional<ir::Type> with_shape(const OpView& view, Writer& writer, const ir::Type& result, size_t shape) {
  const auto known = writer.known(view.op->operands[shape]);
  if (!known) return has_static_shape(result) ? std::optional(result) : std::nullopt;
  const bool is_shape = result.is_tensor() && compatible_shapes(*known, result.dims()) &&
                        std::all_of(known->begin(), known->end(), [](int64_t size) { return size >= 0; });
  if (!is_shape) {
    reject(view, fmt::format("{}: operand {} says the shape {}, the result is {}", call_text(view), shape,
                             tensor::to_string(std::span<const int64_t>(*known)), ir::to_string(result)));
  }
  return ir::Type::of({result.dtype(), Dims(known->begin(), known->end())});
}

}  // namespace

bool has_shape_operands(const OpView& view) { return ir::find(attributes_of(view), kShapes) != nullptr; }

Values expand_shape_operands(const OpView& view, Writer& writer) {
  const ir::Attribute* given = ir::find(attributes_of(view), kShapes);
  const auto* dense = given->as<ir::DenseAttr>();
  const Ints shapes = dense == nullptr ? ir::ints(attributes_of(view), kShapes) : ir::dense_ints(*dense);
  const bool fits = shapes.size() == view.results.size() && std::all_of(shapes.begin(), shapes.end(), [&](int64_t i) {
                      return i >= 0 && i < static_cast<int64_t>(view.operands.size());
                    });
  if (!fits) reject(view, fmt::format("{}: {} must name an operand for each result", call_text(view), kShapes));
  std::vector<ir::Type> types;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto type = with_shape(view, writer, view.results[i], static_cast<size_t>(shapes[i]));
    if (!type) return std::nullopt;
    types.push_back(*type);
  }
  if (!have_static_shapes(view.operands)) return std::nullopt;
  std::vector<size_t> kept;
  for (size_t i = 0; i < view.operands.size(); ++i) {
    if (!contains(shapes, static_cast<int64_t>(i))) kept.push_back(i);
  }
  ir::AttributeList attributes = attributes_of(view);
  std::erase_if(attributes, [](const ir::NamedAttribute& entry) {
    return entry.name == kShapes || entry.name == "sdy.sharding_rule";
  });
  std::vector<ir::ValueId> operands;
  for (const size_t i : kept) operands.push_back(view.op->operands[i]);
  for (ir::NamedAttribute& entry : attributes) {
    auto* layouts = entry.name == "operand_layouts" ? std::get_if<ir::ArrayAttr>(&entry.value.value) : nullptr;
    if (layouts == nullptr || layouts->values.size() != view.operands.size()) continue;
    std::vector<ir::Attribute> of_kept;
    for (const size_t i : kept) of_kept.push_back(layouts->values[i]);
    layouts->values = std::move(of_kept);
  }
  return writer.add(view.op->name, std::move(operands), std::move(attributes), std::move(types),
                    {view.regions.begin(), view.regions.end()});
}

Values expand_dynamic_approx_top_k(const OpView& view, Writer& writer) {
  expect_operands(view, view.operands.size() == 2 * view.results.size() + 1, "inputs, initial values, k and shapes");
  if (!have_static_shapes(view.operands) || !have_static_shapes(view.results)) return std::nullopt;
  ir::AttributeList attributes = attributes_of(view);
  std::erase_if(attributes, [](const ir::NamedAttribute& entry) { return entry.name == "called_computations"; });
  ir::set(attributes, "call_target_name", ir::Attribute{ir::StringAttr{"ApproxTopK"}});
  return writer.add(view.op->name, {view.op->operands.begin(), view.op->operands.end() - 1}, std::move(attributes),
                    {view.results.begin(), view.results.end()}, {view.regions.begin(), view.regions.end()});
}

Values expand_dynamic_top_k(const OpView& view, Writer& writer) {
  expect_operands(view, view.operands.size() == 2, "a tensor and k");
  const auto k = writer.known(view.op->operands[1]);
  if (!k || k->size() != 1 || !has_static_shape(view.operands[0])) return std::nullopt;
  return writer.add("chlo.top_k", {view.op->operands[0]}, {{"k", ir::integer_attr(k->front())}}, {}, {});
}

Values expand_dynamic_random_bits(const OpView& view, Writer& writer) {
  expect_operands(view, view.operands.size() == 2 && view.results.size() == 2, "a state and a shape");
  const auto bits = with_shape(view, writer, view.results[1], 1);
  const ir::Attribute* algorithm = ir::find(attributes_of(view), "rng_algorithm");
  if (!bits || algorithm == nullptr) return std::nullopt;
  return writer.add("stablehlo.rng_bit_generator", {view.op->operands[0]}, {{"rng_algorithm", *algorithm}},
                    {view.results[0], *bits}, {});
}

Values expand_dynamic_reduce_window(const OpView& view, Writer& writer) {
  constexpr std::string_view kNames[] = {"window_dimensions", "window_strides", "base_dilations", "window_dilations"};
  const size_t count = view.results.size();
  expect_operands(view, view.operands.size() == 2 * count + 5 && view.regions.size() == 1,
                  "inputs, initial values, window, strides, dilations of both and padding, and one called computation");
  if (!have_static_shapes(view.operands)) return std::nullopt;
  ir::AttributeList attributes;
  size_t operand = 2 * count;
  for (const std::string_view name : kNames) {
    const auto known = writer.known(view.op->operands[operand++]);
    if (!known) return std::nullopt;
    attributes.emplace_back(std::string(name), ir::int_array_attr(*known));
  }
  const auto padding = writer.known(view.op->operands[operand]);
  if (!padding) return std::nullopt;
  attributes.emplace_back("padding", ir::Attribute{ir::dense_integers_attr(*padding, view.operands[operand].dims())});
  const auto& operands = view.op->operands;
  return writer.add("stablehlo.reduce_window",
                    {operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(2 * count)},
                    std::move(attributes), {}, {view.regions.begin(), view.regions.end()});
}

}  // namespace meshd::ops
