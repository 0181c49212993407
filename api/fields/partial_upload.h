// The fields of the IETF's resumable uploads (draft-ietf-httpbis-resumable-upload, interop version 8): structured
// fields (RFC 9651) of one item. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/http/http.h"

namespace meshd::api {

/// Of the draft that is spoken here; 104 responses go to clients that name it alone.
inline constexpr std::string_view kUploadInterop = "8";
inline constexpr std::string_view kPartialUpload = "application/partial-upload";

/// Upload-Complete; nothing for other values than ?0 and ?1, which count as missing.
std::optional<bool> upload_complete_of(const Headers& headers);
/// Upload-Offset or Upload-Length; nothing for what is no integer of at most 15 digits.
std::optional<int64_t> upload_integer(const Headers& headers, std::string_view name);
/// The client takes 104 responses of this version.
bool takes_upload_interim(const Request& request);
/// The body may be a part of what is uploaded: it begins or continues an upload of several requests. An upload that is
/// complete in its first request, by a client that cannot be told where to resume it, is a plain one.
bool is_part_of_upload(const Request& request);

}  // namespace meshd::api
