// Files that hold several arrays, as bodies of POST /v1/arrays.
#pragma once

#include "api/http/http.h"
#include "api/routes/services.h"

namespace meshd::api {

/// True when the Content-Type is that of a file of several arrays (safetensors, .npz), or says nothing and the bytes
/// are those of one. Looks at the first bytes of the body then.
bool is_archive(Request& request);

/// POST /v1/arrays:import: makes an array of each in the file, all or none; the response lists them in the file's
/// order.
Response import_arrays(Request& request, Services& services);

}  // namespace meshd::api
