#include "api/routes/arrays/upload_body.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "api/codecs/array_document.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/value.h"
#include "api/json/json.h"
#include "service/arrays/regions/row_major.h"

namespace meshd::api {
namespace {

// Runs shorter than this are gathered here before they are dealt out.
constexpr size_t kSmallestDirectRead = 16 * 1024;
constexpr size_t kUploadPiece = size_t{1} << 20;
constexpr size_t kMostAtOnce = size_t{4} << 20;
constexpr int64_t kMostTurnedInMemory = int64_t{16} << 20;  // of Fortran order
constexpr size_t kSizeDigits = 15;                          // what the contract allows for a size in the query

tensor::Dims parse_shape(std::string_view text) {
  tensor::Dims dims;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view field = text.substr(0, comma);
    const auto dim = whole_number(field);
    if (!dim || field.size() > kSizeDigits) {
      throw core::Error("invalid_query",
                        "shape: '" + std::string(field) + "' is no size; write shape=8,2, or shape= for a scalar");
    }
    dims.push_back(*dim);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) throw core::Error("invalid_query", "shape: ends in a comma");
  }
  return dims;
}

tensor::DType dtype_named(std::string_view parameter, std::string_view word) {
  if (const auto dtype = tensor::dtype_from_name(word)) return *dtype;
  throw core::Error("invalid_query",
                    fmt::format("{}: '{}' is no dtype{}", parameter, word, tensor::dtype_advice(word)));
}

}  // namespace

std::optional<tensor::DType> dtype_of_query(const Request& request) {
  const auto word = request.query.get("dtype");
  return word ? std::optional(dtype_named("dtype", *word)) : std::nullopt;
}

std::optional<tensor::Dims> shape_of_query(const Request& request) {
  const auto text = request.query.get("shape");
  return text ? std::optional(parse_shape(*text)) : std::nullopt;
}

std::pair<std::string, std::string_view> named_entry(std::string_view entry, std::string_view parameter,
                                                     std::string_view form) {
  const size_t equals = entry.rfind('=');
  if (equals == std::string_view::npos)
    throw core::Error("invalid_query", fmt::format("{}: '{}' is not {}", parameter, entry, form));
  return {std::string(entry.substr(0, equals)), entry.substr(equals + 1)};
}

DTypesByName dtypes_by_name(const Request& request) {
  DTypesByName out;
  for (const std::string_view entry : request.query.all("dtype_for")) {
    auto [name, word] = named_entry(entry, "dtype_for", "name=float8_e4m3fn");
    const tensor::DType dtype = dtype_named("dtype_for", word);
    if (!out.emplace(name, dtype).second)
      throw core::Error("invalid_query", fmt::format("dtype_for: {} comes twice", quote(name)));
  }
  return out;
}

bool flag_of(const Request& request, std::string_view name) {
  const std::string_view word = request.query.get(name).value_or("false");
  if (word != "true" && word != "false")
    throw core::Error("invalid_query", std::string(name) + ": expected true or false");
  return word == "true";
}

UploadQuery read_upload_query(const Request& request, std::span<const std::string_view> others) {
  std::vector<std::string_view> known(std::begin(kUploadParameters), std::end(kUploadParameters));
  known.insert(known.end(), others.begin(), others.end());
  request.query.require_known(known);
  UploadQuery out;
  out.name = std::string(request.query.get("name").value_or(""));
  out.mesh = std::string(request.query.get("mesh").value_or(""));
  out.session = std::string(request.query.get("session").value_or(""));
  for (const std::string_view name : {"mesh", "session"}) {
    if (request.query.has(name) && request.query.get(name)->empty())
      throw core::Error("invalid_query", std::string(name) + ": expected an id, or leave the parameter away");
  }
  if (const auto spec = request.query.get("spec")) out.spec = parse_spec_query(*spec);
  if (const auto durability = request.query.get("durability")) {
    if (*durability != "durable" && *durability != "memory")
      throw core::Error("invalid_query", "durability: expected durable or memory");
    out.durability = durability_of(*durability);
  }
  out.dtype = dtype_of_query(request);
  out.shape = shape_of_query(request);
  const std::string_view uneven = request.query.get("uneven").value_or("allow");
  if (uneven != "allow" && uneven != "refuse") throw core::Error("invalid_query", "uneven: expected allow or refuse");
  out.refuses_uneven = uneven == "refuse";
  out.is_unique = flag_of(request, "unique");
  if (out.spec && out.mesh.empty()) throw core::Error("invalid_query", "spec: needs mesh=mesh_... beside it");
  return out;
}

arrays::ArrayRef begin_array(const UploadQuery& wanted, const tensor::TensorType& type, const Request& request,
                             Services& services, std::optional<storage::IdempotencyRow> key) {
  arrays::NewArray made;
  made.principal = request.principal;
  made.name = wanted.name;
  made.type = type;
  made.durability = wanted.durability;
  made.is_unique = wanted.is_unique;
  made.leaving = wanted.leaving;
  made.key = std::move(key);
  if (!wanted.session.empty()) made.session = services.sessions.get(wanted.session, request.principal).id;
  if (!wanted.mesh.empty()) {
    const registry::StoredMesh stored = services.meshes.get(wanted.mesh, request.principal);
    if (stored.mesh.device_ids.empty())
      throw core::Error("invalid_array", "an abstract mesh has no devices to put an array on");
    auto mesh = std::make_shared<const mesh::Mesh>(stored.mesh);
    sharding::TensorSharding sharding = sharding_on(mesh, wanted.spec.value_or(jobs::NamedSpec{}), type.rank());
    if (wanted.refuses_uneven) {
      for (int64_t d = 0; d < type.rank(); ++d) {
        const int64_t size = type.dims[static_cast<size_t>(d)];
        const int64_t parts = sharding.part_count(d);
        if (size % parts != 0) {
          throw core::Error("invalid_spec",
                            fmt::format("dimension {} of size {} does not divide by {}", d, size, parts));
        }
      }
    }
    made.mesh_id = stored.id;
    made.sharding = std::move(sharding);
  }
  return services.arrays.begin(made);
}

void read_dense(BodyReader& body, const tensor::TensorType& type, ElementOrder order, std::span<std::byte> out) {
  read_elements({type, order}, out, [&](std::span<std::byte> to) { body.read_exactly(to); });
}

arrays::NewShards read_shards(const ArrayBody& body, const arrays::Array& array, arrays::ArrayStore& store,
                              core::MemoryReservation& memory) {
  const sharding::Layout& layout = array.layout();
  if (body.dense != nullptr && layout.shard_count == 1 && layout.shard_dims == layout.global_dims)
    return arrays::ShardBuffers{body.dense};
  arrays::NewShards shards = store.new_shards(array);
  if (body.dense != nullptr) {
    arrays::ScatterWriter(layout, tensor::size_bytes(array.info().type.dtype), shards).write(body.dense->bytes());
    return shards;
  }
  fill_shards(*body.reader, array, shards, body.order, store, memory);
  body.reader->expect_end();
  return shards;
}

tensor::BufferRef read_dense_body(const ArrayBody& body, tensor::BufferPool& pool) {
  if (body.dense != nullptr) return body.dense;
  // Fresh memory is not touched before there are bytes for it: a head alone costs none.
  tensor::BufferRef out = pool.allocate(tensor::byte_count(body.type));
  read_dense(*body.reader, body.type, body.order, out->bytes());
  body.reader->expect_end();
  return out;
}

void fill_spool(BodyReader& body, tensor::DType dtype, arrays::Spool& spool) {
  std::vector<std::byte> piece(kUploadPiece);
  while (spool.remaining() > 0) {
    const auto most = static_cast<size_t>(std::min<int64_t>(spool.remaining(), static_cast<int64_t>(piece.size())));
    const std::span<std::byte> got = std::span(piece).first(body.read_some(std::span(piece).first(most)));
    if (got.empty())
      throw core::Error("malformed_body",
                        fmt::format("the body ends {} bytes before the array does", spool.remaining()));
    clean_elements(dtype, got);
    spool.write(got);
  }
}

// Runs that are short, and what goes to blobs, are read into a piece of memory first.
void fill_shards(BodyReader& body, const arrays::Array& array, arrays::NewShards& shards, ElementOrder order,
                 arrays::ArrayStore& store, core::MemoryReservation& memory) {
  const tensor::DType dtype = array.info().type.dtype;
  // Larger ones are blobs, or arrays in memory, which the store has a share for: it counts small ones, too, once they
  // are complete.
  const bool is_held = !shards.blobs && array.shard_bytes() < arrays::ArrayStore::kStreamedBytes;
  const bool is_kept = is_held && array.info().durability == storage::Durability::kDurable;
  const int64_t before = memory.bytes();
  arrays::ScatterWriter writer(array.layout(), tensor::size_bytes(dtype), shards);
  std::vector<std::byte> piece;
  if (order == ElementOrder::kFortran && writer.remaining() >= kMostTurnedInMemory) {
    arrays::Spool spool = store.spool(array, writer.remaining());
    fill_spool(body, dtype, spool);
    return arrays::write_row_major(array.info().type, spool.seal(),
                                   [&](std::span<const std::byte> rows) { writer.write(rows); });
  }
  if (order == ElementOrder::kFortran) {
    const auto size = static_cast<size_t>(writer.remaining());
    const auto dense = std::make_unique_for_overwrite<std::byte[]>(size);
    read_elements({array.info().type, order}, {dense.get(), size}, [&](std::span<std::byte> to) {
      while (!to.empty()) {
        const size_t got = body.read_some(to.first(std::min(to.size(), kMostAtOnce)));
        if (got == 0)
          throw core::Error("malformed_body", fmt::format("the body ends {} bytes before the array does", to.size()));
        // The temporary, that which puts it into order, and the shards.
        memory.grow(static_cast<int64_t>(got) * (is_held ? 3 : 2));
        to = to.subspan(got);
      }
    });
    writer.write({dense.get(), size});
    return memory.hold(before + (is_kept ? static_cast<int64_t>(size) : 0));
  }
  while (writer.remaining() > 0) {
    const std::span<std::byte> direct = writer.destination();
    const bool is_direct =
        direct.size() >= kSmallestDirectRead || static_cast<int64_t>(direct.size()) == writer.remaining();
    if (!is_direct) piece.resize(kUploadPiece);
    const std::span<std::byte> to = is_direct ? direct : std::span(piece);
    const size_t most = static_cast<size_t>(std::min<int64_t>(writer.remaining(), static_cast<int64_t>(to.size())));
    const std::span<std::byte> got = to.first(body.read_some(to.first(std::min(most, kMostAtOnce))));
    if (got.empty())
      throw core::Error("malformed_body",
                        fmt::format("the body ends {} bytes before the array does", writer.remaining()));
    if (is_held) memory.grow(static_cast<int64_t>(got.size()));
    clean_elements(dtype, got);
    if (is_direct) {
      writer.advance(got.size());
    } else {
      writer.write(got);
    }
  }
  if (!is_kept) memory.hold(before);
}

}  // namespace meshd::api
