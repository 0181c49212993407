#include "service/jobs/admission/argument_count.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string>

#include "service/compile/rewrite/specialised.h"
#include "service/core/error.h"
#include "service/tensor/shape.h"

namespace meshd::jobs {
namespace {

bool may_be(const GivenArgument& given, const tensor::TensorType& wanted) {
  if (given.dtype && *given.dtype != wanted.dtype) return false;
  return !given.dims || compile::fits({wanted.dtype, *given.dims}, wanted);
}

/// The only way to choose `few` of `many` in their order so that each pair fits; nothing where there is no way or more
/// than one. The earliest choice that fits and the latest one are the same exactly then.
std::optional<std::vector<size_t>> only_choice(size_t many, size_t few,
                                               const std::function<bool(size_t of_many, size_t of_few)>& fits) {
  std::vector<size_t> earliest;
  for (size_t i = 0; i < many && earliest.size() < few; ++i) {
    if (fits(i, earliest.size())) earliest.push_back(i);
  }
  std::vector<size_t> latest;
  for (size_t i = many; i > 0 && latest.size() < few; --i) {
    if (fits(i - 1, few - 1 - latest.size())) latest.push_back(i - 1);
  }
  std::reverse(latest.begin(), latest.end());
  if (earliest.size() < few || earliest != latest) return std::nullopt;
  return earliest;
}

std::vector<size_t> all_but(size_t count, const std::vector<size_t>& chosen) {
  std::vector<size_t> out;
  for (size_t i = 0; i < count; ++i) {
    if (!std::binary_search(chosen.begin(), chosen.end(), i)) out.push_back(i);
  }
  return out;
}

std::string counted(size_t count) { return fmt::format("{}{}", count, count == 1 ? " argument" : " arguments"); }

std::string pointer_to(size_t argument) { return fmt::format("/arguments/{}", argument); }

/// "tensor<3xf32> 'x'", the name where the text has a location for it.
std::string text_of(const ir::Parameter& parameter) {
  const std::string& name = parameter.location.name;
  return fmt::format("{}{}", ir::to_string(parameter.type), name.empty() ? "" : " '" + name + "'");
}

/// What jax.export fills in itself, as its attribute calls it; empty for arguments of the function.
std::string constant_name(const ir::Parameter& parameter) {
  return ir::string_or(parameter.attributes, "jax.global_constant", "");
}

/// "(tensor<3xf32> 'x', tensor<2xf32>)", the first few.
std::string signature(const compile::ParsedProgram& program) {
  constexpr size_t kShown = 8;
  std::string out;
  const size_t count = program.arguments.size();
  for (size_t i = 0; i < std::min(count, kShown); ++i) out += (i == 0 ? "" : ", ") + text_of(program.argument(i));
  return "(" + out + (count > kShown ? ", ...)" : ")");
}

[[noreturn]] void refuse_surplus(const compile::ParsedProgram& program, std::span<const GivenArgument> given,
                                 const std::string& counts) {
  const size_t expected = program.arguments.size();
  const auto kept = only_choice(given.size(), expected, [&](size_t argument, size_t parameter) {
    return may_be(given[argument], program.argument(parameter).type.tensor);
  });
  const std::string why = "; jax.jit drops arguments that the function does not use";
  if (!kept) {
    throw core::Error("invalid_argument",
                      counts + why + ": leave those out, or lower with jax.jit(f, keep_unused=True)",
                      {{"/arguments", fmt::format("expected {} entries, {}", expected, signature(program))}});
  }
  std::string list;
  std::vector<core::Diagnostic> surplus;
  for (const size_t argument : all_but(given.size(), *kept)) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", argument);
    surplus.push_back({pointer_to(argument), "is not an argument of the program: leave it out"});
  }
  throw core::Error(
      "invalid_argument",
      fmt::format("{}{}: leave out number {} (from 0), or lower with jax.jit(f, keep_unused=True)", counts, why, list),
      std::move(surplus));
}

[[noreturn]] void refuse_missing(const compile::ParsedProgram& program, std::span<const GivenArgument> given,
                                 const std::string& counts) {
  const size_t expected = program.arguments.size();
  std::vector<core::Diagnostic> missing;
  bool others_fit = true;
  size_t next = 0;
  for (size_t i = 0; i < expected; ++i) {
    const std::string name = constant_name(program.argument(i));
    if (name.empty()) {
      others_fit = others_fit && next < given.size() && may_be(given[next++], program.argument(i).type.tensor);
    } else if (name == "_platform_index") {
      missing.push_back({pointer_to(i),
                         "is the platform index of an export for several platforms: send the place of \"cpu\" among "
                         "them, 0 for platforms=(\"cpu\", ...), as int32"});
    } else {
      missing.push_back({pointer_to(i), "is the dimension variable '" + name + "' of an export: send its value, " +
                                            text_of(program.argument(i))});
    }
  }
  if (!missing.empty() && others_fit && next == given.size()) {
    const std::string first = missing.front().pointer + " " + missing.front().detail;
    throw core::Error("invalid_argument", counts + "; " + first, std::move(missing));
  }
  const auto present = only_choice(expected, given.size(), [&](size_t parameter, size_t argument) {
    return may_be(given[argument], program.argument(parameter).type.tensor);
  });
  const std::string wanted = fmt::format("expected {} entries, {}", expected, signature(program));
  if (!present || given.empty()) throw core::Error("invalid_argument", counts, {{"/arguments", wanted}});
  std::string list;
  for (const size_t parameter : all_but(expected, *present))
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", parameter, text_of(program.argument(parameter)));
  throw core::Error("invalid_argument", counts + "; missing (from 0): " + list, {{"/arguments", wanted}});
}

}  // namespace

void check_argument_count(const compile::ParsedProgram& program, std::span<const GivenArgument> given) {
  const size_t expected = program.arguments.size();
  if (given.size() == expected) return;
  const std::string counts = fmt::format("the program takes {}, the request has {}", counted(expected), given.size());
  if (given.size() > expected) refuse_surplus(program, given, counts);
  refuse_missing(program, given, counts);
}

}  // namespace meshd::jobs
