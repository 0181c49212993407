#include "api/routes/array_upload.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "api/codecs/json.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/npy.h"
#include "api/codecs/value.h"
#include "api/router.h"
#include "service/arrays/region.h"

namespace meshd::api {
namespace {

// Runs shorter than this are gathered here before they are dealt out.
constexpr size_t kSmallestDirectRead = 16 * 1024;
constexpr size_t kPiece = size_t{1} << 20;

// What the query says beside the data.
struct Wanted {
  std::string name, mesh, session;
  std::optional<jobs::NamedSpec> spec;
  storage::Durability durability = storage::Durability::kDurable;
  std::optional<tensor::DType> dtype;
  std::optional<tensor::Dims> shape;
};

tensor::Dims parse_shape(std::string_view text) {
  tensor::Dims dims;
  while (!text.empty()) {
    int64_t dim = -1;
    const size_t comma = text.find(',');
    const std::string_view field = text.substr(0, comma);
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), dim);
    if (error != std::errc{} || end != field.data() + field.size() || dim < 0) {
      throw core::Error("invalid_query",
                        "shape: '" + std::string(field) + "' is no size; write shape=8,2, or shape= for a scalar");
    }
    dims.push_back(dim);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) throw core::Error("invalid_query", "shape: ends in a comma");
  }
  return dims;
}

Wanted read_query(const Request& request) {
  static constexpr std::string_view kKnown[] = {"name",    "mesh",  "spec",  "durability",
                                                "session", "dtype", "shape", "uneven"};
  request.query.require_known(kKnown);
  Wanted out;
  out.name = std::string(request.query.get("name").value_or(""));
  out.mesh = std::string(request.query.get("mesh").value_or(""));
  out.session = std::string(request.query.get("session").value_or(""));
  if (const auto spec = request.query.get("spec")) out.spec = parse_spec_query(*spec);
  if (const auto durability = request.query.get("durability")) {
    if (*durability != "durable" && *durability != "memory")
      throw core::Error("invalid_query", "durability: expected durable or memory");
    if (*durability == "memory") out.durability = storage::Durability::kMemory;
  }
  if (const auto dtype = request.query.get("dtype")) {
    out.dtype = tensor::dtype_from_name(*dtype);
    if (!out.dtype)
      throw core::Error("invalid_query", "dtype: '" + std::string(*dtype) + "' is no dtype that is known here");
  }
  if (const auto shape = request.query.get("shape")) out.shape = parse_shape(*shape);
  if (out.spec && out.mesh.empty()) throw core::Error("invalid_query", "spec: needs mesh=mesh_... beside it");
  return out;
}

arrays::ArrayRef begin(const Wanted& wanted, const tensor::TensorType& type, const Request& request,
                       Services& services) {
  arrays::NewArray made;
  made.principal = request.principal;
  made.name = wanted.name;
  made.type = type;
  made.durability = wanted.durability;
  if (!wanted.session.empty()) made.session = services.sessions.get(wanted.session, request.principal).id;
  if (!wanted.mesh.empty()) {
    const registry::StoredMesh stored = services.meshes.get(wanted.mesh, request.principal);
    if (stored.mesh.device_ids.empty())
      throw core::Error("invalid_array", "an abstract mesh has no devices to put an array on");
    auto mesh = std::make_shared<const mesh::Mesh>(stored.mesh);
    sharding::TensorSharding sharding = sharding_on(mesh, wanted.spec.value_or(jobs::NamedSpec{}), type.rank());
    if (request.query.get("uneven").value_or("allow") == "refuse") {
      for (int64_t d = 0; d < type.rank(); ++d) {
        const int64_t size = type.dims[static_cast<size_t>(d)];
        const int64_t parts = sharding.part_count(d);
        if (size % parts != 0) {
          throw core::Error("invalid_spec", "dimension " + std::to_string(d) + " of size " + std::to_string(size) +
                                                " does not divide by " + std::to_string(parts));
        }
      }
    }
    made.mesh_id = stored.id;
    made.sharding = std::move(sharding);
  }
  return services.arrays.begin(made);
}

// The body straight into the shards; stretches that are short go through a piece of memory.
void fill(BodyReader& body, arrays::ScatterWriter& writer) {
  std::vector<std::byte> piece;
  while (writer.remaining() > 0) {
    const std::span<std::byte> direct = writer.destination();
    if (direct.size() >= kSmallestDirectRead || static_cast<int64_t>(direct.size()) == writer.remaining()) {
      const size_t got = body.read_some(direct.first(std::min(direct.size(), kPiece * 4)));
      if (got == 0)
        throw core::Error("malformed_body",
                          "the body ends " + std::to_string(writer.remaining()) + " bytes before the array does");
      writer.advance(got);
      continue;
    }
    piece.resize(kPiece);
    const size_t most = static_cast<size_t>(std::min<int64_t>(writer.remaining(), static_cast<int64_t>(kPiece)));
    const size_t got = body.read_some(std::span(piece).first(most));
    if (got == 0)
      throw core::Error("malformed_body",
                        "the body ends " + std::to_string(writer.remaining()) + " bytes before the array does");
    writer.write(std::span<const std::byte>(piece).first(got));
  }
  body.expect_end();
}

// Bool bytes are 0 or 1, whatever a client sends.
void clean_bools(const arrays::Array& array, const arrays::ShardBuffers& shards) {
  if (array.info().type.dtype != tensor::DType::kBool) return;
  for (const tensor::BufferRef& shard : shards) {
    for (std::byte& byte : shard->bytes()) byte = byte != std::byte{0} ? std::byte{1} : std::byte{0};
  }
}

arrays::ArrayRef store(const Wanted& wanted, const tensor::TensorType& type, const Request& request, Services& services,
                       BodyReader& body) {
  arrays::ArrayRef array = begin(wanted, type, request, services);
  arrays::ShardBuffers shards = services.arrays.allocate(*array);
  arrays::ScatterWriter writer(array->layout(), tensor::size_bytes(type.dtype), shards);
  fill(body, writer);
  clean_bools(*array, shards);
  services.arrays.publish(array, std::move(shards));
  return array;
}

arrays::ArrayRef store_npy(const Wanted& wanted, const Request& request, Services& services, BodyReader& body) {
  const NpyHead head = read_npy_head([&](std::span<std::byte> to) { body.read_exactly(to); });
  if (wanted.dtype && *wanted.dtype != head.type.dtype)
    throw core::Error("invalid_query", "dtype: the file says " + std::string(tensor::name(head.type.dtype)));
  if (wanted.shape && *wanted.shape != head.type.dims)
    throw core::Error("invalid_query",
                      "shape: the file says " + tensor::to_string(std::span<const int64_t>(head.type.dims)));
  return store(wanted, head.type, request, services, body);
}

arrays::ArrayRef store_raw(const Wanted& wanted, const Request& request, Services& services, BodyReader& body) {
  core::Diagnostics wrong;
  if (!wanted.dtype) wrong.add("/dtype", "raw bytes need ?dtype=float32 or the like");
  if (!wanted.shape) wrong.add("/shape", "raw bytes need ?shape=8,2 (shape= for a scalar)");
  wrong.throw_if_any("invalid_query");
  const tensor::TensorType type{*wanted.dtype, *wanted.shape};
  const int64_t bytes = tensor::byte_count(type);
  const auto length = body.content_length();
  if (length && *length != bytes) {
    throw core::Error("malformed_body", "the body has " + std::to_string(*length) + " bytes, dtype and shape say " +
                                            std::to_string(bytes));
  }
  return store(wanted, type, request, services, body);
}

// The part named `file` of a form, as it stands between its boundaries.
std::string form_file(const std::string& content_type, const std::string& body) {
  const size_t at = content_type.find("boundary=");
  if (at == std::string::npos) throw core::Error("malformed_body", "multipart/form-data without a boundary");
  std::string boundary = content_type.substr(at + 9);
  if (!boundary.empty() && boundary.front() == '"') {
    boundary = boundary.substr(1, boundary.find('"', 1) - 1);
  } else {
    boundary = boundary.substr(0, boundary.find(';'));
  }
  const std::string mark = "--" + boundary;
  size_t part = body.find(mark);
  while (part != std::string::npos) {
    part += mark.size();
    if (body.compare(part, 2, "--") == 0) break;
    const size_t head_end = body.find("\r\n\r\n", part);
    const size_t end = body.find("\r\n" + mark, part);
    if (head_end == std::string::npos || end == std::string::npos || end < head_end) break;
    if (body.substr(part, head_end - part).find("name=\"file\"") != std::string::npos)
      return body.substr(head_end + 4, end - head_end - 4);
    part = end + 2;
  }
  throw core::Error("malformed_body", "the form has no part named file");
}

}  // namespace

arrays::ArrayRef upload_array(Request& request, Services& services) {
  const Wanted wanted = read_query(request);
  std::string type(request.headers.get("Content-Type").value_or(""));
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string_view media = std::string_view(type).substr(0, type.find(';'));
  BodyReader& body = request.body();
  if (media == "application/x-npy" || media == "application/npy") return store_npy(wanted, request, services, body);
  if (media == "application/octet-stream" || (media.empty() && wanted.dtype))
    return store_raw(wanted, request, services, body);
  if (media == "application/json") {
    const Json json = Json::parse(body.read_all(body_limit(BodyPolicy::kInline)), {64, 64'000'000});
    core::Diagnostics wrong;
    auto value = read_value(json, nullptr, "", wrong);
    wrong.throw_if_any("invalid_array");
    std::string bytes(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
    MemoryBody memory(std::move(bytes));
    return store(wanted, value->type, request, services, memory);
  }
  if (media == "multipart/form-data") {
    const std::string original(request.headers.get("Content-Type").value_or(""));
    MemoryBody memory(form_file(original, body.read_all(body_limit(BodyPolicy::kInline))));
    if (wanted.dtype && wanted.shape) return store_raw(wanted, request, services, memory);
    return store_npy(wanted, request, services, memory);
  }
  // curl --data-binary without -H says it is a form: taken where the query or the bytes say what it is.
  if (media == "application/x-www-form-urlencoded" && wanted.dtype && wanted.shape)
    return store_raw(wanted, request, services, body);
  if (media == "application/x-www-form-urlencoded" || media.empty()) return store_npy(wanted, request, services, body);
  throw core::Error(
      "unsupported_media_type",
      "'" + std::string(media) +
          "' is not read here; add -H 'Content-Type: application/x-npy' for a .npy file, "
          "-H 'Content-Type: application/octet-stream' with ?dtype= and ?shape= for raw bytes, or send a JSON value");
}

}  // namespace meshd::api
