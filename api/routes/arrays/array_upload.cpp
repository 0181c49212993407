#include "api/routes/arrays/array_upload.h"

#include "api/routes/arrays/upload_body.h"

namespace meshd::api {

arrays::ArrayRef upload_array(Request& request, Services& services) {
  const UploadQuery wanted = read_upload_query(request);
  const ArrayBody body = open_array_body(request, wanted.dtype, wanted.shape);
  arrays::ArrayRef array = begin_array(wanted, body.type, request, services);
  arrays::ShardBuffers shards = services.arrays.allocate(*array);
  fill_shards(*body.reader, *array, shards, body.order);
  body.reader->expect_end();
  services.arrays.publish(array, std::move(shards));
  return array;
}

}  // namespace meshd::api
