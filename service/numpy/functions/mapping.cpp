#include "service/numpy/functions/mapping.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/numpy/functions/shared.h"
#include "service/numpy/functions/traced_function.h"
#include "service/program/batching/batched.h"

namespace meshd::numpy {
namespace {

// So many rows are traced one by one where the function is not rewritten; more of them are a loop.
constexpr int64_t kMostUnrolledRows = 8;

using Axes = std::vector<std::optional<int64_t>>;

std::optional<int64_t> axis_from(Tracer& t, const Value& axis) {
  return axis.is_none() ? std::nullopt : std::optional(t.to_int(axis, "an axis of vmap"));
}

// The axis of each leaf of a value: an int or None for all of them, or a tree like the value.
void add_axes(Tracer& t, const Value& axes, const Value& value, std::string_view name, Axes& out) {
  const Sequence* list = axes.sequence();
  const Sequence* items = value.sequence();
  if (list != nullptr && items != nullptr && list->items.size() == items->items.size()) {
    for (size_t i = 0; i < list->items.size(); ++i) add_axes(t, list->items[i], items->items[i], name, out);
    return;
  }
  const auto* named = axes.as<DictRef>();
  const auto* values = value.as<DictRef>();
  if (named != nullptr && values != nullptr) {
    const auto of_axes = sorted_items(**named);
    const auto of_value = sorted_items(**values);
    if (std::equal(of_axes.begin(), of_axes.end(), of_value.begin(), of_value.end(),
                   [](const auto* x, const auto* y) { return x->first == y->first; })) {
      for (size_t i = 0; i < of_axes.size(); ++i) add_axes(t, of_axes[i]->second, of_value[i]->second, name, out);
      return;
    }
  }
  if (list != nullptr || named != nullptr)
    t.refuse(fmt::format("{} {} has not the structure of what it is for, {}", name, structure_text(axes),
                         structure_text(value)));
  for_each_leaf(value, [&](const Value&) { out.push_back(axis_from(t, axes)); });
}

tensor::Dims with_rows(int64_t rows, const tensor::Dims& dims) {
  tensor::Dims out = dims;
  out.insert(out.begin(), rows);
  return out;
}

// One call of vmap(f): its arguments with the axes that it goes over in front.
class MappedCall {
 public:
  MappedCall(Tracer& t, const Value& function, const Mapping& mapping, const CallArguments& given)
      : t_(t), function_(function), mapping_(mapping), given_(given) {
    find_axes();
    size_t at = 0;
    for_each_argument([&](Value& argument) {
      argument = map_leaves(argument, [&](const Value& leaf) { return with_rows_in_front(leaf, axes_.at(at++)); });
    });
    if (!rows_) rows_ = mapping.axis_size;
    if (!rows_) t_.refuse("vmap goes over no axis: in_axes is None for every argument");
    if (mapping.axis_size && *mapping.axis_size != *rows_)
      t_.refuse(fmt::format("axis_size is {}, the axes of the arguments have {}", *mapping.axis_size, *rows_));
  }

  Value run() {
    if (auto made = rewritten()) return *made;
    if (*rows_ == 0) t_.unsupported("vmap over no rows of this function");
    return with_out_axes(*rows_ <= kMostUnrolledRows ? unrolled() : looped());
  }

 private:
  void for_each_argument(const std::function<void(Value&)>& visit) {
    for (Value& argument : given_.positional) visit(argument);
    for (auto& [name, argument] : given_.keywords) visit(argument);
  }

  void find_axes() {
    const Sequence* list = mapping_.in_axes.sequence();
    if (list != nullptr && list->items.size() != given_.positional.size())
      t_.refuse(fmt::format("in_axes has {} entries for {} arguments", list->items.size(), given_.positional.size()));
    for (size_t i = 0; i < given_.positional.size(); ++i)
      add_axes(t_, list != nullptr ? list->items[i] : mapping_.in_axes, given_.positional[i], "in_axes", axes_);
    for (const auto& [name, argument] : given_.keywords) add_axes(t_, int64_t{0}, argument, "in_axes", axes_);
  }

  Value with_rows_in_front(const Value& leaf, std::optional<int64_t> axis) {
    if (!axis) return leaf;
    const Array x = t_.array(leaf);
    const Array front = move_axes(t_, x, {*axis}, {0});
    if (rows_ && *rows_ != front.dims()[0])
      t_.refuse(fmt::format("vmap goes over axes of different sizes, {} and {}", *rows_, front.dims()[0]));
    rows_ = front.dims()[0];
    return front;
  }

  // The call for one row, whose leaves `row` gives for those that have rows.
  Value call_with(const std::function<Value(const Array&)>& row) {
    CallArguments arguments = given_;
    size_t at = 0;
    const auto taken = [&](const Value& argument) {
      return map_leaves(argument, [&](const Value& leaf) { return axes_.at(at++) ? row(*leaf.array()) : leaf; });
    };
    for (Value& argument : arguments.positional) argument = taken(argument);
    for (auto& [name, argument] : arguments.keywords) argument = taken(argument);
    return t_.call(function_, std::move(arguments));
  }

  std::optional<Value> rewritten() {
    if (t_.has_effects()) return std::nullopt;
    std::vector<WeakType> types;
    std::vector<tensor::Dims> dims;
    std::vector<ir::ValueId> arguments;
    size_t at = 0;
    for_each_argument([&](const Value& argument) {
      for_each_leaf(argument, [&](const Value& leaf) {
        if (!axes_.at(at++)) return;
        const Array& x = *leaf.array();
        types.push_back({x.dtype(), x.weak});
        dims.emplace_back(x.dims().begin() + 1, x.dims().end());
        arguments.push_back(x.id);
      });
    });
    const TracedFunction traced = trace_function(t_, types, dims, "vmap", [&](const std::vector<Array>& rows) {
      size_t next = 0;
      return call_with([&](const Array&) { return Value(rows.at(next++)); });
    });
    std::vector<bool> flags(arguments.size(), true);
    flags.resize(arguments.size() + traced.captured.size(), false);
    const auto module = program::batched(traced.module, flags, *rows_);
    if (!module) return std::nullopt;
    arguments.insert(arguments.end(), traced.captured.begin(), traced.captured.end());
    const std::vector<ir::ValueId> made = insert_main(t_, *module, arguments);
    std::vector<Value> leaves;
    for (size_t i = 0; i < made.size(); ++i) leaves.emplace_back(t_.array_of(made[i], traced.results[i].weak));
    return with_out_axes(with_arrays(traced.made, leaves));
  }

  Array as_row(const Value& leaf) {
    const Array x = t_.array(leaf);
    return t_.reshape(x, with_rows(1, x.dims()));
  }

  Value unrolled() {
    std::vector<std::vector<Array>> columns;
    Value kind;
    for (int64_t i = 0; i < *rows_; ++i) {
      kind = call_with([&](const Array& x) { return t_.subscript(x, i); });
      size_t at = 0;
      for_each_leaf(kind, [&](const Value& leaf) {
        if (columns.size() <= at) columns.emplace_back();
        columns[at++].push_back(as_row(leaf));
      });
    }
    size_t at = 0;
    return map_leaves(kind, [&](const Value&) -> Value { return t_.concatenate(columns[at++], 0); });
  }

  Value looped() {
    const auto row = [&](const Value& index) {
      return call_with([&](const Array& x) { return t_.subscript(x, index); });
    };
    const Value zero = t_.full({DType::kInt32, {}}, int64_t{0});
    const Value kind = t_.traced_aside([&] { return row(zero); });
    const Value stacked = map_leaves(kind, [&](const Value& leaf) -> Value {
      const Array& y = *leaf.array();
      return t_.full({y.dtype(), with_rows(*rows_, y.dims())}, int64_t{0}, y.weak);
    });
    const auto body = [&](const Value& index, const std::vector<Value>& now) {
      std::vector<Value> leaves;
      for_each_leaf(row(index), [&](const Value& leaf) { leaves.push_back(leaf); });
      size_t at = 0;
      return std::vector<Value>{map_leaves(now[0], [&](const Value& leaf) -> Value {
        const Array& all = *leaf.array();
        std::vector<Array> starts(all.dims().size(), t_.full({DType::kInt32, {}}, int64_t{0}));
        starts[0] = t_.convert(t_.array(index), DType::kInt32);
        return t_.dynamic_update_slice(all, t_.convert(as_row(leaves.at(at++)), all.dtype(), all.weak), starts);
      })};
    };
    return t_.counted_loop(int64_t{0}, *rows_, int64_t{1}, {stacked}, {"the results of vmap"}, body)[0];
  }

  Value with_out_axes(const Value& made) {
    Axes axes;
    add_axes(t_, mapping_.out_axes, made, "out_axes", axes);
    size_t at = 0;
    return map_leaves(made, [&](const Value& leaf) -> Value {
      const std::optional<int64_t> axis = axes.at(at++);
      if (leaf.array() == nullptr) return leaf;
      if (!axis) t_.unsupported("vmap with an out_axes of None");
      return move_axes(t_, *leaf.array(), {0}, {*axis});
    });
  }

  Tracer& t_;
  const Value& function_;
  const Mapping& mapping_;
  CallArguments given_;
  Axes axes_;  // by leaf of the arguments, those with names last
  std::optional<int64_t> rows_;
};

}  // namespace

Value mapped_call(Tracer& t, const Value& function, const Mapping& mapping, const CallArguments& given) {
  return MappedCall(t, function, mapping, given).run();
}

}  // namespace meshd::numpy
