#include "api/routes/arrays/array_replace.h"

#include <fmt/core.h>

#include <cstring>
#include <vector>

#include "api/codecs/array_document.h"
#include "api/http/conditions.h"
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

// The part of the body's bytes in memory, then into copies of the shards that it touches.
int64_t put_slice(Services& services, const arrays::ArrayRef& array, const std::vector<arrays::Slice>& slices,
                  const ArrayBody& body, const arrays::ArrayStore::VersionCheck& check) {
  const int64_t element_bytes = tensor::size_bytes(body.type.dtype);
  const tensor::BufferRef part = read_dense_body(body, services.pool);
  const auto edit = [&](arrays::ShardBuffers& shards) {
    std::vector<bool> is_own(shards.size(), false);
    arrays::write_region(array->layout(), element_bytes, slices, part->bytes(), [&](int64_t shard) {
      const auto s = static_cast<size_t>(shard);
      if (!is_own[s]) {
        const tensor::BufferRef copy = services.pool.allocate(shards[s]->size());
        std::memcpy(copy->data(), shards[s]->data(), static_cast<size_t>(copy->size()));
        shards[s] = copy;
        is_own[s] = true;
      }
      return shards[s]->data();
    });
  };
  return services.arrays.update(array, edit, check);
}

}  // namespace

Response put_array_data(Request& request, Services& services, const arrays::ArrayRef& array) {
  static constexpr std::string_view kKnown[] = {"slice"};
  request.query.require_known(kKnown);
  const tensor::TensorType& whole = array->info().type;
  const auto slice = request.query.get("slice");
  const std::vector<arrays::Slice> slices = arrays::parse_slices(slice.value_or(""), whole.dims);
  const tensor::TensorType expected{whole.dtype, arrays::slice_dims(slices)};
  const auto check = [&](int64_t version) { require_match(request, array_etag(array->info().id, version)); };
  // Refused before a byte of the body is read, where that can be.
  services.arrays.require_usable(array);
  check(array->state().with([](const arrays::Array::State& state) { return state.version; }));
  const ArrayBody body = open_array_body(request, services.pool, std::nullopt, std::nullopt, &expected);
  require_type(body.type, expected, slice.has_value());
  int64_t version = 0;
  if (slice) {
    version = put_slice(services, array, slices, body, check);
  } else {
    version = services.arrays.replace(array, read_shards(body, *array, services.arrays), check);
  }
  return json_of(200, ArrayDocument(*array)).with("ETag", array_etag(array->info().id, version));
}

}  // namespace meshd::api
