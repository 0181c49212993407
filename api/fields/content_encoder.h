// Content codings gzip, deflate and zstd of responses: chosen from Accept-Encoding, at once for text in memory,
// streamed for array bytes, and not at all where a sample does not shrink. Any thread.
#pragma once

#include "api/http/http.h"
#include "service/core/memory_ledger.h"

namespace meshd::api {

/// Codes the body of a response that may be coded: text of any status, array bytes of a 200. Sets Content-Encoding and
/// Vary, and appends the coding's name to the ETag. Unchanged: small bodies, ranges, bodies whose first 64 KiB shrink
/// by less than a tenth, and event streams. `keep_pieces`: array bytes stay uncoded (their digest is requested in the
/// head). `memory` holds the coder of what is coded while it is sent; where there is none for it, that stays uncoded.
void encode_content(const Request& request, Response& response, bool keep_pieces, core::MemoryReservation& memory);

}  // namespace meshd::api
