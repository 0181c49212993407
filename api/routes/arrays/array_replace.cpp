#include "api/routes/arrays/array_replace.h"

#include <fmt/core.h>

#include <vector>

#include "api/codecs/array_document.h"
#include "api/fields/conditions.h"
#include "api/routes/arrays/upload_body.h"
#include "api/routes/routes.h"

namespace meshd::api {
namespace {

void require_type(const tensor::TensorType& given, const tensor::TensorType& expected, bool is_part) {
  if (given == expected) return;
  throw core::Error("invalid_array", fmt::format("{} is {}, the body has {}; dtype and shape of an array do not change",
                                                 is_part ? "the slice" : "the array", tensor::to_string(expected),
                                                 tensor::to_string(given)));
}

// The slice's bytes wait until the last has come: on the disk where the array is large and there, else in memory.
int64_t put_slice(const ArrayBody& body, std::span<const arrays::Slice> slices, Request& request, Services& services,
                  const arrays::ArrayRef& array, const arrays::ArrayStore::VersionCheck& check) {
  const auto update = [&](const arrays::ByteSource& bytes) {
    return services.arrays.update(array, slices, bytes, check);
  };
  if (body.dense != nullptr) return update(arrays::memory_source(body.dense->bytes()));
  const int64_t bytes = tensor::byte_count(body.type);
  if (array->info().durability == storage::Durability::kDurable && body.order == ElementOrder::kC &&
      bytes >= arrays::ArrayStore::kStreamedBytes) {
    arrays::Spool spool = services.arrays.spool(*array, bytes);
    fill_spool(*body.reader, body.type.dtype, spool);
    body.reader->expect_end();
    return update(arrays::paged_source(spool.seal()));
  }
  request.memory.grow(body.order == ElementOrder::kC ? bytes : core::checked_mul(bytes, 2));
  return update(arrays::memory_source(read_dense_body(body, services.pool)->bytes()));
}

}  // namespace

Response put_array_data(Request& request, Services& services, const arrays::ArrayRef& array) {
  request.query.require_known({"slice"});
  const tensor::TensorType& whole = array->info().type;
  const auto slice = request.query.get("slice");
  const std::vector<arrays::Slice> slices = arrays::parse_slices(slice.value_or(""), whole.dims);
  const tensor::TensorType expected{whole.dtype, arrays::slice_dims(slices)};
  const auto check = [&](int64_t version) { require_match(request, array_etag(array->info().id, version)); };
  // Refused before a byte of the body is read, where that can be.
  services.arrays.require_usable(array);
  check(array->version());
  const ArrayBody body = open_array_body(request, services.pool, std::nullopt, std::nullopt, &expected);
  require_type(body.type, expected, slice.has_value());
  int64_t version = 0;
  if (slice) {
    version = put_slice(body, slices, request, services, array, check);
  } else {
    version = services.arrays.replace(array, read_shards(body, *array, services.arrays, request.memory), check);
  }
  return json_of(200, ArrayDocument(*array)).with("ETag", array_etag(array->info().id, version));
}

}  // namespace meshd::api
