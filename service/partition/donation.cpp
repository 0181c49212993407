#include "service/partition/donation.h"

#include <fmt/core.h>

#include <algorithm>

namespace meshd::partition {
namespace {

// Token-free number of a result counted with tokens, or -1.
int64_t without_tokens(const ir::Function& main, int64_t number) {
  int64_t out = 0;
  for (size_t i = 0; i < main.results.size(); ++i) {
    if (static_cast<int64_t>(i) == number) return main.results[i].is_token ? -1 : out;
    if (!main.results[i].is_token) ++out;
  }
  return -1;
}

// Two parameters whose shards are the same bytes in the same places.
bool same_bytes(const LocalProgram& program, const LocalParameter& a, const LocalParameter& b) {
  const ShardedType& left = program.type(a.value);
  const ShardedType& right = program.type(b.value);
  return left.local == right.local && left.varies == right.varies && left.layout.view == right.layout.view;
}

}  // namespace

void plan_donation(LocalProgram& program, const ir::Function& main, const std::optional<std::vector<int64_t>>& donate) {
  std::vector<bool> taken(program.results.size(), false);
  std::vector<const ir::Parameter*> written;
  for (const ir::Parameter& parameter : main.arguments) {
    if (!parameter.is_token) written.push_back(&parameter);
  }
  if (donate) {
    for (LocalParameter& argument : program.arguments) {
      argument.is_donated = std::find(donate->begin(), donate->end(), argument.position) != donate->end();
    }
  }
  // Aliases in the module's attributes take precedence.
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    LocalParameter& argument = program.arguments[i];
    if (!argument.is_donated || !written[i]->aliases_output) continue;
    const int64_t result = without_tokens(main, *written[i]->aliases_output);
    if (result < 0 || taken[static_cast<size_t>(result)]) continue;
    argument.aliases = result;
    taken[static_cast<size_t>(result)] = true;
  }
  // Then equal shape and dtype in the order of results, then equal bytes.
  const auto match = [&](auto&& fits) {
    for (LocalParameter& argument : program.arguments) {
      if (!argument.is_donated || argument.aliases >= 0) continue;
      for (size_t r = 0; r < program.results.size(); ++r) {
        if (taken[r] || !fits(argument, program.results[r])) continue;
        argument.aliases = static_cast<int64_t>(r);
        taken[r] = true;
        break;
      }
    }
  };
  match([&](const LocalParameter& a, const LocalParameter& r) {
    return a.global_type == r.global_type && same_bytes(program, a, r);
  });
  match([&](const LocalParameter& a, const LocalParameter& r) { return a.global_type == r.global_type; });
  match([&](const LocalParameter& a, const LocalParameter& r) {
    return tensor::element_count(a.global_type) == tensor::element_count(r.global_type) &&
           tensor::size_bytes(a.global_type.dtype) == tensor::size_bytes(r.global_type.dtype);
  });

  std::string unusable;
  for (const LocalParameter& argument : program.arguments) {
    if (!argument.is_donated || argument.aliases >= 0) continue;
    unusable += fmt::format("{}{}{}", unusable.empty() ? "" : ", ", tensor::name(argument.global_type.dtype),
                            tensor::to_string(std::span<const int64_t>(argument.global_type.dims)));
  }
  if (!unusable.empty()) program.warnings.push_back("some donated buffers were not usable: " + unusable);
}

}  // namespace meshd::partition
