#include "api/routes/arrays/array_download.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/codecs/array_document.h"
#include "api/codecs/files/npy.h"
#include "api/codecs/value.h"
#include "api/fields/conditions.h"
#include "api/json/json.h"
#include "api/routes/arrays/array_file.h"
#include "api/routes/arrays/array_stream.h"
#include "api/routes/routes.h"
#include "service/arrays/regions/region.h"

namespace meshd::api {
namespace {

const FormRow& form_of(const Request& request) {
  constexpr DataForm kOffered[] = {DataForm::kRaw, DataForm::kNpy, DataForm::kNpz, DataForm::kSafetensors,
                                   DataForm::kJson};
  if (const auto format = request.query.get("format")) {
    for (const FormRow& row : data_forms()) {
      if (row.name == *format) return row;
    }
    throw core::Error("invalid_query", "format: expected one of " + list_forms(&FormRow::name));
  }
  if (const FormRow* best = preferred_form(request, kOffered)) return *best;
  throw core::Error("not_acceptable", "data is there as " + list_forms(&FormRow::media));
}

// A region of an array, and its name in the response.
struct Source {
  std::shared_ptr<const sharding::Layout> layout;
  tensor::TensorType type;  ///< of the array
  arrays::ReadableShards shards;
  std::string name;  ///< in files that name what they hold
  std::string file;  ///< without suffix
  std::string etag;  ///< may be empty
};

Response send(Request& request, Services& services, const Source& source) {
  request.query.require_known({"format", "slice", "as_process", "compression"});
  const FormRow& form = form_of(request);
  const ZipMethod method = zip_method_of(request, form.form);
  const std::vector<arrays::Slice> slices =
      arrays::parse_slices(request.query.get("slice").value_or(""), source.type.dims);
  const tensor::TensorType type{source.type.dtype, arrays::slice_dims(slices)};
  auto reader = counted_reader(page_memory(services), source.layout, type.dtype, source.shards, slices);
  Response response;
  if (form.form == DataForm::kJson || form.form == DataForm::kBase64) {
    // It is made as one text, from the bytes at once.
    const int64_t bytes = reader->total_bytes();
    request.memory.grow(form.form == DataForm::kJson ? core::checked_add(bytes, nested_text_bytes(type))
                                                     : core::checked_mul(bytes, kMemoryPerStoredByte));
    const ValueEncoding encoding = form.form == DataForm::kBase64 ? ValueEncoding::kBase64 : ValueEncoding::kJson;
    response = json_of(200, ValueDocument{type, *dense_bytes(*reader), encoding});
    if (!source.etag.empty()) response.headers.set("ETag", source.etag);
  } else if (form.form == DataForm::kNpz || form.form == DataForm::kSafetensors) {
    response = send_file(request, {{source.name, type, std::move(reader)}}, form.form, method, source.etag);
  } else {
    ArrayStream stream;
    if (form.form == DataForm::kNpy) stream.add(write_npy_head(type));
    stream.add(std::move(reader));
    response = std::move(stream).respond(request, form.media, source.etag);
  }
  if (response.status >= 300) return response;
  if (form.media != "application/json") {
    response.headers.set("Content-Disposition",
                         R"(attachment; filename=")" + source.file + std::string(form.suffix) + R"(")");
  }
  response.headers.set("Array-Dtype", tensor::name(type.dtype));
  std::string shape;
  for (const int64_t dim : type.dims) shape += fmt::format("{}{}", shape.empty() ? "" : ",", dim);
  response.headers.set("Array-Shape", shape);
  response.headers.set("Array-Order", "C");
  response.headers.set("Vary", "Accept, Accept-Encoding");
  return response;
}

std::string name_of(const arrays::Array& array) {
  return array.info().name.empty() ? array.info().id : array.info().name;
}

}  // namespace

Response download_array(Request& request, Services& services, const arrays::ArrayRef& array) {
  arrays::ArrayStore::Opened now = services.arrays.open(array, arrays::ArrayStore::ReadBy::kClient);
  const std::string etag = array_etag(array->info().id, now.version);
  // Checked before a byte is gathered; the server checks the other conditions.
  if (const std::string known = request.headers.joined("If-None-Match");
      !request.headers.has("If-Match") && !known.empty() && names_etag(known, etag, true)) {
    Response unchanged = no_content();
    unchanged.status = 304;
    unchanged.headers.set("ETag", etag);
    unchanged.headers.set("Vary", "Accept, Accept-Encoding");
    return unchanged;
  }
  const std::string& id = array->info().id;
  return send(request, services,
              {{array, &array->layout()}, array->info().type, std::move(now.shards), name_of(*array), id, etag});
}

Response download_shard(Request& request, Services& services, const arrays::ArrayRef& array, int64_t device) {
  const auto& device_shards = array->layout().device_shards;
  const auto found = std::find_if(device_shards.begin(), device_shards.end(),
                                  [&](const sharding::DeviceShard& p) { return p.device == device; });
  if (found == device_shards.end())
    throw core::Error("not_found", fmt::format("array '{}' has no shard on device {}", array->info().id, device));
  // The shard's real rows within its padded buffer are a slice of an array that is one shard.
  auto layout = arrays::unsharded_layout(array->layout().shard_dims);
  const tensor::Dims actual = array->layout().shard_actual_dims(found->shard);
  if (request.query.has("slice")) throw core::Error("invalid_query", "slice: shards are given whole");
  const std::string suffix = fmt::format(".shard{}", found->shard);
  return send(request, services,
              {layout,
               {array->info().type.dtype, actual},
               services.arrays.open(array, arrays::ArrayStore::ReadBy::kClient).shards.only(found->shard),
               name_of(*array) + suffix,
               array->info().id + suffix,
               ""});
}

}  // namespace meshd::api
