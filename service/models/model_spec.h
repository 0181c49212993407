// What a version of a model is: a program with named inputs and outputs and values bound to its other arguments.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "service/arrays/array.h"
#include "service/compile/pipeline.h"
#include "service/core/clock.h"
#include "service/models/batch_queue.h"
#include "service/tensor/dense_value.h"

namespace meshd::models {

/// A named input or output. Dimensions are without the batch; kDynamicDim is one of any size.
struct TensorSpec {
  std::string name;
  tensor::DType dtype = tensor::DType::kFloat32;
  tensor::Dims dims;
};

/// Dimensions as clients see them: -1 where the size is free, and before them for the batch where there is one.
tensor::Dims shown_dims(const tensor::Dims& dims, bool has_batch = false);

/// An input of each request, by its number in ModelSpec::inputs.
struct InputSource {
  size_t input = 0;
};
/// Where an argument of the program comes from.
using ArgumentSource = std::variant<InputSource, tensor::DenseValue, arrays::ArrayRef>;

/// How requests wait and run together.
struct Batching {
  std::chrono::microseconds queue_delay{0};
  std::vector<int64_t> preferred_sizes;           ///< ascending
  int64_t most_waiting = 1024;                    ///< requests of one principal in the queue
  std::chrono::microseconds timeout{10'000'000};  ///< a request leaves the queue after so long, if it does not say less
  int64_t priority_levels = 3;                    ///< 1 is served first
  int64_t default_priority = 2;
  int64_t instances = 1;  ///< batches that run at the same time
};

/// A version of a model. Immutable once it is registered.
struct ModelSpec {
  std::string principal;  ///< whose it is
  std::string name;
  int64_t version = 0;
  std::string program_id;
  compile::ParsedRef program;
  std::vector<ArgumentSource> arguments;  ///< by argument of the program, tokens left out
  std::vector<TensorSpec> inputs, outputs;
  std::vector<std::string> output_names;  ///< as the client gave them; empty: output_0, output_1, ...
  int64_t max_batch_size = 0;             ///< 0: the program has no batch dimension
  Batching batching;
  std::map<std::string, std::string> labels;
  bool is_shared = false;  ///< every principal may use it
  bool warms_up = true;    ///< it is loaded once every batch size has run
  std::string document;    ///< the client's, from which a restart reads this again
  core::WallTime created;
};

/// Rows that a batch may be padded to: powers of two, the preferred sizes and the largest. Example: at most 12,
/// preferred 6: 1, 2, 4, 6, 8, 12. The program of a text whose batch dimension is a number has that size alone.
std::vector<int64_t> batch_sizes(const ModelSpec& spec);
/// The batch dimension where the program's text fixes it; 0 where it does not.
int64_t fixed_batch_size(const ModelSpec& spec);

/// An input as its client declares it; what is missing is the program's to say.
struct DeclaredInput {
  std::string name;
  std::optional<tensor::DType> dtype;
  std::optional<tensor::Dims> dims;  ///< with the batch; kDynamicDim: any size
  std::string pointer;               ///< JSON Pointer of the argument in the client's document
};

/// Holds what the client declares to the program, and finds the types of inputs and outputs: outputs by looking at the
/// program for two batch sizes and two sizes of free dimensions. `inputs` are by InputSource::input. Throws
/// invalid_request with JSON Pointers, unsupported_dtype for types that the Open Inference Protocol lacks,
/// unsupported_effect for programs with effects, and what the program throws for these types.
void complete(ModelSpec& spec, const std::vector<DeclaredInput>& inputs, compile::Compiler& compiler);

/// The program for inputs of these types. Throws what Compiler::trace and specialise throw, unsupported_effect for one
/// that has effects for these types.
compile::ParsedRef program_for(const ModelSpec& spec, const std::vector<tensor::TensorType>& inputs,
                               compile::Compiler& compiler);

/// Holds the results of program_for() to what the model declares: a program may look at the sizes of its arguments, and
/// complete() has seen two of them. Throws invalid_request where their number, a type, or the rows of a batch differ.
void check_results(const ModelSpec& spec, const compile::ParsedProgram& program,
                   const std::vector<tensor::TensorType>& inputs);

/// Letters, digits, '_', '-' and '.': what KServe's clients put into a path without escapes.
bool is_model_name(std::string_view name);

}  // namespace meshd::models
