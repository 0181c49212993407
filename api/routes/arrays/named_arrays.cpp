#include "api/routes/arrays/named_arrays.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "api/codecs/array_document.h"
#include "api/fields/conditions.h"
#include "api/routes/arrays/array_parts.h"
#include "api/routes/arrays/array_replace.h"
#include "api/routes/arrays/upload_body.h"
#include "api/routes/routes.h"

namespace meshd::api {
namespace {

struct DeletedArrays {
  int64_t deleted = 0;
};

bool says_place(const Request& request) {
  constexpr std::array<std::string_view, 5> kPlace = {"mesh", "spec", "durability", "session", "uneven"};
  return std::any_of(kPlace.begin(), kPlace.end(), [&](std::string_view field) { return request.query.has(field); });
}

[[noreturn]] void throw_held(const std::string& name, const arrays::Array& held, const std::string& etag,
                             const tensor::TensorType& sent) {
  throw core::Error("name_taken",
                    fmt::format("the name '{}' addresses array {}, {}; the request has {}{}. Send -H 'If-Match: {}' to "
                                "put another array in its place",
                                name, held.info().id, tensor::to_string(held.info().type), tensor::to_string(sent),
                                sent == held.info().type ? " and says where it is to be" : "", etag));
}

}  // namespace

template <>
Schema<DeletedArrays> make_schema() {
  return {"DeletedArrays", {{"deleted", &DeletedArrays::deleted, {.low = 0}}}};
}

const SchemaBase& deleted_schema() { return schema<DeletedArrays>(); }

std::vector<std::string> Replacement::ids() const {
  std::vector<std::string> out;
  for (const arrays::ArrayRef& array : arrays) out.push_back(array->info().id);
  return out;
}

Replacement replacement_of(const Request& request, Services& services, const std::string& name) {
  if (!request.headers.has("If-Match")) return {};
  if (name.empty()) throw core::Error("invalid_query", "name: If-Match names the array that another takes the name of");
  return replacement_of(request, services.arrays.find_live(name, request.principal), name);
}

Replacement replacement_of(const Request& request, const arrays::ArrayRef& held, const std::string& name) {
  if (!request.headers.has("If-Match")) return {};
  if (held == nullptr) throw core::Error("precondition_failed", "no array is named '" + name + "'");
  Replacement out{
      {held}, [&request, id = held->info().id](int64_t version) { require_match(request, array_etag(id, version)); }};
  out.check(held->version());
  return out;
}

Response put_named_data(Request& request, Services& services) {
  const std::string& name = request.capture("name");
  const arrays::ArrayRef held = services.arrays.find_live(name, request.principal);
  if (request.query.has("slice")) {
    if (held == nullptr)
      throw core::Error("invalid_query", "slice: no array is named '" + name + "'; store it whole first");
    return put_array_data(request, services, held);
  }
  UploadQuery wanted = read_upload_query(request);
  if (request.query.has("name")) throw core::Error("invalid_query", "name: the path has it");
  wanted.name = name;
  wanted.is_unique = true;
  const Replacement replacement = replacement_of(request, held, name);
  std::string etag;
  if (held != nullptr) {
    etag = array_etag(held->info().id, held->version());
    require_match(request, etag);  // If-None-Match, too
    services.arrays.require_usable(held);
  }
  const tensor::TensorType* expected = held != nullptr ? &held->info().type : nullptr;
  const ArrayBody body = open_array_body(request, services.pool, wanted.dtype, wanted.shape, expected);
  if (held != nullptr && body.type == held->info().type && !says_place(request)) {
    const auto check = [&](int64_t version) { require_match(request, array_etag(held->info().id, version)); };
    services.arrays.replace(held, read_shards(body, *held, services.arrays, request.memory), check);
    return described(*held, 200);
  }
  if (held != nullptr && replacement.arrays.empty()) throw_held(name, *held, etag, body.type);
  wanted.leaving = replacement.ids();
  const arrays::ArrayRef made = begin_array(wanted, body.type, request, services, std::nullopt);
  std::vector<std::pair<arrays::ArrayRef, arrays::NewShards>> published;
  published.emplace_back(made, read_shards(body, *made, services.arrays, request.memory));
  services.arrays.publish(std::move(published), replacement.arrays, replacement.check);
  return described(*made, 201);
}

Response delete_prefix(Request& request, Services& services) {
  request.query.require_known({"prefix"});
  const std::string prefix(request.query.get("prefix").value_or(""));
  if (prefix.empty()) throw core::Error("invalid_query", "prefix: name what the names begin with, as prefix=model/");
  const auto found = services.arrays.find_prefix(prefix, request.principal, arrays::ArrayStore::OfAName::kAll);
  if (!found.empty()) services.arrays.remove_all(found);
  return json_of(200, DeletedArrays{static_cast<int64_t>(found.size())});
}

}  // namespace meshd::api
