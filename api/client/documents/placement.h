// Meshes, specs, types and slices as they are typed on a command line, and as the API has them.
//
//   4x2:x,y            a mesh of 4 x 2 devices (0 to 7) with the axes x and y; mesh_... is a stored one
//   x,y.z, or x,,      a spec: a field for each dimension, the axes of one joined by dots
//   float32[5,2]       a type
#pragma once

#include <string>
#include <string_view>

#include "api/client/text/json.h"
#include "api/client/transfer/connection.h"

namespace meshd::client {

/// The document of a mesh: of "4x2:x,y" with devices 0 to 7, or without (an abstract mesh of any size), of an id
/// {"id": ...}. Throws Failure kUsage.
Json mesh_document(std::string_view text, bool has_devices);
/// The id of a mesh that the server keeps; it is stored where it is none yet. Empty for an empty text.
std::string mesh_id(Connection& connection, std::string_view text);

/// {"spec": [["x"], [], ["y", "z"]]} of "x,,y.z", null of "-" (left to propagation).
Json sharding_document(std::string_view text);
/// The spec of a sharding as it is typed: "x,,y.z"; empty where it shards no dimension.
std::string spec_text(const Json& sharding);

/// {"dtype": "float32", "shape": [5, 2]} of "float32[5,2]"; any other text is JSON (a number, a list). Throws Failure
/// kUsage.
Json type_document(std::string_view text);
/// "float32[5,2]" of a document that has dtype and shape.
std::string type_text(const Json& document);

/// A JSON value typed on the command line; `what` is for the message. Throws Failure kUsage.
Json json_argument(const std::string& text, const std::string& what);

}  // namespace meshd::client
