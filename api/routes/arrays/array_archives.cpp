// Several arrays in one file: POST /v1/arrays:import takes one apart, GET /v1/arrays:export makes one.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "api/codecs/array_document.h"
#include "api/codecs/files/file_kinds.h"
#include "api/codecs/files/form.h"
#include "api/codecs/files/npz.h"
#include "api/codecs/files/safetensors.h"
#include "api/codecs/mesh_codec.h"
#include "api/fields/media_type.h"
#include "api/json/json.h"
#include "api/routes/arrays/array_archives.h"
#include "api/routes/arrays/array_file.h"
#include "api/routes/arrays/array_stream.h"
#include "api/routes/arrays/upload_body.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "service/core/ids.h"

namespace meshd::api {
namespace {

constexpr size_t kMostArrays = 4096;

// Query parameters of an import beyond those of one array.
struct ImportQuery {
  UploadQuery common;
  std::string prefix;
  bool replaces = false;                                      ///< what the names address leaves
  std::map<std::string, jobs::NamedSpec, std::less<>> specs;  ///< by the name in the file
  DTypesByName dtypes;                                        ///< by the name in the file
  std::set<std::pair<std::string, std::string>> unused;       ///< parameters and names of both that have not come
};

ImportQuery read_import_query(const Request& request) {
  static constexpr std::string_view kMore[] = {"prefix", "spec_for", "dtype_for", "format", "replace"};
  ImportQuery out;
  out.common = read_upload_query(request, kMore);
  out.prefix = std::string(request.query.get("prefix").value_or(""));
  out.replaces = flag_of(request, "replace");
  core::Diagnostics wrong;
  for (const std::string_view field : {"dtype", "shape"}) {
    if (request.query.has(field)) wrong.add("/" + std::string(field), "the file says it itself");
  }
  wrong.throw_if_any("invalid_query");
  for (const std::string_view entry : request.query.all("spec_for")) {
    if (out.common.mesh.empty()) throw core::Error("invalid_query", "spec_for: needs mesh=mesh_... beside it");
    auto [name, spec] = named_entry(entry, "spec_for", "name=x,,y.z");
    if (!out.specs.emplace(name, parse_spec_query(spec)).second)
      throw core::Error("invalid_query", fmt::format("spec_for: {} comes twice", quote(name)));
    out.unused.emplace("spec_for", std::move(name));
  }
  out.dtypes = dtypes_by_name(request);
  for (const auto& [name, dtype] : out.dtypes) out.unused.emplace("dtype_for", name);
  return out;
}

// Arrays as they come out of a file; published together.
class Import {
 public:
  Import(Request& request, Services& services, std::optional<storage::IdempotencyRow> key)
      : request_(request), services_(services), key_(std::move(key)), query_(read_import_query(request)) {}

  // The shards of the next array, to be filled.
  std::pair<arrays::Array&, arrays::NewShards&> begin(const std::string& name, const tensor::TensorType& type) {
    if (made_.size() == kMostArrays)
      throw core::Error("invalid_array", fmt::format("the file holds more than {} arrays", kMostArrays));
    UploadQuery wanted = query_.common;
    const std::string& given = query_.common.name;
    if (!given.empty() && !made_.empty()) {
      throw core::Error("invalid_query",
                        "name: the file holds several arrays, which have names of their own; prefix= "
                        "is before them");
    }
    wanted.name = query_.prefix + (given.empty() ? name : given);
    if (const auto own = query_.specs.find(name); own != query_.specs.end()) {
      wanted.spec = own->second;
      query_.unused.erase({"spec_for", name});
    }
    if (const auto own = query_.dtypes.find(name); own != query_.dtypes.end()) {
      if (own->second != type.dtype) {
        throw core::Error("invalid_query",
                          fmt::format("dtype_for: the file says that {} is {}", quote(name), tensor::name(type.dtype)));
      }
      query_.unused.erase({"dtype_for", name});
    }
    if (query_.replaces) {
      const arrays::ArrayRef held = services_.arrays.find_live(wanted.name, request_.principal);
      if (held != nullptr) wanted.leaving = {held->info().id};
      if (held != nullptr) replaced_.push_back(held);
    }
    arrays::ArrayRef array;
    try {
      array = begin_array(wanted, type, request_, services_, std::nullopt);
    } catch (const core::Error& error) {
      throw core::Error(error.code(), "array " + quote(name) + ": " + error.detail(), error.diagnostics());
    }
    bytes_ = core::checked_add(bytes_, array->byte_count());
    services_.arrays.require_quota(bytes_, "a file of arrays");
    sync_last();
    arrays::NewShards shards = services_.arrays.new_shards(*array, held_bytes_);
    if (!shards.blobs) held_bytes_ += array->shard_bytes();
    made_.emplace_back(std::move(array), std::move(shards));
    return {*made_.back().first, made_.back().second};
  }

  Response finish() {
    if (!query_.unused.empty())
      throw core::Error("invalid_query", fmt::format("{}: the file has no {}", query_.unused.begin()->first,
                                                     quote(query_.unused.begin()->second)));
    std::vector<arrays::ArrayRef> made;
    for (const auto& [array, shards] : made_) made.push_back(array);
    store_key(made);
    services_.arrays.publish(std::move(made_), replaced_);
    return listed(made);
  }

  /// Holds what is in memory until it is published.
  [[nodiscard]] core::MemoryReservation& memory() const { return request_.memory; }
  /// Of a member whose head leaves it open.
  [[nodiscard]] std::optional<tensor::DType> dtype_of(const std::string& name) const {
    const auto own = query_.dtypes.find(name);
    return own == query_.dtypes.end() ? std::nullopt : std::optional(own->second);
  }

  static Response listed(const std::vector<arrays::ArrayRef>& made) {
    Page<ArrayDocument> page;
    for (const arrays::ArrayRef& array : made) page.items.emplace_back(*array);
    return json_of(201, page);
  }

 private:
  // The first array brings the request's key with it, which names all of them.
  void store_key(const std::vector<arrays::ArrayRef>& made) {
    std::optional<storage::IdempotencyRow> key = key_;
    if (!key) return;
    std::vector<std::string> ids;
    for (const arrays::ArrayRef& array : made) ids.push_back(array->info().id);
    key->made = core::join_ids(ids);
    if (made.empty()) return services_.keys.claim(key);
    made.front()->state().with([&](arrays::Array::State& state) { state.key = std::move(key); });
  }
  // The last array has all its bytes: the files of its blobs are closed, so that an archive of thousands has few open.
  void sync_last() {
    if (!made_.empty() && made_.back().second.blobs) static_cast<void>(made_.back().second.blobs->sync());
  }

  Request& request_;
  Services& services_;
  const std::optional<storage::IdempotencyRow> key_;
  ImportQuery query_;
  int64_t bytes_ = 0;
  int64_t held_bytes_ = 0;  ///< of arrays whose shards are in memory
  std::vector<std::pair<arrays::ArrayRef, arrays::NewShards>> made_;
  std::vector<arrays::ArrayRef> replaced_;
};

Response import_safetensors(BodyReader& body, Import import, Services& services) {
  const SafetensorsHead head = read_safetensors_head([&](std::span<std::byte> to) { body.read_exactly(to); });
  services.arrays.require_quota(head.data_bytes, "a file of arrays");
  const auto length = body.content_length();
  if (length && *length != head.head_bytes + head.data_bytes) {
    throw core::Error("malformed_body", fmt::format("safetensors: the head says {} bytes of data, the body has {}",
                                                    head.data_bytes, *length - head.head_bytes));
  }
  for (const NamedTensor& tensor : head.tensors) {
    const auto [array, shards] = import.begin(tensor.name, tensor.type);
    fill_shards(body, array, shards, ElementOrder::kC, services.arrays, import.memory());
  }
  body.expect_end();
  return import.finish();
}

// A member of a .npz as the body of one array.
class MemberBody final : public BodyReader {
 public:
  MemberBody(const ReadMember& read, int64_t bytes) : read_(read), left_(bytes), size_(bytes) {}
  [[nodiscard]] std::optional<int64_t> content_length() const override { return size_; }
  size_t read_some(std::span<std::byte> destination) override {
    const size_t count = static_cast<size_t>(std::min<int64_t>(left_, static_cast<int64_t>(destination.size())));
    read_(destination.first(count));
    left_ -= static_cast<int64_t>(count);
    return count;
  }
  void set_limit(int64_t) override {}
  [[nodiscard]] int64_t bytes_read() const override { return size_ - left_; }

 private:
  const ReadMember& read_;
  int64_t left_, size_;
};

Response import_npz(BodyReader& body, Import import, Services& services) {
  const auto take = [&](const std::string& name, const NpyHead& head, const ReadMember& read) {
    const auto [array, shards] = import.begin(name, head.type);
    MemberBody data(read, array.byte_count());
    fill_shards(data, array, shards, head.order, services.arrays, import.memory());
  };
  walk_npz([&](std::span<std::byte> to) { return body.read_some(to); }, take,
           [&](const std::string& name) { return import.dtype_of(name); });
  return import.finish();
}

bool holds_arrays(FileKind kind) { return kind == FileKind::kZip || kind == FileKind::kSafetensors; }

// The file of a form, as a body of its own.
void take_file_of_form(Request& request) {
  const std::string type(request.headers.get("Content-Type").value_or(""));
  const std::string form = body_text(request, BodyPolicy::kInline);
  request.memory.grow(static_cast<int64_t>(form.size()));
  const FormPart file = file_of_form(type, form);
  request.headers.set("Content-Type", file.media_type.empty() ? "application/octet-stream" : file.media_type);
  request.body_reader = std::make_shared<MemoryBody>(std::string(file.data));
}

FileKind archive_kind(Request& request) {
  if (file_kind_of_media(media_type_of(request.headers)) == FileKind::kForm) take_file_of_form(request);
  const std::string media = media_type_of(request.headers);
  const std::string_view form = request.query.get("format").value_or("");
  if (!form.empty() && form != "safetensors" && form != "npz")
    throw core::Error("invalid_query", "format: expected safetensors or npz");
  if (form.empty() && !is_open_media(media) && file_kind_of_media(media) == FileKind::kUnknown) {
    throw core::Error("unsupported_media_type",
                      "'" + media +
                          "' does not say what the file is; add ?format=safetensors or ?format=npz, or send it as "
                          "application/octet-stream: it is then recognised by its first bytes");
  }
  FileKind kind = resolve_file_kind(media, "", first_bytes(request));
  const FileKind wanted = form == "npz" ? FileKind::kZip : form.empty() ? FileKind::kUnknown : FileKind::kSafetensors;
  if (kind == FileKind::kUnknown && wanted != FileKind::kUnknown) kind = wanted;
  if (wanted != FileKind::kUnknown && kind != wanted) {
    throw core::Error("malformed_body", fmt::format("format says {}, and the body is {}", file_kind_row(wanted).name,
                                                    file_kind_row(kind).name));
  }
  if (!holds_arrays(kind)) {
    throw core::Error("unsupported_media_type",
                      fmt::format("the body is {}{}; send a safetensors or a .npz file", file_kind_row(kind).name,
                                  media.empty() ? "" : " ('" + media + "')"));
  }
  return kind;
}

}  // namespace

bool is_archive(Request& request) {
  const std::string media = media_type_of(request.headers);
  if (holds_arrays(file_kind_of_media(media))) return true;
  if (!is_open_media(media) || (request.query.has("dtype") && request.query.has("shape"))) return false;
  return holds_arrays(file_kind_of(first_bytes(request)));
}

Response import_arrays(Request& request, Services& services) {
  const std::string facts = content_facts(request);
  const FileKind kind = archive_kind(request);
  const RepeatedRequest repeated(request, services, facts);
  if (repeated.made()) {
    return repeated.again([&] {
      std::vector<arrays::ArrayRef> made;
      for (const std::string& id : core::split_ids(*repeated.made()))
        made.push_back(services.arrays.find(id, request.principal));
      return Import::listed(made);
    });
  }
  Import import(request, services, repeated.key());
  return kind == FileKind::kZip ? import_npz(request.body(), std::move(import), services)
                                : import_safetensors(request.body(), std::move(import), services);
}

namespace {

using NamedArrays = std::vector<std::pair<std::string, arrays::ArrayRef>>;

// What the names that begin with the prefix address, called what is behind it.
NamedArrays exported_prefix(const Request& request, Services& services, const std::string& prefix) {
  if (prefix.empty()) throw core::Error("invalid_query", "prefix: name what the names begin with, as prefix=model/");
  for (const std::string_view field : {"id", "as"}) {
    if (request.query.has(field)) throw core::Error("invalid_query", std::string(field) + ": is given beside prefix");
  }
  NamedArrays out;
  for (const arrays::ArrayRef& array :
       services.arrays.find_prefix(prefix, request.principal, arrays::ArrayStore::OfAName::kAddressed)) {
    std::string name = array->info().name.substr(prefix.size());
    out.emplace_back(name.empty() ? array->info().name : std::move(name), array);
  }
  if (out.empty())
    throw core::Error("not_found", "no array that has data has a name that begins with " + quote(prefix));
  return out;
}

// The arrays of an export, with their names in the file.
NamedArrays exported(const Request& request, Services& services) {
  if (const auto prefix = request.query.get("prefix")) return exported_prefix(request, services, std::string(*prefix));
  const std::vector<std::string_view> ids = request.query.all("id"), names = request.query.all("as");
  if (ids.empty()) {
    throw core::Error("invalid_query",
                      "id: name at least one array, as id=arr_...&id=arr_..., or all of a prefix, as prefix=model/");
  }
  if (!names.empty() && names.size() != ids.size()) {
    throw core::Error("invalid_query",
                      fmt::format("as: {} names for {} arrays; name all or none", names.size(), ids.size()));
  }
  NamedArrays out;
  for (size_t i = 0; i < ids.size(); ++i) {
    arrays::ArrayRef array = services.arrays.find(ids[i], request.principal);
    const arrays::ArrayInfo& info = array->info();
    const std::string& own = info.name.empty() ? info.id : info.name;
    out.emplace_back(names.empty() ? own : std::string(names[i]), std::move(array));
  }
  return out;
}

// The entries of a file, and versions and names of what they are, behind `identity`.
std::vector<FileEntry> opened(const NamedArrays& arrays, Services& services, std::string& identity) {
  const PageMemory pages = page_memory(services);
  std::vector<FileEntry> entries;
  std::set<std::string, std::less<>> taken;
  for (const auto& [name, array] : arrays) {
    if (!taken.insert(name).second) {
      throw core::Error("invalid_query",
                        "id: two arrays are named " + quote(name) + "; give each a name of its own by as=");
    }
    arrays::ArrayStore::Opened now = services.arrays.open(array, arrays::ArrayStore::ReadBy::kClient);
    const arrays::ArrayInfo& info = array->info();
    identity += "\n" + array_etag(info.id, now.version) + " " + name;
    auto region = counted_reader(pages, {array, &array->layout()}, info.type.dtype, std::move(now.shards),
                                 arrays::full_slices(info.type.dims));
    entries.push_back({name, info.type, std::move(region)});
  }
  return entries;
}

Response export_archive(Request& request, Services& services) {
  request.query.require_known({"id", "as", "prefix", "format", "compression"});
  const std::string_view word = request.query.get("format").value_or("safetensors");
  if (word != "safetensors" && word != "npz") throw core::Error("invalid_query", "format: expected safetensors or npz");
  const DataForm form = word == "npz" ? DataForm::kNpz : DataForm::kSafetensors;
  const ZipMethod method = zip_method_of(request, form);
  std::vector<FileEntry> entries;
  std::string identity;
  // With a prefix: arrays that are replaced between being found and being opened are found again, all of them.
  for (bool is_open = false; !is_open;) {
    const NamedArrays found = exported(request, services);
    identity = std::string(word) + (method == ZipMethod::kDeflated ? " deflate" : "");
    try {
      entries = opened(found, services, identity);
      is_open = true;
    } catch (const core::Error& error) {
      const bool is_gone = std::any_of(found.begin(), found.end(), [](const auto& each) {
        return each.second->state().with([](const arrays::Array::State& state) { return state.deleted; });
      });
      if (error.code() != core::ErrorCode("not_found") || !is_gone || !request.query.has("prefix")) throw;
    }
  }
  const std::string etag = R"(")" + core::sha256_hex(identity).substr(0, 32) + R"(")";
  Response response = send_file(request, std::move(entries), form, method, etag);
  if (response.status < 300) {
    response.headers.set("Content-Disposition", R"(attachment; filename="arrays.)" + std::string(word) + R"(")");
  }
  return response;
}

}  // namespace

std::vector<Route> array_archive_routes(Services& services) {
  return {
      {"POST", "/v1/arrays:import", "importArrays", BodyPolicy::kBulk, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return import_arrays(request, services); }},
      {"GET", "/v1/arrays:export", "exportArrays", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return export_archive(request, services); }},
  };
}

}  // namespace meshd::api
