// What the rows of Zarr share, and the handlers of hierarchies: /v1/zarr/v3/... and /v1/zarr/v2/..., which have the
// groups and arrays of all names and are written to. Below v3-pending/ and v2-pending/ what is not committed yet stands
// before the rest, for clients that read what they write.
#pragma once

#include <optional>
#include <string>

#include "api/codecs/files/zarr_keys.h"
#include "api/http/http.h"
#include "api/routes/services.h"

namespace meshd::api {

/// A document or a chunk of an array at a version, or as it is now; nothing where it has no such chunk. Throws as
/// ArrayStore::open, and not_acceptable for dtypes that Zarr lacks.
std::optional<Response> send_zarr_array(const Request& request, Services& services, const arrays::ArrayRef& array,
                                        const ZarrKey& key, std::optional<int64_t> version);
/// `etag` may be empty.
Response send_zarr_document(const Request& request, std::string document, const std::string& etag);

Response get_zarr_node(Request& request, Services& services);
/// A metadata document begins a pending node, a chunk fills a pending array.
Response put_zarr_node(Request& request, Services& services);
/// A document or a chunk of a pending node, or the attributes of a committed group.
Response delete_zarr_node(Request& request, Services& services);
/// What is pending at `path` and below becomes visible, all or none.
Response commit_zarr(Request& request, Services& services, const std::string& path);

}  // namespace meshd::api
