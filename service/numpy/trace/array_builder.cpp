#include "service/numpy/trace/array_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "service/ir/walk.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/numpy/syntax/limits.h"
#include "service/numpy/syntax/mistakes.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/tensor/sizes.h"

namespace meshd::numpy {
namespace {

// Memory is asked for in pieces. With its values, types and location an op takes about so much while it is traced.
constexpr int64_t kOpsAtATime = 1024;
constexpr int64_t kBytesOfOp = 1536;
constexpr size_t kLargeConstant = size_t{64} << 10;  // bytes

// The bytes of one element.
template <typename T>
std::vector<std::byte> converted(T number, DType from, DType to) {
  std::vector<std::byte> out(static_cast<size_t>(tensor::size_bytes(to)));
  const auto* operand = reinterpret_cast<const std::byte*>(&number);
  const kernels::ScalarKernel convert = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, from, to);
  if (convert == nullptr) return {};
  convert(&operand, out.data(), 1);
  return out;
}

bool fits_integer(int64_t value, DType dtype) {
  const int bits = tensor::row(dtype).bits;
  if (tensor::is_signed_integer(dtype)) {
    const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
    return value <= high && value >= -high - 1;
  }
  return value >= 0 && (bits == 64 || value < (int64_t{1} << bits));
}

ir::Attribute enumeration(const char* kind, std::string_view value) { return {ir::EnumAttr{kind, std::string(value)}}; }

}  // namespace

ArrayBuilder::ArrayBuilder(ir::Function& function, core::HoldMemory hold)
    : writer_(function, no_ops_, source_), hold_(std::move(hold)) {
  source_.name = "numpy";
}

void ArrayBuilder::set_place(Place place) {
  if (kept_places_ > 0) return;
  place_ = place;
  ir::Location location;
  location.line = place.line;
  location.column = place.column;
  writer_.set_location(std::move(location));
}

void ArrayBuilder::refuse(const std::string& message) const { fail("invalid_program", place_, message); }
void ArrayBuilder::unsupported(const std::string& message) const { fail("unsupported_op", place_, message); }

void ArrayBuilder::count_op() {
  if (++op_count_ > kMaxOps) {
    fail("invalid_program", place_,
         fmt::format("the program has more than {} ops; loops over range(n) of more than {} steps are not unrolled",
                     kMaxOps, kMostUnrolledSteps));
  }
  hold_op();
}

void ArrayBuilder::hold_op() {
  if (++held_ops_ % kOpsAtATime == 0 && hold_ != nullptr) hold_(kOpsAtATime * kBytesOfOp);
}

void ArrayBuilder::check_region_depth() const {
  if (region_depth_ >= kMaxRegionDepth)
    refuse(fmt::format("branches and loops on arrays are nested more than {} deep", kMaxRegionDepth));
}

Array ArrayBuilder::array_of(ir::ValueId id, bool weak) {
  const tensor::TensorType& type = writer_.type(id).tensor;
  if (type.rank() > tensor::kMaxRank)
    refuse(fmt::format("an array has at most {} dimensions, not {}", tensor::kMaxRank, type.rank()));
  return {id, type, weak};
}

Array ArrayBuilder::op(std::string_view name, const std::vector<Array>& operands, ir::AttributeList attributes,
                       std::optional<tensor::TensorType> type) {
  count_op();
  std::vector<ir::ValueId> ids;
  bool weak = !operands.empty();
  for (const Array& operand : operands) {
    ids.push_back(operand.id);
    weak = weak && operand.weak;
  }
  std::optional<ir::Type> wanted;
  if (type) {
    tensor::byte_count(*type);  // throws where no memory could hold it
    wanted = ir::Type::of(std::move(*type));
  }
  Array out = array_of(writer_.add(name, std::move(ids), std::move(attributes), std::move(wanted)));
  out.weak = weak && out.dtype() != DType::kBool;
  return out;
}

std::vector<Array> ArrayBuilder::ops(std::string_view name, const std::vector<Array>& operands,
                                     ir::AttributeList attributes, const std::vector<tensor::TensorType>& types,
                                     std::vector<ir::Region> regions) {
  count_op();
  for (const ir::Region& region : regions) ir::walk(region, [&](const ir::Op&) { hold_op(); });
  std::vector<ir::ValueId> ids;
  for (const Array& operand : operands) ids.push_back(operand.id);
  std::vector<ir::Type> wanted;
  for (const tensor::TensorType& type : types) wanted.push_back(ir::Type::of(type));
  std::vector<Array> out;
  for (const ir::ValueId id :
       writer_.add(name, std::move(ids), std::move(attributes), std::move(wanted), std::move(regions)))
    out.push_back(array_of(id));
  return out;
}

Array ArrayBuilder::constant(const tensor::TensorType& type, std::vector<std::byte> bytes, bool weak) {
  count_op();
  constant_bytes_ += static_cast<int64_t>(bytes.size());
  if (constant_bytes_ > kMaxConstantBytes) {
    refuse(fmt::format("the constants of the program have more than {} bytes; send large values as arguments",
                       kMaxConstantBytes));
  }
  if (bytes.size() >= kLargeConstant && hold_ != nullptr) hold_(static_cast<int64_t>(bytes.size()));
  const bool splat = static_cast<int64_t>(bytes.size()) == tensor::size_bytes(type.dtype);
  return array_of(writer_.constant({type, splat, std::make_shared<const std::vector<std::byte>>(std::move(bytes))}),
                  weak);
}

Array ArrayBuilder::full(const tensor::TensorType& type, const Value& number, bool weak) {
  tensor::byte_count(type);
  return constant(type, element(type.dtype, number), weak);
}

std::vector<std::byte> ArrayBuilder::element(DType to, const Value& number) const {
  std::vector<std::byte> bytes;
  if (const auto* integer = number.as<int64_t>()) {
    if (tensor::is_integer(to) && !fits_integer(*integer, to)) {
      refuse(fmt::format("the int {} is out of bounds for {}", *integer, tensor::name(to)));
    }
    bytes = to == DType::kBool ? std::vector<std::byte>{std::byte{*integer != 0}}
                               : converted<int64_t>(*integer, DType::kInt64, to);
  } else if (const auto* truth = number.as<bool>()) {
    bytes = converted<int64_t>(*truth ? 1 : 0, DType::kInt64, to);
    if (to == DType::kBool) bytes = {std::byte{*truth}};
  } else if (const auto* real = number.as<double>()) {
    if (tensor::is_integer(to) && !(std::abs(*real) < 9.2e18))
      refuse("a float that is no whole number in " + std::string(tensor::name(to)));
    bytes = to == DType::kBool ? std::vector<std::byte>{std::byte{*real != 0}}
                               : converted<double>(*real, DType::kFloat64, to);
  } else if (const auto* both = number.as<std::complex<double>>()) {
    if (tensor::is_complex(to)) {
      bytes = converted<std::complex<double>>(*both, DType::kComplex128, to);
    } else {
      bytes = converted<double>(both->real(), DType::kFloat64, to);
    }
  } else {
    refuse("expected a number, got " + describe(number));
  }
  if (bytes.empty()) unsupported("a constant of " + std::string(tensor::name(to)));
  return bytes;
}

Array ArrayBuilder::integers(const std::vector<int64_t>& values, DType dtype) {
  std::vector<std::byte> bytes;
  for (const int64_t value : values) {
    const std::vector<std::byte> one = converted<int64_t>(value, DType::kInt64, dtype);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  if (values.empty()) return full({dtype, {0}}, Value(int64_t{0}));
  return constant({dtype, {static_cast<int64_t>(values.size())}}, std::move(bytes));
}

Array ArrayBuilder::iota(const tensor::TensorType& type, int64_t dim) {
  return op("stablehlo.iota", {}, {{"iota_dimension", ir::integer_attr(dim)}}, type);
}

Array ArrayBuilder::convert(const Array& array, DType dtype, bool weak) {
  if (array.dtype() == dtype) return {array.id, array.type, weak && dtype != DType::kBool};
  Array from = array;
  if (dtype == DType::kBool) return compare("NE", from, full(from.type, int64_t{0}));
  if (tensor::is_complex(from.dtype()) && !tensor::is_complex(dtype)) from = real(from);
  Array out =
      from.dtype() == dtype ? from : op("stablehlo.convert", {from}, {}, tensor::TensorType{dtype, from.dims()});
  out.weak = weak;
  return out;
}

Array ArrayBuilder::bitcast(const Array& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  return op("stablehlo.bitcast_convert", {array}, {}, tensor::TensorType{dtype, array.dims()});
}

Array ArrayBuilder::reshape(const Array& array, tensor::Dims dims) {
  if (array.dims() == dims) return array;
  return op("stablehlo.reshape", {array}, {}, tensor::TensorType{array.dtype(), std::move(dims)});
}

Array ArrayBuilder::transpose(const Array& array, const std::vector<int64_t>& permutation) {
  bool same = true;
  for (size_t i = 0; i < permutation.size(); ++i) same = same && permutation[i] == static_cast<int64_t>(i);
  if (same) return array;
  return op("stablehlo.transpose", {array}, {{"permutation", ir::int_array_attr(permutation)}});
}

Array ArrayBuilder::broadcast_in_dim(const Array& array, const tensor::Dims& dims, const std::vector<int64_t>& into) {
  if (array.dims() == dims) return array;
  return op("stablehlo.broadcast_in_dim", {array}, {{"broadcast_dimensions", ir::int_array_attr(into)}},
            tensor::TensorType{array.dtype(), dims});
}

Array ArrayBuilder::broadcast_to(const Array& array, const tensor::Dims& dims) {
  if (array.dims() == dims) return array;
  const size_t offset = dims.size() - std::min(dims.size(), array.dims().size());
  bool fits = array.dims().size() <= dims.size();
  std::vector<int64_t> into;
  for (size_t i = 0; fits && i < array.dims().size(); ++i) {
    fits = array.dims()[i] == 1 || array.dims()[i] == dims[offset + i];
    into.push_back(static_cast<int64_t>(offset + i));
  }
  if (!fits) refuse(fmt::format("shape {} cannot be broadcast to {}", shape_text(array.dims()), shape_text(dims)));
  return broadcast_in_dim(array, dims, into);
}

tensor::Dims ArrayBuilder::broadcast_dims(const std::vector<tensor::Dims>& shapes) const {
  tensor::Dims out;
  for (const tensor::Dims& shape : shapes) {
    if (shape.size() > out.size()) out.insert(out.begin(), shape.size() - out.size(), 1);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& size = out[out.size() - shape.size() + i];
      if (size == 1) size = shape[i];
      if (shape[i] == 1 || shape[i] == size) continue;
      std::string all;
      for (const tensor::Dims& each : shapes) all += (all.empty() ? "" : " and ") + shape_text(each);
      refuse(fmt::format("shapes {} cannot be broadcast together: sizes {} and {} differ and neither is 1", all, size,
                         shape[i]));
    }
  }
  return out;
}

Array ArrayBuilder::slice(const Array& array, const std::vector<int64_t>& starts, const std::vector<int64_t>& limits,
                          std::vector<int64_t> strides) {
  if (strides.empty()) strides.assign(starts.size(), 1);
  bool is_all = limits == array.dims();
  for (size_t i = 0; i < starts.size(); ++i) is_all = is_all && starts[i] == 0 && strides[i] == 1;
  if (is_all) return array;
  return op("stablehlo.slice", {array},
            {{"start_indices", ir::int_array_attr(starts)},
             {"limit_indices", ir::int_array_attr(limits)},
             {"strides", ir::int_array_attr(std::move(strides))}});
}

Array ArrayBuilder::slice_dim(const Array& array, int64_t dim, int64_t start, int64_t limit) {
  std::vector<int64_t> starts(array.dims().size(), 0);
  std::vector<int64_t> limits = array.dims();
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  return slice(array, starts, limits);
}

Array ArrayBuilder::reverse(const Array& array, const std::vector<int64_t>& dims) {
  if (dims.empty()) return array;
  return op("stablehlo.reverse", {array}, {{"dimensions", ir::int_array_attr(dims)}});
}

Array ArrayBuilder::concatenate(const std::vector<Array>& arrays, int64_t dim) {
  if (arrays.size() == 1) return arrays[0];
  return op("stablehlo.concatenate", arrays, {{"dimension", ir::integer_attr(dim)}});
}

Array ArrayBuilder::pad(const Array& array, const Array& value, const std::vector<int64_t>& low,
                        const std::vector<int64_t>& high, std::vector<int64_t> interior) {
  if (interior.empty()) interior.assign(low.size(), 0);
  return op("stablehlo.pad", {array, value},
            {{"edge_padding_low", ir::int_array_attr(low)},
             {"edge_padding_high", ir::int_array_attr(high)},
             {"interior_padding", ir::int_array_attr(std::move(interior))}});
}

Array ArrayBuilder::expand_dims(const Array& array, std::vector<int64_t> dims) {
  std::sort(dims.begin(), dims.end());
  tensor::Dims made = array.dims();
  for (const int64_t dim : dims) made.insert(made.begin() + dim, 1);
  return reshape(array, std::move(made));
}

Array ArrayBuilder::compare(std::string_view direction, const Array& a, const Array& b) {
  return op("stablehlo.compare", {a, b}, {{"comparison_direction", enumeration("comparison_direction", direction)}});
}

Array ArrayBuilder::select(const Array& condition, const Array& a, const Array& b) {
  Array out = op("stablehlo.select", {condition, a, b});
  out.weak = a.weak && b.weak;
  return out;
}

Array ArrayBuilder::differentiated_as(const Array& value, const std::vector<Array>& operands) {
  if (!tensor::is_float(value.dtype()) && !tensor::is_complex(value.dtype())) return value;
  std::vector<Array> all{value};
  all.insert(all.end(), operands.begin(), operands.end());
  Array out = op("stablehlo.custom_call", all,
                 {{"call_target_name", {ir::StringAttr{std::string(ops::kDifferentiatedAs)}}}}, value.type);
  out.weak = value.weak;
  return out;
}

Array ArrayBuilder::integer_pow(const Array& a, int64_t n) {
  const Array one = full(a.type, int64_t{1}, a.weak);
  if (n == 0) return one;
  const uint64_t size = n < 0 ? ~static_cast<uint64_t>(n) + 1 : static_cast<uint64_t>(n);
  const auto raised = [&](Array square) {
    std::optional<Array> product;
    for (uint64_t left = size; left > 0;) {
      if ((left & 1) != 0) product = product ? multiply(*product, square) : square;
      left >>= 1;
      if (left > 0) square = multiply(square, square);
    }
    return *product;
  };
  if (n > 0) return raised(a);
  const Array inverse = divide(one, raised(a));
  // By the ops of 1 / (a * a) the slope at 0 is no number; by those of (1 / a) * (1 / a), which round otherwise, it is.
  return n == -1 ? inverse : differentiated_as(inverse, {raised(divide(one, a))});
}

ir::Region ArrayBuilder::region(const std::vector<ir::Type>& types,
                                const std::function<std::vector<ir::ValueId>(const std::vector<ir::ValueId>&)>& body) {
  const Place before = place_;
  ir::Region out;
  for (const ir::Type& type : types) out.arguments.push_back(writer_.function().add_value(type));
  const InsideRegion inside(*this, out);
  std::vector<ir::ValueId> results = body(std::vector<ir::ValueId>(out.arguments));
  set_place(before);
  writer_.create("stablehlo.return", std::move(results), {});
  return out;
}

Array ArrayBuilder::reduce(std::string_view name, const Array& array, const std::vector<int64_t>& dims,
                           const Value& identity) {
  if (dims.empty()) return array;
  const tensor::TensorType scalar{array.dtype(), {}};
  tensor::Dims kept;
  for (int64_t i = 0; i < array.rank(); ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) kept.push_back(array.dims()[static_cast<size_t>(i)]);
  }
  const Array initial = full(scalar, identity);
  std::vector<ir::Region> regions;
  regions.push_back(writer_.reducer(name, ir::Type::of(scalar)));
  Array out = ops("stablehlo.reduce", {array, initial}, {{"dimensions", ir::int_array_attr(dims)}},
                  {{array.dtype(), kept}}, std::move(regions))[0];
  out.weak = array.weak;
  return out;
}

std::vector<Array> ArrayBuilder::reduce(
    const std::vector<Array>& arrays, const std::vector<Value>& identities, const std::vector<int64_t>& dims,
    const std::function<std::vector<Array>(std::vector<Array>, std::vector<Array>)>& body) {
  std::vector<Array> operands = arrays;
  std::vector<tensor::TensorType> results;
  std::vector<ir::Type> scalars;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const tensor::TensorType scalar{arrays[i].dtype(), {}};
    operands.push_back(full(scalar, identities[i]));
    scalars.push_back(ir::Type::of(scalar));
    tensor::TensorType result{arrays[i].dtype(), {}};
    for (int64_t d = 0; d < arrays[i].rank(); ++d) {
      if (std::find(dims.begin(), dims.end(), d) == dims.end())
        result.dims.push_back(arrays[i].dims()[static_cast<size_t>(d)]);
    }
    results.push_back(std::move(result));
  }
  std::vector<ir::Type> types = scalars;
  types.insert(types.end(), scalars.begin(), scalars.end());
  std::vector<ir::Region> regions;
  regions.push_back(region(types, [&](const std::vector<ir::ValueId>& ids) {
    std::vector<Array> a;
    std::vector<Array> b;
    for (size_t i = 0; i < arrays.size(); ++i) {
      a.push_back(array_of(ids[i]));
      b.push_back(array_of(ids[arrays.size() + i]));
    }
    std::vector<ir::ValueId> out;
    for (const Array& made : body(std::move(a), std::move(b))) out.push_back(made.id);
    return out;
  }));
  return ops("stablehlo.reduce", operands, {{"dimensions", ir::int_array_attr(dims)}}, results, std::move(regions));
}

Array ArrayBuilder::cumulate(std::string_view name, const Array& array, int64_t dim, const Value& identity,
                             bool reversed) {
  const int64_t size = array.dims()[static_cast<size_t>(dim)];
  if (size == 0) return array;
  std::vector<int64_t> window(array.dims().size(), 1);
  const std::vector<int64_t> ones = window;
  window[static_cast<size_t>(dim)] = size;
  std::vector<int64_t> padding(2 * array.dims().size(), 0);
  padding[2 * static_cast<size_t>(dim) + (reversed ? 1 : 0)] = size - 1;
  const tensor::TensorType scalar{array.dtype(), {}};
  std::vector<ir::Region> regions;
  const Array initial = full(scalar, identity);
  regions.push_back(writer_.reducer(name, ir::Type::of(scalar)));
  Array out = ops("stablehlo.reduce_window", {array, initial},
                  {{"window_dimensions", ir::int_array_attr(window)},
                   {"window_strides", ir::int_array_attr(ones)},
                   {"base_dilations", ir::int_array_attr(ones)},
                   {"window_dilations", ir::int_array_attr(ones)},
                   {"padding", {ir::dense_integers_attr(padding, {array.rank(), 2})}}},
                  {array.type}, std::move(regions))[0];
  out.weak = array.weak;
  return out;
}

std::vector<Array> ArrayBuilder::sort(const std::vector<Array>& arrays, int64_t dim, size_t key_count) {
  std::vector<ir::Type> types;
  std::vector<tensor::TensorType> results;
  for (const Array& array : arrays) {
    types.insert(types.end(), 2, ir::Type::of({array.dtype(), {}}));
    results.push_back(array.type);
  }
  // -0 and 0 are equal, and so are all NaNs, which come last.
  const auto key_of = [&](const Array& x) {
    if (!tensor::is_float(x.dtype())) return x;
    const Array zero = full(x.type, 0.0);
    const Array nan = full(x.type, std::numeric_limits<double>::quiet_NaN());
    return select(compare("NE", x, x), nan, select(compare("EQ", x, zero), zero, x));
  };
  const auto less = [&](const Array& a, const Array& b) {
    if (!tensor::is_float(a.dtype())) return compare("LT", a, b);
    return op("stablehlo.compare", {a, b},
              {{"comparison_direction", enumeration("comparison_direction", "LT")},
               {"compare_type", enumeration("comparison_type", "TOTALORDER")}});
  };
  std::vector<ir::Region> regions;
  regions.push_back(region(types, [&](const std::vector<ir::ValueId>& ids) {
    std::optional<Array> verdict;
    for (size_t i = key_count; i-- > 0;) {
      Array a = array_of(ids[2 * i]);
      Array b = array_of(ids[2 * i + 1]);
      std::vector<std::pair<Array, Array>> parts;
      if (tensor::is_complex(a.dtype())) {
        parts = {{key_of(real(a)), key_of(real(b))}, {key_of(imag(a)), key_of(imag(b))}};
      } else {
        parts = {{key_of(a), key_of(b)}};
      }
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        const Array first = less(part->first, part->second);
        verdict = verdict ? logical_or(first, logical_and(compare("EQ", part->first, part->second), *verdict)) : first;
      }
    }
    return std::vector<ir::ValueId>{verdict->id};
  }));
  std::vector<Array> out =
      ops("stablehlo.sort", arrays, {{"dimension", ir::integer_attr(dim)}, {"is_stable", {ir::IntegerAttr{1, "i1"}}}},
          results, std::move(regions));
  for (size_t i = 0; i < out.size(); ++i) out[i].weak = arrays[i].weak;
  return out;
}

Array ArrayBuilder::dot_general(const Array& a, const Array& b, const std::vector<int64_t>& a_contracting,
                                const std::vector<int64_t>& b_contracting, const std::vector<int64_t>& a_batch,
                                const std::vector<int64_t>& b_batch, DType result) {
  tensor::TensorType type{result, {}};
  const auto free_of = [](const Array& array, const std::vector<int64_t>& x, const std::vector<int64_t>& y) {
    tensor::Dims out;
    for (int64_t i = 0; i < array.rank(); ++i) {
      if (std::find(x.begin(), x.end(), i) == x.end() && std::find(y.begin(), y.end(), i) == y.end())
        out.push_back(array.dims()[static_cast<size_t>(i)]);
    }
    return out;
  };
  for (const int64_t dim : a_batch) type.dims.push_back(a.dims()[static_cast<size_t>(dim)]);
  for (const auto& dims : {free_of(a, a_contracting, a_batch), free_of(b, b_contracting, b_batch)})
    type.dims.insert(type.dims.end(), dims.begin(), dims.end());
  return op("stablehlo.dot_general", {a, b},
            {{"dot_dimension_numbers",
              {ir::DictAttr{"stablehlo.dot",
                            {{"lhs_batching_dimensions", ir::int_array_attr(a_batch)},
                             {"rhs_batching_dimensions", ir::int_array_attr(b_batch)},
                             {"lhs_contracting_dimensions", ir::int_array_attr(a_contracting)},
                             {"rhs_contracting_dimensions", ir::int_array_attr(b_contracting)}}}}}},
            type);
}

Array ArrayBuilder::dynamic_slice(const Array& array, const std::vector<Array>& starts,
                                  const std::vector<int64_t>& sizes) {
  std::vector<Array> operands{array};
  operands.insert(operands.end(), starts.begin(), starts.end());
  Array out = op("stablehlo.dynamic_slice", operands, {{"slice_sizes", ir::int_array_attr(sizes)}},
                 tensor::TensorType{array.dtype(), sizes});
  out.weak = array.weak;
  return out;
}

Array ArrayBuilder::dynamic_update_slice(const Array& array, const Array& update, const std::vector<Array>& starts) {
  std::vector<Array> operands{array, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  Array out = op("stablehlo.dynamic_update_slice", operands, {}, array.type);
  out.weak = array.weak;
  return out;
}

Value ArrayBuilder::highest(DType dtype) const {
  if (dtype == DType::kBool) return true;
  if (!tensor::is_integer(dtype)) return std::numeric_limits<double>::infinity();
  if (dtype == DType::kUint64) unsupported("the minimum of uint64");
  return static_cast<int64_t>(tensor::largest_value(dtype));
}

Value ArrayBuilder::lowest(DType dtype) const {
  if (dtype == DType::kBool) return false;
  if (!tensor::is_integer(dtype)) return -std::numeric_limits<double>::infinity();
  return tensor::least_value(dtype);
}

int64_t ArrayBuilder::axis_of(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    refuse(fmt::format("axis {} is out of bounds for an array of {}{}", axis, rank,
                       rank == 1 ? " dimension" : " dimensions"));
  }
  return axis < 0 ? axis + rank : axis;
}

}  // namespace meshd::numpy
