// Answers whose values are a file, for clients that accept one rather than JSON: which file, and the rest of the JSON
// answer beside it, in the field Meshd-Answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "api/routes/arrays/array_file.h"

namespace meshd::api {

/// Vary of an answer that may be a file.
inline constexpr std::string_view kVaryByAccept = "Accept, Accept-Encoding";

/// The file that Accept prefers to JSON: .npz, safetensors or .npy. Null: JSON.
const FormRow* file_beside_json(const Request& request);

/// The JSON text of an answer without its values as the field has it, in ASCII; nothing where it has more than 4 KiB.
std::optional<std::string> answer_field(const std::string& json);
/// Sets the field, where there is one, and Vary.
void note_answer(Response& response, const std::optional<std::string>& answer);

}  // namespace meshd::api
