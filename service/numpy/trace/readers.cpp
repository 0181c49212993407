// Static values that functions take: numbers, sizes, axes, dtypes; and arrays of whatever a program gives.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "service/numpy/syntax/limits.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {
namespace {

std::string quoted(std::string_view what) { return "'" + std::string(what) + "'"; }

// The dtype that Python's int, float, bool and complex mean.
std::optional<DType> python_type(const Value& value) {
  const auto* function = value.as<CallableRef>();
  if (function == nullptr) return std::nullopt;
  if ((*function)->name == "int") return DType::kInt32;
  if ((*function)->name == "float") return DType::kFloat32;
  if ((*function)->name == "bool") return DType::kBool;
  if ((*function)->name == "complex") return DType::kComplex64;
  return std::nullopt;
}

}  // namespace

WeakType Tracer::type_of(const Value& value) {
  if (const Array* held = value.array()) return {held->dtype(), held->weak};
  if (value.is<bool>()) return {DType::kBool, false};
  if (value.is<int64_t>()) return {DType::kInt32, true};
  if (value.is<double>()) return {DType::kFloat32, true};
  if (value.is<std::complex<double>>()) return {DType::kComplex64, true};
  if (const Sequence* sequence = value.sequence()) {
    std::vector<WeakType> types;
    for (const Value& item : sequence->items) types.push_back(type_of(item));
    const auto joint = promoted(types);
    if (!joint) refuse("the elements of " + describe(value) + " have types without a common one");
    return {joint->dtype, joint->weak};
  }
  if (const auto* undefined = value.as<Undefined>()) refuse(undefined->why);
  refuse("expected an array or a number, got " + describe(value));
}

tensor::Dims Tracer::dims_of(const Value& value) {
  if (const Array* held = value.array()) return held->dims();
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr) {
    type_of(value);  // refuses what is no number
    return {};
  }
  tensor::Dims inner;
  for (size_t i = 0; i < sequence->items.size(); ++i) {
    tensor::Dims dims = dims_of(sequence->items[i]);
    if (i > 0 && dims != inner)
      refuse(fmt::format("a list whose elements have different shapes, {} and {}, is no array", shape_text(inner),
                         shape_text(dims)));
    inner = std::move(dims);
  }
  inner.insert(inner.begin(), static_cast<int64_t>(sequence->items.size()));
  return inner;
}

Array Tracer::typed(const Value& value, const tensor::TensorType& type) {
  if (value.is_number()) return full(type, value);
  const WeakType own = type_of(value);
  const Array made = array(value);
  return broadcast_to(convert(made, type.dtype, own.weak && own.dtype == type.dtype), type.dims);
}

namespace {

// Numbers of nested lists, row-major; false where there is an array among them.
bool collect_numbers(const Value& value, std::vector<Value>& out) {
  if (value.is_number()) {
    out.push_back(value);
    return true;
  }
  const Sequence* sequence = value.sequence();
  return sequence != nullptr && std::all_of(sequence->items.begin(), sequence->items.end(),
                                            [&](const Value& item) { return collect_numbers(item, out); });
}

}  // namespace

Array Tracer::array(const Value& value) {
  if (const Array* held = value.array()) return *held;
  const WeakType type = type_of(value);
  const tensor::Dims dims = dims_of(value);
  if (value.is_number()) return full({type.dtype, {}}, value, type.weak);
  const Sequence& sequence = *value.sequence();
  step(node_count(value));
  if (tensor::element_count(dims) == 0)
    return full({sequence.items.empty() ? DType::kFloat32 : type.dtype, dims}, int64_t{0});
  std::vector<Value> numbers;
  if (collect_numbers(value, numbers)) {
    std::vector<std::byte> bytes;
    for (const Value& number : numbers) {
      const std::vector<std::byte> one = element(type.dtype, number);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return reshape(constant({type.dtype, {static_cast<int64_t>(numbers.size())}}, std::move(bytes)), dims);
  }
  std::vector<Array> parts;
  for (const Value& item : sequence.items) {
    const Array part = convert(array(item), type.dtype);
    tensor::Dims row = part.dims();
    row.insert(row.begin(), 1);
    parts.push_back(reshape(part, std::move(row)));
  }
  return concatenate(parts, 0);
}

std::vector<Array> Tracer::promoted_arrays(const std::vector<Value>& values) {
  std::vector<WeakType> types;
  for (const Value& value : values) types.push_back(type_of(value));
  const auto joint = promoted(types);
  if (!joint) {
    std::string all;
    for (const WeakType& type : types) all += (all.empty() ? "" : " and ") + std::string(tensor::name(type.dtype));
    refuse("types " + all + " have no common type; convert one with .astype");
  }
  std::vector<Array> out;
  for (const Value& value : values) {
    if (value.is_number()) {
      out.push_back(full({joint->dtype, {}}, value, joint->weak));
    } else {
      out.push_back(convert(array(value), joint->dtype, joint->weak));
    }
  }
  return out;
}

std::vector<Array> Tracer::broadcast_arrays(const std::vector<Value>& values) {
  std::vector<tensor::Dims> shapes;
  for (const Value& value : values) shapes.push_back(dims_of(value));
  const tensor::Dims dims = broadcast_dims(shapes);
  std::vector<Array> out = promoted_arrays(values);
  for (Array& each : out) each = broadcast_to(each, dims);
  return out;
}

std::vector<Array> Tracer::inexact_arrays(const std::vector<Value>& values) {
  std::vector<WeakType> types;
  for (const Value& value : values) types.push_back(type_of(value));
  const auto joint = promoted(types);
  if (!joint) refuse("the types have no common type; convert one with .astype");
  const WeakType wanted = inexact_of(*joint);
  std::vector<tensor::Dims> shapes;
  for (const Value& value : values) shapes.push_back(dims_of(value));
  const tensor::Dims dims = broadcast_dims(shapes);
  std::vector<Array> out;
  for (const Value& value : values) {
    Array made = value.is_number() ? full({wanted.dtype, {}}, value, wanted.weak)
                                   : convert(array(value), wanted.dtype, wanted.weak);
    made.weak = wanted.weak;
    out.push_back(broadcast_to(made, dims));
  }
  return out;
}

int64_t Tracer::to_int(const Value& value, std::string_view what) {
  if (const auto* integer = value.as<int64_t>()) return *integer;
  if (const auto* truth = value.as<bool>()) return *truth ? 1 : 0;
  if (value.array() != nullptr) {
    refuse(
        fmt::format("{} has to be a static int, got {}; sizes and axes cannot depend on data (make the argument "
                    "static, or use x.shape)",
                    what, describe(value)));
  }
  refuse(std::string(what) + " has to be an int, got " + describe(value));
}

double Tracer::to_float(const Value& value, std::string_view what) {
  if (const auto* real = value.as<double>()) return *real;
  if (value.is<int64_t>() || value.is<bool>()) return static_cast<double>(to_int(value, what));
  refuse(std::string(what) + " has to be a static number, got " + describe(value));
}

std::vector<int64_t> Tracer::to_ints(const Value& value, std::string_view what) {
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr) return {to_int(value, what)};
  std::vector<int64_t> out;
  for (const Value& item : sequence->items) out.push_back(to_int(item, what));
  return out;
}

std::string Tracer::to_text(const Value& value, std::string_view what) {
  const auto* text = value.as<std::string>();
  if (text == nullptr) refuse(std::string(what) + " has to be a text, got " + describe(value));
  return *text;
}

DType Tracer::to_dtype(const Value& value) {
  if (const auto* dtype = value.as<DType>()) return *dtype;
  if (const auto type = python_type(value)) return *type;
  if (const auto* text = value.as<std::string>()) {
    if (const auto known = tensor::dtype_from_name(*text)) return *known;
    if (*text == "int") return DType::kInt32;
    if (*text == "float") return DType::kFloat32;
    if (*text == "complex") return DType::kComplex64;
    refuse(quoted(*text) + " is no dtype" + tensor::dtype_advice(*text));
  }
  refuse("expected a dtype such as jnp.float32, got " + describe(value));
}

std::optional<DType> Tracer::to_dtype_or_none(const Value& value) {
  return value.is_none() ? std::nullopt : std::optional(to_dtype(value));
}

std::vector<int64_t> Tracer::to_axes(const Value& axis, int64_t rank) {
  std::vector<int64_t> out;
  if (axis.is_none()) {
    for (int64_t i = 0; i < rank; ++i) out.push_back(i);
    return out;
  }
  for (const int64_t each : to_ints(axis, "axis")) out.push_back(axis_of(each, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) refuse("an axis is there twice");
  return out;
}

std::vector<Value> Tracer::to_items(const Value& value, std::string_view what) {
  if (const Sequence* sequence = value.sequence()) return sequence->items;
  if (value.array() != nullptr) return items_of(value, what);
  refuse(std::string(what) + " has to be a tuple or list, got " + describe(value));
}

}  // namespace meshd::numpy
