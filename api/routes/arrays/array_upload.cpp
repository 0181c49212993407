#include "api/routes/arrays/array_upload.h"

#include "api/routes/arrays/named_arrays.h"
#include "api/routes/arrays/upload_body.h"

namespace meshd::api {

arrays::ArrayRef upload_array(Request& request, Services& services, std::optional<storage::IdempotencyRow> key) {
  UploadQuery wanted = read_upload_query(request);
  if (wanted.is_unique && wanted.name.empty()) throw core::Error("invalid_query", "unique: needs name= beside it");
  const Replacement replacement = replacement_of(request, services, wanted.name);
  wanted.leaving = replacement.ids();
  const ArrayBody body = open_array_body(request, services.pool, wanted.dtype, wanted.shape);
  arrays::ArrayRef array = begin_array(wanted, body.type, request, services, std::move(key));
  std::vector<std::pair<arrays::ArrayRef, arrays::NewShards>> published;
  published.emplace_back(array, read_shards(body, *array, services.arrays, request.memory));
  services.arrays.publish(std::move(published), replacement.arrays, replacement.check);
  return array;
}

}  // namespace meshd::api
