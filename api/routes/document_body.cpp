#include "api/routes/document_body.h"

#include <fmt/core.h>

#include <utility>

#include "api/fields/media_type.h"
#include "service/core/ids.h"

namespace meshd::api {

std::string DocumentBody::fingerprint(const std::string& path) const {
  if (!files) return core::sha256_hex(path + "\n" + *bytes);
  std::string out = path;
  for (const FormPart& part : files->parts())
    out += fmt::format("\n{} {} {} {}", part.name, part.filename, part.media_type, core::sha256_hex(part.data));
  return core::sha256_hex(out);
}

DocumentBody read_document_body(Request& request, Services& services) {
  return document_body(request, services, body_text(request, BodyPolicy::kForm));
}

DocumentBody document_body(Request& request, Services& services, std::string bytes) {
  DocumentBody out;
  out.bytes = std::make_shared<const std::string>(std::move(bytes));
  out.document = out.bytes;
  if (media_type_of(request.headers) != kFormMedia) return out;
  out.files.emplace(read_form(request.headers.joined("Content-Type"), *out.bytes), services.pool, &request.memory);
  for (const FormPart& part : out.files->parts()) {
    if (part.name != DocumentBody::kDocumentPart) continue;
    // A page of another site can send a form, but not with this type for a part that is no file.
    if (part.media_type != "application/json") {
      throw core::Error("unsupported_media_type",
                        "the form's part 'request' has to say that it is application/json: curl -F 'request={...};"
                        "type=application/json' -F x=@x.npy; or send JSON alone, -H 'Content-Type: application/json'");
    }
    out.document = std::make_shared<const std::string>(part.data);
  }
  if (out.document == out.bytes)
    throw core::Error("malformed_body", "the form has no part named request, with the JSON document");
  return out;
}

}  // namespace meshd::api
