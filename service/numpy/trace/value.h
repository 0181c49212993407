// Values of a program while it is traced: Python's own (numbers, texts, tuples, lists, dicts, functions), which are
// known then, and arrays, which are values of the function that is being made.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "service/ir/program.h"
#include "service/numpy/syntax/syntax.h"
#include "service/tensor/shape.h"

namespace meshd::numpy {

class Tracer;
struct Value;

/// An array of the traced program. `weak`: its type came from Python numbers alone and gives way to others (JAX's
/// weak_type).
struct Array {
  ir::ValueId id = ir::kNoValue;
  tensor::TensorType type;
  bool weak = false;

  [[nodiscard]] const tensor::Dims& dims() const { return type.dims; }
  [[nodiscard]] int64_t rank() const { return type.rank(); }
  [[nodiscard]] tensor::DType dtype() const { return type.dtype; }
};

struct None {};
struct Ellipsis {};

/// How large a container is, with what is in it. A container that is in another one is `held`: its items may be
/// replaced by what is no container, and nothing is added to it, so that sizes are known and no list is in itself.
struct Extent {
  int64_t nodes = 1;
  int depth = 1;
  bool held = false;
};

/// A tuple or a list. `region` is where a list was made (Tracer::region): one of outside is not changed inside.
struct Sequence {
  bool is_tuple = true;
  int region = 0;
  std::vector<Value> items;
  Extent extent = {};
};
using SequenceRef = std::shared_ptr<Sequence>;

/// A dict, in the order in which keys were added. Keys are texts or whole numbers as texts.
struct Dict {
  int region = 0;
  bool is_record = false;  ///< its items are attributes (jnp.finfo)
  std::vector<std::pair<std::string, Value>> items;
  Extent extent = {};
};
using DictRef = std::shared_ptr<Dict>;

/// start:stop:step.
struct Slice;
using SliceRef = std::shared_ptr<const Slice>;

/// range(start, stop, step); some of them may be arrays.
struct Range;
using RangeRef = std::shared_ptr<const Range>;

/// P('x', None, ('y', 'z')): the axes of each dimension.
struct Spec {
  std::vector<std::vector<std::string>> dims;
};
using SpecRef = std::shared_ptr<const Spec>;

/// jnp, jax.nn and so on: `path` is that of the tables ("jnp", "nn").
struct Namespace {
  std::string path;
};

/// Arguments of a call, as the caller writes them.
struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

/// What can be called: a function of the text, of a table, or one made of others (vmap(f)).
struct Callable {
  std::string name;
  std::function<Value(Tracer&, CallArguments)> call;
  bool takes_fields = false;  ///< of an f-string it gets the text with {} and, behind it, what is in the fields
};
using CallableRef = std::shared_ptr<const Callable>;

/// x.at and x.at[index].
struct At;
using AtRef = std::shared_ptr<const At>;

/// A name that has no value on every path that leads here. Using it is an error that says `why`.
struct Undefined {
  std::string why;
};

/// A text, which never changes.
using TextRef = std::shared_ptr<const std::string>;

/// A value of Python. Copies of texts, lists and dicts are the same one, as in Python.
struct Value
    : std::variant<None, bool, int64_t, double, std::complex<double>, TextRef, tensor::DType, Array, SequenceRef,
                   DictRef, SliceRef, RangeRef, Ellipsis, SpecRef, Namespace, CallableRef, AtRef, Undefined> {
  using variant::variant;
  Value(std::string text) : variant(std::make_shared<const std::string>(std::move(text))) {}

  template <typename T>
  [[nodiscard]] const T* as() const {
    if constexpr (std::is_same_v<T, std::string>) {
      const auto* text = as<TextRef>();
      return text == nullptr ? nullptr : text->get();
    } else {
      return std::get_if<T>(static_cast<const variant*>(this));
    }
  }
  template <typename T>
  [[nodiscard]] bool is() const {
    return as<T>() != nullptr;
  }
  [[nodiscard]] bool is_none() const { return is<None>(); }
  [[nodiscard]] bool is_number() const {
    return is<bool>() || is<int64_t>() || is<double>() || is<std::complex<double>>();
  }
  [[nodiscard]] const Array* array() const { return as<Array>(); }
  [[nodiscard]] const Sequence* sequence() const {
    const auto* held = as<SequenceRef>();
    return held == nullptr ? nullptr : held->get();
  }
};

struct Slice {
  Value start, stop, step;
};
struct Range {
  Value start, stop, step;
  [[nodiscard]] bool is_static() const { return start.is<int64_t>() && stop.is<int64_t>() && step.is<int64_t>(); }
};
struct At {
  Array array;
  bool has_index = false;
  Value index;
};

Value tuple_of(std::vector<Value> items);
Value list_of(std::vector<Value> items, int region);
Value tuple_of_sizes(const std::vector<int64_t>& sizes);

/// Counts an item that a container gets, and marks it as held where it is one. Throws invalid_program where the
/// container is then larger or deeper than values may be.
void hold(Extent& extent, const Value& item);
/// Throws invalid_program where a key of a dict is longer than is kept.
void check_key(const std::string& key);
/// The same for all items of a container that was just made.
void hold_items(Sequence& sequence);
void hold_items(Dict& dict);
/// Nodes of a value: 1 where it is no container.
int64_t node_count(const Value& value);

/// A scalar bool that is known when the program runs: 'and', 'or', 'not' and a < b < c of it are ops.
bool is_condition(const Value& value);

/// What a value is, for messages: "an int", "a float32 array of shape (2, 3)", "a tuple of 2".
std::string describe(const Value& value);
/// (2, 3), (2,), ().
std::string shape_text(const tensor::Dims& dims);

/// The items of a dict by sorted keys, the order of its leaves. They are the dict's own.
std::vector<const std::pair<std::string, Value>*> sorted_items(const Dict& dict);
/// A tree as JAX flattens it: tuples and lists in order, dicts by sorted keys, None without leaves.
/// Calls `leaf` for each value that is none of these.
void for_each_leaf(const Value& value, const std::function<void(const Value&)>& leaf);
/// These values, in their order.
std::vector<Value> leaves_of(const Value& value);
/// The same tree with what `leaf` gives at each leaf.
Value map_leaves(const Value& value, const std::function<Value(const Value&)>& leaf);
/// True when both have the same nodes, whatever the leaves are. Lists and tuples are different nodes.
bool same_structure(const Value& a, const Value& b);
/// "(*, {'a': *})"
std::string structure_text(const Value& value);
/// True when both are static and equal (numbers by type and value; texts; dtypes; the same function).
bool is_same_static(const Value& a, const Value& b);

}  // namespace meshd::numpy
