#include "service/numpy/trace/value.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/numpy/syntax/limits.h"

namespace meshd::numpy {

std::vector<const std::pair<std::string, Value>*> sorted_items(const Dict& dict) {
  std::vector<const std::pair<std::string, Value>*> out;
  for (const auto& item : dict.items) out.push_back(&item);
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  return out;
}

namespace {

Extent* extent_of(const Value& value) {
  if (const auto* sequence = value.as<SequenceRef>()) return &(*sequence)->extent;
  if (const auto* dict = value.as<DictRef>()) return &(*dict)->extent;
  return nullptr;
}

Value made(Sequence sequence) {
  hold_items(sequence);
  return std::make_shared<Sequence>(std::move(sequence));
}

[[noreturn]] void fail_size(const std::string& detail) {
  throw core::Error("invalid_program", detail, {{"/program/text", detail, 0, 0}});
}

}  // namespace

void hold(Extent& extent, const Value& item) {
  const Extent* inner = extent_of(item);
  extent.nodes += inner == nullptr ? 1 : inner->nodes;
  extent.depth = std::max(extent.depth, inner == nullptr ? 1 : inner->depth + 1);
  if (inner != nullptr) extent_of(item)->held = true;
  if (extent.nodes <= static_cast<int64_t>(kMaxStaticElements) && extent.depth <= kMaxSyntaxDepth) return;
  fail_size(fmt::format(
      "lists, tuples and dicts have at most {} elements, with all that is in them, and are nested {} deep at most",
      kMaxStaticElements, kMaxSyntaxDepth));
}

void check_key(const std::string& key) {
  if (key.size() > kMaxKeyBytes) fail_size(fmt::format("the keys of a dict have at most {} bytes", kMaxKeyBytes));
}

void hold_items(Sequence& sequence) {
  for (const Value& item : sequence.items) hold(sequence.extent, item);
}
void hold_items(Dict& dict) {
  for (const auto& [key, item] : dict.items) {
    check_key(key);
    hold(dict.extent, item);
  }
}

int64_t node_count(const Value& value) {
  const Extent* extent = extent_of(value);
  return extent == nullptr ? 1 : extent->nodes;
}

Value tuple_of(std::vector<Value> items) { return made({true, 0, std::move(items)}); }
Value list_of(std::vector<Value> items, int region) { return made({false, region, std::move(items)}); }
Value tuple_of_sizes(const std::vector<int64_t>& sizes) { return tuple_of({sizes.begin(), sizes.end()}); }

std::string shape_text(const tensor::Dims& dims) {
  std::string out = "(";
  for (size_t i = 0; i < dims.size(); ++i) out += fmt::format("{}{}", i > 0 ? ", " : "", dims[i]);
  return out + (dims.size() == 1 ? ",)" : ")");
}

bool is_condition(const Value& value) {
  const Array* held = value.array();
  return held != nullptr && held->rank() == 0 && held->dtype() == tensor::DType::kBool;
}

std::string describe(const Value& value) {
  struct Describer {
    std::string operator()(const None&) const { return "None"; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(int64_t i) const { return fmt::format("the int {}", i); }
    std::string operator()(double) const { return "a float"; }
    std::string operator()(const std::complex<double>&) const { return "a complex number"; }
    std::string operator()(const TextRef& text) const { return "the text '" + text->substr(0, 40) + "'"; }
    std::string operator()(tensor::DType dtype) const { return "the dtype " + std::string(tensor::name(dtype)); }
    std::string operator()(const Array& array) const {
      const bool is_vowel = tensor::name(array.dtype())[0] == 'i';
      return std::string(is_vowel ? "an " : "a ") + std::string(tensor::name(array.dtype())) + " array of shape " +
             shape_text(array.dims());
    }
    std::string operator()(const SequenceRef& sequence) const {
      return fmt::format("{}{}", sequence->is_tuple ? "a tuple of " : "a list of ", sequence->items.size());
    }
    std::string operator()(const DictRef&) const { return "a dict"; }
    std::string operator()(const SliceRef&) const { return "a slice"; }
    std::string operator()(const RangeRef&) const { return "a range"; }
    std::string operator()(const Ellipsis&) const { return "..."; }
    std::string operator()(const SpecRef&) const { return "a partition spec"; }
    std::string operator()(const Namespace& space) const { return "the module " + space.path; }
    std::string operator()(const CallableRef& function) const { return "the function '" + function->name + "'"; }
    std::string operator()(const AtRef&) const { return "x.at"; }
    std::string operator()(const Undefined&) const { return "nothing"; }
  };
  return std::visit(Describer{}, static_cast<const Value::variant&>(value));
}

void for_each_leaf(const Value& value, const std::function<void(const Value&)>& leaf) {
  if (const Sequence* sequence = value.sequence()) {
    for (const Value& item : sequence->items) for_each_leaf(item, leaf);
  } else if (const auto* dict = value.as<DictRef>()) {
    for (const auto* item : sorted_items(**dict)) for_each_leaf(item->second, leaf);
  } else if (!value.is_none()) {
    leaf(value);
  }
}

std::vector<Value> leaves_of(const Value& value) {
  std::vector<Value> out;
  for_each_leaf(value, [&](const Value& leaf) { out.push_back(leaf); });
  return out;
}

Value map_leaves(const Value& value, const std::function<Value(const Value&)>& leaf) {
  if (const auto* held = value.as<SequenceRef>()) {
    auto copy = std::make_shared<Sequence>(Sequence{(*held)->is_tuple, (*held)->region, {}, {}});
    for (const Value& item : (*held)->items) copy->items.push_back(map_leaves(item, leaf));
    hold_items(*copy);
    return copy;
  }
  if (const auto* held = value.as<DictRef>()) {
    auto copy = std::make_shared<Dict>(Dict{(*held)->region, (*held)->is_record, {}, {}});
    for (const auto* item : sorted_items(**held)) copy->items.emplace_back(item->first, map_leaves(item->second, leaf));
    hold_items(*copy);
    return copy;
  }
  return value.is_none() ? value : leaf(value);
}

bool same_structure(const Value& a, const Value& b) {
  const Sequence* first = a.sequence();
  const Sequence* second = b.sequence();
  if (first != nullptr || second != nullptr) {
    return first != nullptr && second != nullptr && first->is_tuple == second->is_tuple &&
           std::equal(first->items.begin(), first->items.end(), second->items.begin(), second->items.end(),
                      same_structure);
  }
  const auto* left = a.as<DictRef>();
  const auto* right = b.as<DictRef>();
  if (left == nullptr && right == nullptr) return a.is_none() == b.is_none();
  if (left == nullptr || right == nullptr) return false;
  const auto x = sorted_items(**left);
  const auto y = sorted_items(**right);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto* p, const auto* q) {
    return p->first == q->first && same_structure(p->second, q->second);
  });
}

std::string structure_text(const Value& value) {
  std::string out;
  if (const Sequence* sequence = value.sequence()) {
    for (const Value& item : sequence->items) out += (out.empty() ? "" : ", ") + structure_text(item);
    if (!sequence->is_tuple) return "[" + out + "]";
    return "(" + out + (sequence->items.size() == 1 ? ",)" : ")");
  }
  if (const auto* dict = value.as<DictRef>()) {
    for (const auto* item : sorted_items(**dict))
      out += (out.empty() ? "'" : ", '") + item->first + "': " + structure_text(item->second);
    return "{" + out + "}";
  }
  return value.is_none() ? "None" : "*";
}

bool is_same_static(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (a.is_none() || a.is<Ellipsis>()) return true;
  if (const auto* x = a.as<bool>()) return *x == *b.as<bool>();
  if (const auto* x = a.as<int64_t>()) return *x == *b.as<int64_t>();
  if (const auto* x = a.as<double>()) return *x == *b.as<double>();
  if (const auto* x = a.as<std::complex<double>>()) return *x == *b.as<std::complex<double>>();
  if (const auto* x = a.as<std::string>()) return *x == *b.as<std::string>();
  if (const auto* x = a.as<tensor::DType>()) return *x == *b.as<tensor::DType>();
  if (const auto* x = a.as<CallableRef>()) return *x == *b.as<CallableRef>();
  if (const auto* x = a.as<Namespace>()) return x->path == b.as<Namespace>()->path;
  if (const auto* x = a.as<SliceRef>()) return *x == *b.as<SliceRef>();
  if (const auto* x = a.as<RangeRef>()) return *x == *b.as<RangeRef>();
  if (const auto* x = a.as<SpecRef>()) return *x == *b.as<SpecRef>();
  return false;
}

}  // namespace meshd::numpy
