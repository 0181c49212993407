#include "service/program/transform/bounded/bounded_values.h"

#include <algorithm>
#include <optional>
#include <string>

#include "service/core/checked_math.h"
#include "service/ops/movement/gather_scatter.h"

namespace meshd::program {

using ir::kNoValue;
using ir::Type;
using ir::ValueId;
using tensor::Dims;
using tensor::DType;

ValueId BoundedWriter::number(int64_t value, DType dtype) {
  return writer_.splat(Type::of({dtype, {}}), static_cast<double>(value));
}

ValueId BoundedWriter::binary(std::string_view mnemonic, ValueId a, ValueId b) {
  return writer_.add("stablehlo." + std::string(mnemonic), {a, b});
}

ValueId BoundedWriter::compare(std::string_view direction, ValueId a, ValueId b) {
  return writer_.compare(a, direction, b);
}

ValueId BoundedWriter::select(ValueId which, ValueId a, ValueId b) {
  return writer_.add("stablehlo.select", {which, a, b});
}

ValueId BoundedWriter::convert(ValueId value, DType dtype) {
  if (type(value).dtype() == dtype) return value;
  return writer_.add("stablehlo.convert", {value}, {}, Type::of({dtype, dims(value)}));
}

ValueId BoundedWriter::size_of_number(ValueId value, int64_t bound) {
  // In 64 bits first: what does not fit in 32 is held to the bound, not cut.
  const ValueId wide = convert(value, DType::kInt64);
  const ValueId held =
      binary("minimum", binary("maximum", wide, number(0, DType::kInt64)), number(bound, DType::kInt64));
  return convert(held, DType::kInt32);
}

ValueId BoundedWriter::clamped(ValueId size, int64_t bound) {
  return binary("minimum", binary("maximum", size, number(0)), number(bound));
}

ValueId BoundedWriter::ceil_div(ValueId a, ValueId b) {
  return binary("divide", binary("add", a, binary("subtract", b, number(1))), b);
}

ValueId BoundedWriter::element(ValueId vector, int64_t at) {
  const ValueId one = writer_.slice(vector, {at}, {at + 1});
  constexpr int64_t kFar = int64_t{1} << 30;
  const ValueId wide = convert(writer_.reshape(one, {}), DType::kInt64);
  const ValueId held =
      binary("minimum", binary("maximum", wide, number(-kFar, DType::kInt64)), number(kFar, DType::kInt64));
  return convert(held, DType::kInt32);
}

ValueId BoundedWriter::size(const BoundedValue& value, size_t dim) {
  return value.sizes[dim] == kNoValue ? number(dims(value.padded)[dim]) : value.sizes[dim];
}

ValueId BoundedWriter::iota(const Dims& dims, size_t dim, DType dtype) {
  return writer_.iota({dtype, dims}, static_cast<int64_t>(dim));
}

ValueId BoundedWriter::inside(const BoundedValue& value, const std::vector<int64_t>& which) {
  const Dims shape = dims(value.padded);
  ValueId out = kNoValue;
  for (const int64_t each : which) {
    const auto d = static_cast<size_t>(each);
    if (value.sizes[d] == kNoValue) continue;
    const ValueId here = compare("LT", iota(shape, d), spread(value.sizes[d], shape));
    out = out == kNoValue ? here : binary("and", out, here);
  }
  return out;
}

ValueId BoundedWriter::masked(const BoundedValue& value, const std::vector<int64_t>& which, ValueId fill) {
  const ValueId here = inside(value, which);
  if (here == kNoValue) return value.padded;
  return select(here, value.padded, spread(fill, dims(value.padded)));
}

ValueId BoundedWriter::zeroed(const BoundedValue& value, const std::vector<int64_t>& which) {
  const bool is_padded = std::any_of(which.begin(), which.end(),
                                     [&](int64_t d) { return value.sizes[static_cast<size_t>(d)] != kNoValue; });
  return is_padded ? masked(value, which, writer_.zero({type(value.padded).dtype(), {}})) : value.padded;
}

ValueId BoundedWriter::resized(ValueId value, const Dims& wanted) {
  const Dims now = dims(value);
  if (now == wanted) return value;
  Dims limits = now, more(now.size(), 0);
  const std::vector<int64_t> zeros(now.size(), 0), ones(now.size(), 1);
  for (size_t d = 0; d < now.size(); ++d) {
    limits[d] = std::min(now[d], wanted[d]);
    more[d] = wanted[d] - limits[d];
  }
  if (limits != now) value = writer_.slice(value, zeros, limits);
  if (limits == wanted) return value;
  return writer_.add("stablehlo.pad", {value, writer_.zero({type(value).dtype(), {}})},
                     {{"edge_padding_low", ir::int_array_attr(zeros)},
                      {"edge_padding_high", ir::int_array_attr(more)},
                      {"interior_padding", ir::int_array_attr(zeros)}});
}

BoundedValue BoundedWriter::as_bounded(const BoundedValue& value, const Dims& bounds) {
  Dims wanted = dims(value.padded);
  BoundedValue out = whole(value.padded);
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (bounds[d] == tensor::kDynamicDim) continue;
    out.sizes[d] = size(value, d);
    if (bounds[d] < wanted[d]) out.sizes[d] = clamped(out.sizes[d], bounds[d]);
    wanted[d] = bounds[d];
  }
  out.padded = resized(value.padded, wanted);
  return out;
}

ValueId BoundedWriter::take(ValueId value, size_t dim, ValueId indices) {
  const Dims shape = dims(value);
  ops::WindowDims windows;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != dim) windows.offset.push_back(static_cast<int64_t>(d));
  }
  windows.collapsed = windows.index_map = {static_cast<int64_t>(dim)};
  windows.index_vector_dim = 1;
  Dims sizes = shape;
  sizes[dim] = 1;
  return writer_.add("stablehlo.gather", {value, indices}, ops::gather_attributes(windows, sizes));
}

std::optional<std::vector<ReshapeGroup>> reshape_groups(const Dims& from, const Dims& to) {
  std::vector<ReshapeGroup> out;
  ReshapeGroup group;
  while (group.from < from.size() || group.to < to.size()) {
    group.from_end = group.from;
    group.to_end = group.to;
    int64_t a = group.from_end < from.size() ? from[group.from_end++] : 1;
    int64_t b = group.to_end < to.size() ? to[group.to_end++] : 1;
    while (a != b) {
      if (a < b && group.from_end < from.size()) {
        a *= from[group.from_end++];
      } else if (b < a && group.to_end < to.size()) {
        b *= to[group.to_end++];
      } else {
        return std::nullopt;
      }
      if (a == 0 || b == 0) return std::nullopt;
    }
    out.push_back(group);
    group.from = group.from_end;
    group.to = group.to_end;
  }
  return out;
}

BoundedValue BoundedWriter::reshaped(const BoundedValue& value, const Dims& wanted, std::vector<ValueId> sizes) {
  const Dims from = dims(value.padded);
  const auto groups = reshape_groups(from, wanted);
  const auto has_size_behind = [](const std::vector<ValueId>& of, const Dims& bounds, size_t begin, size_t end) {
    // Behind the first dimension that is not of one element: that one may end anywhere.
    while (begin < end && of[begin] == kNoValue && bounds[begin] == 1) ++begin;
    return std::any_of(of.begin() + static_cast<std::ptrdiff_t>(std::min(begin + 1, end)),
                       of.begin() + static_cast<std::ptrdiff_t>(end), [](ValueId size) { return size != kNoValue; });
  };
  const bool is_in_place = groups && std::none_of(groups->begin(), groups->end(), [&](const ReshapeGroup& group) {
                             return has_size_behind(value.sizes, from, group.from, group.from_end) ||
                                    has_size_behind(sizes, wanted, group.to, group.to_end);
                           });
  if (is_in_place) return {writer_.reshape(value.padded, wanted), std::move(sizes)};

  // Each element of the result is read from where its row-major number among the real elements is in the padded value.
  constexpr DType kIndex = DType::kInt64;
  BoundedValue out{kNoValue, std::move(sizes)};
  const int64_t count = tensor::element_count(wanted);
  const int64_t available = tensor::element_count(from);
  const auto wide_size = [&](const Dims& bounds, const std::vector<ValueId>& of, size_t d) {
    return of[d] == kNoValue ? number(bounds[d], kIndex) : convert(of[d], kIndex);
  };
  const auto spread_wide = [&](ValueId scalar) { return spread(scalar, wanted); };
  ValueId at = spread_wide(number(0, kIndex));
  ValueId stride = number(1, kIndex);
  for (size_t d = wanted.size(); d-- > 0;) {
    at = binary("add", at, binary("multiply", iota(wanted, d, kIndex), spread_wide(stride)));
    stride = binary("multiply", stride, wide_size(wanted, out.sizes, d));
  }
  ValueId place = spread_wide(number(0, kIndex));
  int64_t padded_stride = 1;
  for (size_t d = from.size(); d-- > 0;) {
    const ValueId size = spread_wide(binary("maximum", wide_size(from, value.sizes, d), number(1, kIndex)));
    const ValueId index = binary("remainder", at, size);
    at = binary("divide", at, size);
    place = binary("add", place, binary("multiply", index, spread_wide(number(padded_stride, kIndex))));
    padded_stride *= std::max<int64_t>(from[d], 1);
  }
  if (available == 0 || count == 0) {
    out.padded = writer_.zero({type(value.padded).dtype(), wanted});
    return out;
  }
  const ValueId flat = writer_.reshape(value.padded, {available});
  out.padded = writer_.reshape(take(flat, 0, writer_.reshape(place, {count})), wanted);
  return out;
}

BoundedValue BoundedWriter::padded_along(const BoundedValue& value, size_t dim, ValueId fill, ValueId low, ValueId high,
                                         ValueId interior, int64_t bound) {
  const ValueId zero = number(0), one = number(1);
  const ValueId count = size(value, dim);
  const ValueId step = binary("add", binary("maximum", interior, zero), one);
  const ValueId last = binary("subtract", count, one);
  // Rows of the operand with what is between them; none of no rows.
  const ValueId spaced = select(compare("GT", count, zero), binary("add", binary("multiply", last, step), one), zero);
  BoundedValue out = value;
  out.sizes[dim] = clamped(binary("add", binary("add", low, high), spaced), bound);

  const Dims line{bound};
  const ValueId from = binary("subtract", iota(line, 0), spread(low, line));
  const ValueId steps = spread(step, line);
  const ValueId index = binary("divide", from, steps);
  ValueId is_row = compare("GE", from, spread(zero, line));
  is_row = binary("and", is_row, compare("EQ", binary("remainder", from, steps), spread(zero, line)));
  is_row = binary("and", is_row, compare("LT", index, spread(count, line)));
  Dims shape = dims(value.padded);
  const bool is_empty = shape[dim] == 0;
  shape[dim] = bound;
  if (is_empty) {
    out.padded = spread(fill, shape);
    return out;
  }
  const ValueId rows = take(value.padded, dim, binary("maximum", index, spread(zero, line)));
  const ValueId which = writer_.broadcast(is_row, shape, {static_cast<int64_t>(dim)});
  out.padded = select(which, rows, spread(fill, shape));
  return out;
}

}  // namespace meshd::program
