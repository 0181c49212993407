// Bodies that bring values to a session: a JSON document, a form with a document and files, or one file alone.
//
// Example: each of these appends an entry of two values to the queue q, float32[2] and float32[3]:
//   curl .../infeed --json '{"queue": "q", "values": [{"dtype": "float32", "shape": [2], "data": [1, 2]}, ...]}'
//   curl .../infeed -F 'request={"queue": "q", "values": [{"part": "x"}, {"part": "y"}]};type=application/json'
//     -F x=@x.npy -F y=@y.npy
//   curl '.../infeed?queue=q' --data-binary @xy.npz
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/codecs/files/file_kinds.h"
#include "api/routes/arrays/upload_body.h"
#include "api/routes/document_body.h"
#include "service/tensor/dense_value.h"

namespace meshd::api {

/// What the values of a file are, as far as it does not say so itself.
struct FileHints {
  std::optional<tensor::DType> dtype;  ///< of raw bytes and .npy
  std::optional<tensor::Dims> shape;   ///< of raw bytes
  DTypesByName dtypes;                 ///< of members of a .npz
  /// Types by place, of whoever waits for the values: taken where the file leaves them open, and not compared. Nothing:
  /// nobody knows.
  std::optional<std::span<const tensor::TensorType>> expected;
};

/// The parameters dtype, shape and dtype_for. Throws invalid_query.
FileHints file_hints(const Request& request);
inline constexpr std::string_view kFileParameters[] = {"dtype", "shape", "dtype_for"};

/// A body in memory. A value that moves.
struct ValuesBody {
  std::optional<DocumentBody> document;     ///< of JSON or a form
  FileKind kind = FileKind::kUnknown;       ///< of a file; kUnknown: raw bytes
  std::shared_ptr<const std::string> file;  ///< null where there is a document

  /// Equal for a request that is sent again.
  [[nodiscard]] std::string fingerprint(const std::string& path) const;
  /// The document as JSON, with the limits of inline arrays.
  [[nodiscard]] Json json(Request& request) const;
  /// Of a form; null: it is none.
  [[nodiscard]] FormFiles* files() { return document && document->files ? &*document->files : nullptr; }
};

/// Reads all of it: by its type, and where that leaves it open by the first bytes, a body without a type being JSON
/// unless it is a file. What is open is raw bytes, whatever it begins with, where the query says dtype and shape, and
/// application/octet-stream also where it has as many bytes as the one value that is expected. Throws
/// unsupported_media_type before it reads, unsupported_format, and as read_document_body.
ValuesBody read_values_body(Request& request, Services& services, const FileHints& hints);

/// The values of a file, by name where it has names (FileArrays). Throws malformed_body, unsupported_dtype and
/// invalid_query, where the hints and the file differ or raw bytes have no type.
std::vector<tensor::DenseValue> values_of_file(const ValuesBody& body, const FileHints& hints, Request& request,
                                               Services& services);

}  // namespace meshd::api
