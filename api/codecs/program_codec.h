// Documents of programs, for POST and GET.
#pragma once

#include <optional>
#include <string>

#include "api/json/schema.h"
#include "service/registry/registry.h"

namespace meshd::api {

/// Format of a program's text: those that the compiler accepts.
struct ProgramFormat {
  std::string word;
};
template <>
struct JsonCodec<ProgramFormat> {
  static JsonType type() { return {.kind = JsonType::Kind::kString, .words = {"stablehlo", "numpy"}}; }
  static bool read(const Json& json, const Place& place, ProgramFormat& out) {
    return JsonCodec<std::string>::read(json, {json_type<std::string>(), place.pointer, place.wrong}, out.word);
  }
};

/// A program as a client sends it.
struct ProgramUpload {
  std::string format = "stablehlo";
  std::string text;
  registry::ProgramNames names;
  /// JSON Pointer of the text, or of the artifact that it was printed from; empty where the body is it.
  std::string pointer = {};
};

/// Decodes {text or base64, format, name, doc, in_tree, out_tree}; `name` is used where the document has none, and an
/// artifact's trees where it has none. Throws invalid_request with every mistake, and what artifacts throw.
ProgramUpload decode_program(const Json& document, std::string name, core::MemoryReservation* memory);
/// The same of an artifact alone.
ProgramUpload decode_artifact(std::string_view bytes, std::string name, core::MemoryReservation* memory);
const SchemaBase& program_input_schema();

/// A stored program. `with_text`: for a single program.
struct ProgramDocument {
  const registry::StoredProgram& stored;
  bool with_text = false;

  // Something of the program itself, which lists leave out.
  template <typename Make>
  [[nodiscard]] auto of_parsed(const Make& make) const {
    return stored.parsed == nullptr ? std::nullopt : std::optional(make(*stored.parsed));
  }
};
template <>
Schema<ProgramDocument> make_schema();

}  // namespace meshd::api
