// gzip and zstd for answers: chosen from Accept-Encoding, whole for text in memory, piece by piece for array bytes, and
// not at all where a sample says that it does not pay. Any thread.
#pragma once

#include <string>

#include "api/http/http.h"

namespace meshd::api {

/// Codes the body of an answer that may be coded: text of any status, array bytes of a 200. Sets Content-Encoding and
/// Vary, and gives the ETag the coding's name. Stays as it is: small bodies, ranges, what the first 64 KiB shrink by
/// less than a tenth, and event streams. `keep_pieces`: array bytes stay as they are (somebody wants their digest in
/// the head).
void encode_content(const Request& request, Response& response, bool keep_pieces);

}  // namespace meshd::api
