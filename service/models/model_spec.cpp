#include "service/models/model_spec.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "service/compile/explain/declared_effects.h"
#include "service/compile/rewrite/specialised.h"
#include "service/core/error.h"
#include "service/numpy/numpy.h"

namespace meshd::models {
namespace {

using tensor::Dims;
using tensor::kDynamicDim;
using tensor::TensorType;

// Sizes that free dimensions are looked at with; batches are small.
constexpr int64_t kFirstFree = 64, kSecondFree = 96;
constexpr int64_t kFirstBatch = 2, kSecondBatch = 3;
constexpr size_t kLongestName = 128;

bool is_numpy(const ModelSpec& spec) { return spec.program->numpy != nullptr; }

TensorType type_of(const ArgumentSource& source, const std::vector<TensorType>& inputs) {
  if (const auto* input = std::get_if<InputSource>(&source)) return inputs[input->input];
  if (const auto* value = std::get_if<tensor::DenseValue>(&source)) return value->type;
  return std::get<arrays::ArrayRef>(source)->info().type;
}

void check_argument_count(const ModelSpec& spec) {
  const size_t most = is_numpy(spec) ? spec.program->numpy->parameters().size() : spec.program->arguments.size();
  const size_t given = spec.arguments.size();
  if (given == most || (is_numpy(spec) && given < most)) return;  // what is missing may have a default
  throw core::Error("invalid_request", fmt::format("the program takes {} arguments, got {}", most, given),
                    {{"/arguments", fmt::format("expected {} entries, got {}", most, given)}});
}

// The type of an input, with its batch, from what is declared and what a StableHLO text says.
std::optional<TensorType> type_of_input(const DeclaredInput& declared, const TensorType* said,
                                        core::Diagnostics& wrong) {
  if (said == nullptr) {
    if (!declared.dtype)
      wrong.add(declared.pointer + "/dtype", "is missing: a program of NumPy syntax does not say it");
    if (!declared.dims) wrong.add(declared.pointer + "/shape", "is missing: a program of NumPy syntax does not say it");
    if (!declared.dtype || !declared.dims) return std::nullopt;
    return TensorType{*declared.dtype, *declared.dims};
  }
  TensorType out = *said;
  if (declared.dtype && *declared.dtype != said->dtype) {
    wrong.add(declared.pointer + "/dtype",
              fmt::format("is {}, the program takes {}", tensor::name(*declared.dtype), tensor::name(said->dtype)));
    return std::nullopt;
  }
  if (declared.dims) {
    out.dims = *declared.dims;
    if (!compile::fits(out, *said)) {
      wrong.add(declared.pointer + "/shape",
                fmt::format("is {}, the program takes {}", tensor::to_string(shown_dims(out.dims)),
                            tensor::to_string(shown_dims(said->dims))));
      return std::nullopt;
    }
  }
  return out;
}

void check_names(const std::vector<TensorSpec>& tensors, const std::string& pointer, core::Diagnostics& wrong) {
  std::set<std::string_view> seen;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name.empty() || tensor.name.size() > kLongestName)
      wrong.add(pointer, fmt::format("a name has 1 to {} bytes, got {}", kLongestName, tensor.name.size()));
    if (!seen.insert(tensor.name).second) wrong.add(pointer, "'" + tensor.name + "' is the name of two tensors");
  }
}

void check_dtype(const TensorSpec& tensor) {
  if (!tensor::row(tensor.dtype).oip.empty()) return;
  throw core::Error("unsupported_dtype", fmt::format("'{}' is {}, which the Open Inference Protocol has no name for; "
                                                     "convert it in the program",
                                                     tensor.name, tensor::name(tensor.dtype)));
}

void take_inputs(ModelSpec& spec, const std::vector<DeclaredInput>& inputs) {
  core::Diagnostics wrong;
  if (inputs.empty()) wrong.add("/arguments", R"(none of them is an input: {"input": NAME})");
  spec.inputs.assign(inputs.size(), {});
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    const auto* source = std::get_if<InputSource>(&spec.arguments[i]);
    if (source == nullptr) continue;
    const DeclaredInput& declared = inputs[source->input];
    const TensorType* said = is_numpy(spec) ? nullptr : &spec.program->argument(i).type.tensor;
    auto type = type_of_input(declared, said, wrong);
    if (!type) continue;
    if (spec.max_batch_size > 0) {
      if (type->dims.empty()) {
        wrong.add(declared.pointer, "has no dimensions: its first one is the batch, where max_batch_size is not 0");
        continue;
      }
      const int64_t batch = type->dims.front();
      if (is_numpy(spec) && batch != kDynamicDim)
        wrong.add(declared.pointer + "/shape/0", "is the batch, of any size: expected -1");
      if (batch != kDynamicDim && batch < spec.max_batch_size)
        wrong.add("/max_batch_size", fmt::format("the program takes batches of {} alone", batch));
      type->dims.erase(type->dims.begin());
    }
    spec.inputs[source->input] = {declared.name, type->dtype, std::move(type->dims)};
  }
  wrong.throw_if_any("invalid_request");
  check_names(spec.inputs, "/arguments", wrong);
  const int64_t fixed = fixed_batch_size(spec);
  for (size_t i = 0; i < spec.arguments.size() && fixed > 0; ++i) {
    if (!std::holds_alternative<InputSource>(spec.arguments[i])) continue;
    if (spec.program->argument(i).type.tensor.dims.front() != fixed)
      wrong.add(fmt::format("/arguments/{}", i), "has another batch dimension than the first input");
  }
  wrong.throw_if_any("invalid_request");
  for (const TensorSpec& input : spec.inputs) check_dtype(input);
}

std::vector<TensorType> input_types(const ModelSpec& spec, int64_t batch, int64_t free) {
  std::vector<TensorType> out;
  for (const TensorSpec& input : spec.inputs) {
    TensorType type{input.dtype, input.dims};
    std::replace(type.dims.begin(), type.dims.end(), kDynamicDim, free);
    if (spec.max_batch_size > 0) type.dims.insert(type.dims.begin(), batch);
    out.push_back(std::move(type));
  }
  return out;
}

compile::ParsedRef without_effects(compile::ParsedRef program) {
  if (compile::find_callbacks(*program).empty() && program->logs.empty()) return program;
  throw core::Error("unsupported_effect",
                    "the program has effects, which models do not have: leave log and "
                    "callbacks away, or run it as a job");
}

std::vector<TensorType> result_types(const ModelSpec& spec, int64_t batch, int64_t free, compile::Compiler& compiler) {
  const compile::ParsedRef program = program_for(spec, input_types(spec, batch, free), compiler);
  std::vector<TensorType> out;
  for (size_t i = 0; i < program->results.size(); ++i) out.push_back(program->result(i).type.tensor);
  return out;
}

std::string name_of_output(const ModelSpec& spec, size_t number) {
  return spec.output_names.empty() ? fmt::format("output_{}", number) : spec.output_names[number];
}

// The type of an output, from its types for two batch sizes.
TensorSpec output_of(const ModelSpec& spec, size_t number, const TensorType& first, const TensorType& second,
                     std::pair<int64_t, int64_t> batches) {
  TensorSpec out{name_of_output(spec, number), first.dtype, first.dims};
  const bool agree = first.dtype == second.dtype && first.rank() == second.rank();
  const bool has_batch = agree && (spec.max_batch_size == 0 || (first.rank() > 0 && first.dims[0] == batches.first &&
                                                                second.dims[0] == batches.second));
  if (!has_batch) {
    const std::string detail = fmt::format(
        "result {} is tensor<{}> for a batch of {} and tensor<{}> for one of {}: its first dimension is not "
        "the batch; return one row for each row, or set max_batch_size to 0",
        number, tensor::to_string(first), batches.first, tensor::to_string(second), batches.second);
    throw core::Error("invalid_request", detail, {{"/program", detail}});
  }
  for (size_t i = 0; i < out.dims.size(); ++i) {
    if (first.dims[i] != second.dims[i]) out.dims[i] = kDynamicDim;
  }
  if (spec.max_batch_size > 0) out.dims.erase(out.dims.begin());
  return out;
}

void take_outputs(ModelSpec& spec, compile::Compiler& compiler) {
  const int64_t fixed = fixed_batch_size(spec);
  const std::pair batches = fixed > 0 ? std::pair(fixed, fixed) : std::pair(kFirstBatch, kSecondBatch);
  const auto first = result_types(spec, batches.first, kFirstFree, compiler);
  const auto second = result_types(spec, batches.second, kSecondFree, compiler);
  core::Diagnostics wrong;
  if (first.empty()) wrong.add("/program", "has no results");
  if (first.size() != second.size()) wrong.add("/program", "has another number of results for another batch size");
  if (!spec.output_names.empty() && spec.output_names.size() != first.size()) {
    wrong.add("/outputs",
              fmt::format("{} names for {} results of the program", spec.output_names.size(), first.size()));
  }
  wrong.throw_if_any("invalid_request");
  spec.outputs.clear();
  for (size_t i = 0; i < first.size(); ++i) {
    spec.outputs.push_back(output_of(spec, i, first[i], second[i], batches));
    check_dtype(spec.outputs.back());
  }
  check_names(spec.outputs, "/outputs", wrong);
  wrong.throw_if_any("invalid_request");
}

void check_batching(ModelSpec& spec) {
  core::Diagnostics wrong;
  Batching& batching = spec.batching;
  auto& preferred = batching.preferred_sizes;
  std::sort(preferred.begin(), preferred.end());
  preferred.erase(std::unique(preferred.begin(), preferred.end()), preferred.end());
  if (!preferred.empty() && preferred.back() > spec.max_batch_size) {
    wrong.add("/batching/preferred_batch_sizes",
              fmt::format("{} is more than max_batch_size, {}", preferred.back(), spec.max_batch_size));
  }
  if (batching.default_priority > batching.priority_levels)
    wrong.add("/batching/default_priority_level", fmt::format("there are {} levels", batching.priority_levels));
  wrong.throw_if_any("invalid_request");
}

}  // namespace

Dims shown_dims(const Dims& dims, bool has_batch) {
  Dims out = dims;
  std::replace(out.begin(), out.end(), kDynamicDim, int64_t{-1});
  if (has_batch) out.insert(out.begin(), -1);
  return out;
}

bool is_model_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name != "." && name != ".." && name != "stats" &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                  c == '.';
         });
}

int64_t fixed_batch_size(const ModelSpec& spec) {
  if (spec.max_batch_size == 0 || is_numpy(spec)) return 0;
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    if (!std::holds_alternative<InputSource>(spec.arguments[i])) continue;
    const int64_t batch = spec.program->argument(i).type.tensor.dims.front();
    return batch == kDynamicDim ? 0 : batch;
  }
  return 0;
}

std::vector<int64_t> batch_sizes(const ModelSpec& spec) {
  if (spec.max_batch_size == 0) return {};
  if (const int64_t fixed = fixed_batch_size(spec); fixed > 0) return {fixed};
  std::set<int64_t> out(spec.batching.preferred_sizes.begin(), spec.batching.preferred_sizes.end());
  for (int64_t size = 1; size < spec.max_batch_size; size *= 2) out.insert(size);
  out.insert(spec.max_batch_size);
  return {out.begin(), out.end()};
}

compile::ParsedRef program_for(const ModelSpec& spec, const std::vector<TensorType>& inputs,
                               compile::Compiler& compiler) {
  std::vector<TensorType> types;
  for (const ArgumentSource& source : spec.arguments) types.push_back(type_of(source, inputs));
  if (is_numpy(spec)) {
    numpy::Inputs traced;
    for (TensorType& type : types) traced.positional.push_back({numpy::Input::ArrayType{std::move(type)}});
    return without_effects(compiler.trace(spec.program, traced, std::nullopt));
  }
  core::Diagnostics wrong;
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorType& declared = spec.program->argument(i).type.tensor;
    if (compile::fits(types[i], declared)) continue;
    wrong.add(fmt::format("/arguments/{}", i), fmt::format("expected tensor<{}>, got tensor<{}>",
                                                           tensor::to_string(declared), tensor::to_string(types[i])));
  }
  wrong.throw_if_any("invalid_argument");
  return without_effects(compiler.specialise(spec.program, types));
}

void check_results(const ModelSpec& spec, const compile::ParsedProgram& program,
                   const std::vector<TensorType>& inputs) {
  if (program.has_bounded_results()) {
    throw core::Error("unsupported_type",
                      fmt::format("a result of the program has a size that depends on data; the outputs of '{}' have "
                                  "sizes that follow from those of its inputs",
                                  spec.name));
  }
  if (program.results.size() != spec.outputs.size()) {
    throw core::Error("invalid_request", fmt::format("the program has {} results for inputs of this size, '{}' has {} "
                                                     "outputs",
                                                     program.results.size(), spec.name, spec.outputs.size()));
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const TensorType& result = program.result(i).type.tensor;
    TensorType declared{spec.outputs[i].dtype, spec.outputs[i].dims};
    if (spec.max_batch_size > 0) {
      const int64_t batch = inputs.front().dims.front();
      if (result.dims.empty() || result.dims.front() != batch) {
        throw core::Error(
            "invalid_request",
            "the results of the program do not have one row for each row of a batch of this size: " +
                fmt::format("result {} is tensor<{}> for a batch of {}", i, tensor::to_string(result), batch));
      }
      declared.dims.insert(declared.dims.begin(), batch);
    }
    if (compile::fits(result, declared)) continue;
    throw core::Error("invalid_request", fmt::format("result {} of the program is tensor<{}> for inputs of this size, "
                                                     "output '{}' of '{}' is tensor<{}>",
                                                     i, tensor::to_string(result), spec.outputs[i].name, spec.name,
                                                     tensor::to_string(declared)));
  }
}

void complete(ModelSpec& spec, const std::vector<DeclaredInput>& inputs, compile::Compiler& compiler) {
  check_argument_count(spec);
  take_inputs(spec, inputs);
  check_batching(spec);
  take_outputs(spec, compiler);
}

}  // namespace meshd::models
