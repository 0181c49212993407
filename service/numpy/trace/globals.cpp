#include "service/numpy/trace/globals.h"

#include <algorithm>

namespace meshd::numpy {

Globals::Globals(Values values, std::span<const Meaning> modules, std::span<const Meaning> names,
                 std::span<const std::string_view> methods)
    : values_(std::move(values)), modules_(modules), names_(names), methods_(methods) {}

const Value* Globals::find(std::string_view path) const {
  const auto found = values_.find(path);
  return found == values_.end() ? nullptr : &found->second;
}

const Value* Globals::find_name(std::string_view name) const {
  for (const auto& [known, path] : names_) {
    if (known == name) return find(path);
  }
  if (name.find('.') == std::string_view::npos) {
    if (const Value* module = find(name); module != nullptr) return module;
  }
  return find("builtins." + std::string(name));
}

std::vector<std::string> Globals::names() const {
  std::vector<std::string> out{"jnp", "np", "jax", "random", "nn", "lax"};
  for (const auto& [name, path] : names_) out.emplace_back(name);
  for (std::string& name : names_in("builtins")) out.push_back(std::move(name));
  return out;
}

std::vector<std::string> Globals::names_in(std::string_view path) const {
  std::vector<std::string> out;
  const std::string prefix = std::string(path) + ".";
  for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at) {
    const std::string name = at->first.substr(prefix.size());
    if (name.find('.') == std::string::npos) out.push_back(name);
  }
  return out;
}

std::string Globals::canonical_path(std::string_view path) const {
  for (const auto& [name, known] : modules_) {
    if (name == path) return std::string(known);
  }
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::string(path);
  return canonical_path(path.substr(0, dot)) + std::string(path.substr(dot));
}

const Value* Globals::find_method(std::string_view name) const {
  if (std::find(methods_.begin(), methods_.end(), name) == methods_.end()) return nullptr;
  return find("jnp." + std::string(name));
}

std::vector<std::string> Globals::method_names() const { return {methods_.begin(), methods_.end()}; }

}  // namespace meshd::numpy
