#include "api/routes/arrays/array_upload.h"

#include "api/routes/arrays/upload_body.h"

namespace meshd::api {

arrays::ArrayRef upload_array(Request& request, Services& services, std::optional<storage::IdempotencyRow> key) {
  const UploadQuery wanted = read_upload_query(request);
  const ArrayBody body = open_array_body(request, services.pool, wanted.dtype, wanted.shape);
  arrays::ArrayRef array = begin_array(wanted, body.type, request, services, std::move(key));
  services.arrays.publish(array, read_shards(body, *array, services.arrays));
  return array;
}

}  // namespace meshd::api
