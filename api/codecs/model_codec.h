// Documents of models: PUT and GET of /v1/models/{name}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/json/schema.h"
#include "service/models/model_store.h"
#include "service/registry/registry.h"

namespace meshd::api {

/// What decoding a model looks things up in.
struct ModelContext {
  arrays::ArrayStore& arrays;
  registry::ProgramRegistry& programs;
  compile::Compiler& compiler;
  tensor::BufferPool& pool;
  core::MemoryReservation* memory = nullptr;  ///< of the request; null: not counted
  /// A restart decodes what was registered before: the program that the row names, which may have been deleted since.
  std::string stored_program = {};
};

/// The model of a body; its program is stored under the principal unless it is named by id. Throws invalid_request with
/// every mistake, not_found for ids, and what programs and models::complete throw.
models::ModelSpec decode_model(const std::string& body, const std::string& principal, const std::string& name,
                               const ModelContext& context);
/// Whether a document shares its model, whatever else is wrong with it. Throws nothing.
bool is_shared_model(const std::string& document);
const SchemaBase& model_input_schema();

/// A version of a model. `versions`: of all of its name, for a single model; empty: left out.
struct ModelDocument {
  models::ModelRef model;
  /// The reader owns it. Others see nothing of what it was made of: ids of the owner's arrays and program.
  bool is_own = true;
  std::vector<int64_t> versions = {};
};
template <>
Schema<ModelDocument> make_schema();

}  // namespace meshd::api
