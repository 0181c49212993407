// Bodies with a document and files: a JSON document, or a form whose part `request` is one and whose other parts are
// files that it names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/codecs/files/form_files.h"
#include "api/routes/routes.h"

namespace meshd::api {

/// A body in memory. A value that moves.
struct DocumentBody {
  static constexpr std::string_view kDocumentPart = "request";

  std::shared_ptr<const std::string> bytes;     ///< all of it, which the files view
  std::shared_ptr<const std::string> document;  ///< the same, or the part `request`
  std::optional<FormFiles> files;               ///< of a form

  /// Equal for a request that is sent again: its form has another boundary then.
  [[nodiscard]] std::string fingerprint(const std::string& path) const;
};

/// Reads all of it. Throws malformed_body for a form that is none, or has no document.
DocumentBody read_document_body(Request& request, Services& services);
/// The same of a body that was read. The request's type says whether it is a form.
DocumentBody document_body(Request& request, Services& services, std::string bytes);

}  // namespace meshd::api
