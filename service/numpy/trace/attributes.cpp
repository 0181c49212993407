// Attributes and items of values: x.shape, jnp.sum, list.append, x[i], x.at[i].set.
#include <fmt/core.h>

#include <algorithm>

#include "service/core/ascii.h"
#include "service/core/near_names.h"
#include "service/numpy/syntax/limits.h"
#include "service/numpy/trace/indexing.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {
namespace {

// Functions whose results have shapes that depend on data, for which JAX has no program either.
constexpr std::string_view kDataShaped[] = {"jnp.extract",  "jnp.compress",    "jnp.setdiff1d",
                                            "jnp.setxor1d", "jnp.intersect1d", "jnp.trim_zeros"};

CallableRef function_of(std::string name, std::function<Value(Tracer&, CallArguments)> call) {
  return std::make_shared<Callable>(Callable{std::move(name), std::move(call)});
}

// The function with `first` as its first argument.
Value bound(const Value& function, const Value& first) {
  const CallableRef held = *function.as<CallableRef>();
  return function_of(held->name, [held, first](Tracer& t, CallArguments arguments) {
    arguments.positional.insert(arguments.positional.begin(), first);
    return held->call(t, std::move(arguments));
  });
}

const std::vector<std::string> kUpdates = {"set",   "add", "subtract", "multiply", "mul",  "divide",
                                           "power", "min", "max",      "get",      "apply"};

Value at_method(Tracer& tracer, const AtRef& at, const std::string& name) {
  if (!at->has_index) tracer.refuse("x.at is indexed first: x.at[index]." + name);
  if (std::find(kUpdates.begin(), kUpdates.end(), name) == kUpdates.end()) {
    tracer.refuse("x.at[index] has no method '" + name + "'" + core::did_you_mean(name, kUpdates) +
                  "; there are set, add, subtract, multiply, divide, power, min, max, get and apply");
  }
  return function_of(name, [at, name](Tracer& t, CallArguments arguments) -> Value {
    for (const auto& [keyword, value] : arguments.keywords) {
      if (keyword == "mode") t.unsupported("'mode' of x.at[index]." + name + " (indices outside are dropped)");
      if (keyword != "indices_are_sorted" && keyword != "unique_indices")
        t.refuse("x.at[index]." + name + " has no argument '" + keyword + "'");
    }
    if (arguments.positional.size() != (name == "get" ? 0U : 1U))
      t.refuse("x.at[index]." + name + (name == "get" ? " takes no value" : " takes one value"));
    if (name == "get") return index_array(t, at->array, at->index);
    if (name == "apply") {
      const Value old = index_array(t, at->array, at->index);
      return update_array(t, at->array, at->index, "set", t.call(arguments.positional[0], std::vector<Value>{old}));
    }
    return update_array(t, at->array, at->index, name == "mul" ? "multiply" : name, arguments.positional[0]);
  });
}

Value array_attribute(Tracer& t, const Array& array, const std::string& name) {
  if (name == "shape") return tuple_of_sizes(array.dims());
  if (name == "ndim") return array.rank();
  if (name == "size") return tensor::element_count(array.type);
  if (name == "dtype") return array.dtype();
  if (name == "weak_type") return array.weak;
  if (name == "itemsize") return tensor::size_bytes(array.dtype());
  if (name == "nbytes") return tensor::byte_count(array.type);
  if (name == "at") return AtRef(std::make_shared<At>(At{array, false, {}}));
  if (name == "real") return tensor::is_complex(array.dtype()) ? t.real(array) : array;
  if (name == "imag") return tensor::is_complex(array.dtype()) ? t.imag(array) : t.full_like(array, int64_t{0});
  if (name == "T" || name == "mT") {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < array.rank(); ++i) order.push_back(i);
    if (name == "T") std::reverse(order.begin(), order.end());
    if (name == "mT") {
      if (array.rank() < 2) t.refuse(".mT takes an array of two dimensions or more");
      std::swap(order[order.size() - 1], order[order.size() - 2]);
    }
    return t.transpose(array, order);
  }
  if (const Value* method = t.globals().find_method(name)) return bound(*method, array);
  std::vector<std::string> known = t.globals().method_names();
  for (const char* own : {"shape", "ndim", "size", "dtype", "at", "real", "imag", "T", "mT"}) known.emplace_back(own);
  std::string near = core::did_you_mean(name, known);
  if (near.empty() && t.globals().find("jnp." + name) != nullptr) near = "; jnp." + name + " is a function";
  t.refuse("arrays have no attribute '" + name + "'" + near);
}

// Methods of texts: those that choose by a name, as in mode.lower() == "same".
Value text_method(Tracer& tracer, const Value& held, const std::string& name) {
  const std::vector<std::string> known = {"lower", "upper", "strip", "startswith", "endswith"};
  if (std::find(known.begin(), known.end(), name) == known.end())
    tracer.refuse(describe(held) + " has no attribute '" + name + "'" + core::did_you_mean(name, known));
  return function_of(name, [held, name](Tracer& t, CallArguments arguments) -> Value {
    const std::string& text = *held.as<std::string>();
    const bool asks = name == "startswith" || name == "endswith";
    if (arguments.positional.size() != (asks ? 1U : 0U))
      t.refuse("'" + name + "' of a text takes " + (asks ? "one text" : "nothing"));
    if (asks) {
      const std::string part = t.to_text(arguments.positional[0], "what '" + name + "' takes");
      return name == "startswith" ? text.starts_with(part) : text.ends_with(part);
    }
    std::string out = text;
    if (name == "strip") {
      const size_t first = out.find_first_not_of(" \t\r\n");
      if (first == std::string::npos) return std::string();
      return t.made_text(out.substr(first, out.find_last_not_of(" \t\r\n") - first + 1));
    }
    for (char& c : out) {
      if (name == "lower") c = core::to_lower(c);
      if (name == "upper" && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return t.made_text(std::move(out));
  });
}

}  // namespace

Value Tracer::attribute(const Value& value, const std::string& name) {
  if (const auto* undefined = value.as<Undefined>()) refuse(undefined->why);
  if (const Array* held = value.array()) return array_attribute(*this, *held, name);
  if (const auto* space = value.as<Namespace>()) {
    const std::string path = globals_.canonical_path(space->path + "." + name);
    if (const Value* found = globals_.find(path)) return *found;
    if (std::find(std::begin(kDataShaped), std::end(kDataShaped), path) != std::end(kDataShaped)) {
      unsupported("'" + path +
                  "' is not supported: the shape of its result depends on data; jnp.where, jnp.sort and "
                  "masks keep shapes, and jnp.unique, jnp.union1d and jnp.nonzero take size=");
    }
    if (path == "jnp.random") {
      refuse(
          "NumPy's random state is not there: random.normal(random.key(0), (2, 3)) draws from a key, and so do the "
          "other "
          "functions of jax.random");
    }
    const std::vector<std::string> known = globals_.names_in(space->path);
    std::string advice = core::did_you_mean(name, known);
    if (advice.empty())
      advice = "; GET /v1/functions lists what is there, and what is not may be lowered by JAX and sent as StableHLO";
    refuse("'" + space->path + "' has no '" + name + "' here" + advice);
  }
  if (const auto* at = value.as<AtRef>()) return at_method(*this, *at, name);
  if (value.is_number() && name == "shape") return tuple_of({});
  if (value.is_number() && name == "ndim") return int64_t{0};
  if (value.is_number() && name == "dtype") return type_of(value).dtype;
  if (value.is_number() && (name == "real" || name == "imag")) {
    if (const auto* both = value.as<std::complex<double>>()) return name == "real" ? both->real() : both->imag();
    return name == "real" ? value : Value(int64_t{0});
  }
  if (value.is_number() && globals_.find_method(name) != nullptr)
    return bound(*globals_.find_method(name), array(value));
  if (const auto* dtype = value.as<DType>()) {
    if (name == "name") return std::string(tensor::name(*dtype));
    if (name == "itemsize") return tensor::size_bytes(*dtype);
  }
  return function_attribute(value, name);
}

// Methods of lists, dicts and texts.
Value Tracer::function_attribute(const Value& value, const std::string& name) {
  if (const auto* list = value.as<SequenceRef>();
      list != nullptr && !(*list)->is_tuple &&
      (name == "append" || name == "extend" || name == "pop" || name == "insert")) {
    return function_of(name, [held = *list, name](Tracer& t, CallArguments arguments) -> Value {
      if (held->region != t.region_depth())
        t.refuse(
            "a list from outside is changed inside of an if or a loop on arrays; the twin of such a list is an array: "
            "x.at[i].set(value)");
      if (held->extent.held) t.refuse("a list that is an element of another is not changed in length; make it first");
      if (name == "pop") {
        if (held->items.empty()) t.refuse("the list is empty");
        const int64_t size = static_cast<int64_t>(held->items.size());
        int64_t at = arguments.positional.empty() ? -1 : t.to_int(arguments.positional[0], "an index of a list");
        if (at < -size || at >= size) t.refuse(fmt::format("index {} is outside of the list", at));
        if (at < 0) at += size;
        t.count_steps((size - at) / 16);  // those that move
        Value out = held->items[static_cast<size_t>(at)];
        held->extent.nodes -= node_count(out);
        held->items.erase(held->items.begin() + at);
        return out;
      }
      const bool is_insert = name == "insert";
      if (arguments.positional.size() != (is_insert ? 2U : 1U))
        t.refuse(fmt::format("'{}' of a list takes {}", name, is_insert ? "a place and a value" : "one value"));
      const Value& given = arguments.positional.back();
      const auto* same = given.as<SequenceRef>();
      if (name != "extend" && same != nullptr && *same == held) t.refuse("a list cannot be an item of itself");
      if (held->items.size() >= kMaxStaticElements) t.refuse("the list is longer than is kept");
      if (name == "extend") {
        const std::vector<Value> more = t.items_of(given, "extend");
        for (const Value& each : more) hold(held->extent, each);
        held->items.insert(held->items.end(), more.begin(), more.end());
        if (held->items.size() > kMaxStaticElements) t.refuse("the list is longer than is kept");
      } else {
        const auto size = static_cast<int64_t>(held->items.size());
        int64_t at = is_insert ? t.to_int(arguments.positional[0], "an index of a list") : size;
        at = std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
        t.count_steps((size - at) / 16);
        hold(held->extent, given);
        held->items.insert(held->items.begin() + at, given);
      }
      return None{};
    });
  }
  if (const auto* dict = value.as<DictRef>()) {
    if ((*dict)->is_record) {
      for (const auto& item : (*dict)->items) {
        if (item.first == name) return item.second;
      }
    }
    if (name == "keys" || name == "values" || name == "items" || name == "get") {
      return function_of(name, [held = *dict, name](Tracer& t, CallArguments arguments) -> Value {
        if (name == "get") {
          if (arguments.positional.empty()) t.refuse("'get' takes a key");
          if (const Value* const found = t.find_item(held, t.dict_key(arguments.positional[0]))) return *found;
          return arguments.positional.size() > 1 ? arguments.positional[1] : Value();
        }
        t.count_steps(held->extent.nodes);
        std::vector<Value> out;
        for (const auto& item : held->items) {
          if (name == "keys") out.emplace_back(item.first);
          if (name == "values") out.push_back(item.second);
          if (name == "items") out.push_back(tuple_of({item.first, item.second}));
        }
        return list_of(std::move(out), t.region_depth());
      });
    }
  }
  if (value.is<std::string>()) return text_method(*this, value, name);
  refuse(describe(value) + " has no attribute '" + name + "'");
}

Value Tracer::subscript(const Value& value, const Value& index) {
  if (const auto* undefined = value.as<Undefined>()) refuse(undefined->why);
  if (const Array* held = value.array()) return index_array(*this, *held, index);
  if (const auto* at = value.as<AtRef>()) {
    if ((*at)->has_index) refuse("x.at[index] is not indexed again; x.at[i, j] indexes twice");
    return AtRef(std::make_shared<At>(At{(*at)->array, true, index}));
  }
  return container_subscript(value, index);
}

Value Tracer::container_subscript(const Value& value, const Value& index) {
  if (const auto* dict = value.as<DictRef>()) {
    const std::string key = dict_key(index);
    if (const Value* const found = find_item(*dict, key)) return *found;
    std::vector<std::string> known;
    for (const auto& item : (*dict)->items) known.push_back(item.first);
    refuse("the dict has no key '" + key + "'" + core::did_you_mean(key, known));
  }
  if (const Sequence* sequence = value.sequence(); sequence != nullptr && index.is<int64_t>()) {
    const auto count = static_cast<int64_t>(sequence->items.size());
    const int64_t at = *index.as<int64_t>();
    if (at >= -count && at < count) return sequence->items[static_cast<size_t>(at < 0 ? at + count : at)];
  }
  step(node_count(value));
  std::vector<Value> items;
  if (const Sequence* sequence = value.sequence()) {
    items = sequence->items;
  } else if (value.is<RangeRef>() || value.is<std::string>()) {
    items = items_of(value, "an index");
  } else {
    refuse(describe(value) + " cannot be indexed");
  }
  const auto size = static_cast<int64_t>(items.size());
  if (const auto* slice = index.as<SliceRef>()) {
    const SlicedRange range = sliced_range(*this, **slice, size);
    std::vector<Value> out;
    for (int64_t i = 0; i < range.count; ++i) out.push_back(items[static_cast<size_t>(range.start + i * range.step)]);
    if (value.is<std::string>()) {
      std::string text;
      for (const Value& each : out) text += *each.as<std::string>();
      return made_text(std::move(text));
    }
    return value.sequence() != nullptr && !value.sequence()->is_tuple ? list_of(std::move(out), region_depth())
                                                                      : tuple_of(std::move(out));
  }
  if (index.array() != nullptr)
    refuse(describe(value) + " cannot be indexed by an array; jnp.stack makes an array of it, which can");
  int64_t at = to_int(index, "an index");
  if (at < -size || at >= size) refuse(fmt::format("index {} is outside of {}", at, describe(value)));
  return items[static_cast<size_t>(at < 0 ? at + size : at)];
}

}  // namespace meshd::numpy
