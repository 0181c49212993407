#include "service/numpy/trace/bind.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "service/core/near_names.h"

namespace meshd::numpy {

std::vector<Value> bind(Tracer& t, const std::string& name, const std::vector<FunctionParameter>& parameters,
                        const std::vector<Value>& defaults, CallArguments arguments) {
  t.count_steps(static_cast<int64_t>(parameters.size() * (4 + arguments.keywords.size()) / 16));
  std::vector<Value> out = defaults;
  std::vector<bool> given(parameters.size(), false);
  size_t next = 0;
  auto rest = std::make_shared<Sequence>();
  auto others = std::make_shared<Dict>();
  others->region = t.region_depth();
  std::optional<size_t> rest_at;
  std::optional<size_t> others_at;
  size_t most = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].kind == ParameterKind::kArguments) rest_at = i;
    if (parameters[i].kind == ParameterKind::kKeywords) others_at = i;
    if (parameters[i].kind == ParameterKind::kPositional || parameters[i].kind == ParameterKind::kPositionalOnly)
      ++most;
  }
  for (Value& value : arguments.positional) {
    if (const auto* undefined = value.as<Undefined>()) t.refuse(undefined->why);
    if (next < most) {
      given[next] = true;
      out[next++] = std::move(value);
    } else if (rest_at) {
      rest->items.push_back(std::move(value));
    } else {
      t.refuse(fmt::format("'{}' takes {}{}{} are given", name, most,
                           most == 1 ? " positional argument, " : " positional arguments, ",
                           arguments.positional.size()));
    }
  }
  for (auto& [keyword, value] : arguments.keywords) {
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const FunctionParameter& parameter) {
      return parameter.name == keyword &&
             (parameter.kind == ParameterKind::kPositional || parameter.kind == ParameterKind::kKeywordOnly);
    });
    if (found == parameters.end()) {
      if (others_at) {
        others->items.emplace_back(keyword, std::move(value));
        continue;
      }
      std::vector<std::string> known;
      for (const FunctionParameter& parameter : parameters) known.push_back(parameter.name);
      t.refuse("'" + name + "' has no argument '" + keyword + "'" + core::did_you_mean(keyword, known));
    }
    const auto at = static_cast<size_t>(found - parameters.begin());
    if (given[at]) t.refuse("'" + name + "' gets '" + keyword + "' twice");
    given[at] = true;
    out[at] = std::move(value);
  }
  hold_items(*rest);
  hold_items(*others);
  if (rest_at) out[*rest_at] = rest;
  if (others_at) out[*others_at] = others;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].is<Undefined>()) t.refuse("'" + name + "' needs an argument '" + parameters[i].name + "'");
  }
  return out;
}

}  // namespace meshd::numpy
