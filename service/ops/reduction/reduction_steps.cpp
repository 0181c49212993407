#include "service/ops/reduction/reduction_steps.h"

#include <algorithm>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/reduction/windows.h"
#include "service/ops/rewrites/derivative.h"
#include "service/ops/rewrites/lifted_region.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using tensor::Dims;
using Ints = std::vector<int64_t>;
using Values = std::vector<ir::ValueId>;

class Steps {
 public:
  Steps(const OpView& view, size_t count, Writer& writer) : view_(view), count_(count), writer_(writer) {
    // The body may work in a wider type.
    for (size_t i = 0; i < count; ++i) values_.push_back(in_type_of_body(i, view.op->operands[i]));
  }

  [[nodiscard]] Dims dims() const { return writer_.type(values_[0]).dims(); }
  [[nodiscard]] const Values& values() const { return values_; }

  [[nodiscard]] Values combined(const Values& a, const Values& b) {
    Values arguments = a;
    arguments.insert(arguments.end(), b.begin(), b.end());
    return lifted_region(view_.regions[0], arguments, Dims(writer_.type(a[0]).dims()), writer_);
  }

  /// Of the dimension, elements from `start` to before `limit`.
  [[nodiscard]] Values part(const Values& of, size_t dim, int64_t start, int64_t limit, int64_t stride = 1) {
    const Dims dims = writer_.type(of[0]).dims();
    if (start == 0 && limit == dims[dim] && stride == 1) return of;
    Ints starts(dims.size(), 0), limits(dims.begin(), dims.end()), strides(dims.size(), 1);
    starts[dim] = start;
    limits[dim] = limit;
    strides[dim] = stride;
    Values out;
    for (const ir::ValueId id : of) out.push_back(writer_.slice(id, starts, limits, strides));
    return out;
  }

  /// Neighbours are combined until one element of the dimension is left.
  void halve(size_t dim) {
    for (int64_t size = dims()[dim]; size > 1; size -= size / 2) {
      const int64_t even = size / 2 * 2;
      Values next = combined(part(values_, dim, 0, even, 2), part(values_, dim, 1, even, 2));
      const Values last = part(values_, dim, even, size);
      for (size_t i = 0; i < count_ && even != size; ++i) {
        next[i] = writer_.concatenate({next[i], last[i]}, static_cast<int64_t>(dim));
      }
      values_ = next;
    }
  }

  /// The padding and holes of windows, which hold the initial value.
  void pad(const std::vector<kernels::WindowDim>& windows) {
    Ints low, high, interior;
    for (const kernels::WindowDim& window : windows) {
      low.push_back(window.pad_low);
      high.push_back(window.pad_high);
      interior.push_back(window.base_dilation - 1);
    }
    for (size_t i = 0; i < count_; ++i) {
      values_[i] = writer_.add("stablehlo.pad", {values_[i], in_type_of_body(i, view_.op->operands[count_ + i])},
                               {{"edge_padding_high", ir::int_array_attr(high)},
                                {"edge_padding_low", ir::int_array_attr(low)},
                                {"interior_padding", ir::int_array_attr(interior)}});
    }
  }

  /// Windows of 5 elements: those of 4, and behind them those of 1.
  void slide(size_t dim, const kernels::WindowDim& window) {
    const int64_t apart = window.window_dilation;
    const int64_t places = dims()[dim] - window.span() + 1;
    Values power = values_;  // windows of `size` elements, at all places
    Values out;
    int64_t done = 0;
    for (int64_t size = 1; size <= window.window; size *= 2) {
      if ((window.window & size) != 0) {
        const Values next = part(power, dim, done * apart, done * apart + places);
        out = out.empty() ? next : combined(out, next);
        done += size;
      }
      if (size * 2 > window.window) break;
      const int64_t length = writer_.type(power[0]).dims()[dim];
      power = combined(part(power, dim, 0, length - size * apart), part(power, dim, size * apart, length));
    }
    values_ = part(out, dim, 0, (window.output_size() - 1) * window.stride + 1, window.stride);
  }

  [[nodiscard]] Values with_initial_values(const Dims& result) {
    Values initial;
    for (size_t i = 0; i < count_; ++i) {
      initial.push_back(writer_.broadcast(in_type_of_body(i, view_.op->operands[count_ + i]), result, {}));
      values_[i] = writer_.reshape(values_[i], result);
    }
    return combined(initial, values_);
  }

 private:
  ir::ValueId in_type_of_body(size_t i, ir::ValueId id) {
    const tensor::DType dtype = argument_types(view_, view_.regions[0]).at(i).dtype();
    const ir::Type type = writer_.type(id);
    if (type.dtype() == dtype) return id;
    return writer_.add("stablehlo.convert", {id}, {}, ir::Type::of({dtype, type.dims()}));
  }

  const OpView& view_;
  size_t count_;
  Writer& writer_;
  Values values_;
};

bool can_step(const OpView& view) {
  return is_pointwise(*view.function, view.regions[0]) && tensor::element_count(view.operands[0].dims()) != 0 &&
         tensor::element_count(view.results[0].dims()) != 0;
}

}  // namespace

std::optional<Values> reduce_in_steps(const OpView& view, Writer& writer) {
  const size_t count = input_count(view);
  if (combines_by(view, count, {ScalarOp::kAdd, ScalarOp::kMaximum, ScalarOp::kMinimum, ScalarOp::kMultiply}) ||
      !can_step(view))
    return std::nullopt;
  Ints dims = ir::ints(attributes_of(view), "dimensions");
  std::sort(dims.begin(), dims.end(), std::greater<>());
  Steps steps(view, count, writer);
  for (const int64_t dim : dims) steps.halve(static_cast<size_t>(dim));
  return steps.with_initial_values(view.results[0].dims());
}

std::optional<Values> reduce_window_in_steps(const OpView& view, Writer& writer) {
  const size_t count = input_count(view);
  const std::vector<kernels::WindowDim> windows = reduce_window_dims(view);
  const bool is_dilated = std::any_of(windows.begin(), windows.end(), [](const kernels::WindowDim& dim) {
    return dim.base_dilation != 1 || dim.window_dilation != 1;
  });
  if (is_dilated ? combines_by(view, count, {ScalarOp::kAdd})
                 : combines_by(view, count, {ScalarOp::kAdd, ScalarOp::kMaximum, ScalarOp::kMinimum}))
    return std::nullopt;
  if (!can_step(view)) return std::nullopt;
  Steps steps(view, count, writer);
  steps.pad(windows);
  for (size_t dim = windows.size(); dim-- > 0;) steps.slide(dim, windows[dim]);
  return steps.with_initial_values(view.results[0].dims());
}

}  // namespace meshd::ops
