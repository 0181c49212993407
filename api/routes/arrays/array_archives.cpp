// Several arrays in one file: POST /v1/arrays:import takes one apart, GET /v1/arrays:export makes one.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "api/codecs/array_document.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/npy.h"
#include "api/codecs/safetensors.h"
#include "api/http/media_type.h"
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
constexpr std::string_view kSuffix = ".npy";

// Query parameters of an import beyond those of one array.
struct ImportQuery {
  UploadQuery common;
  std::string prefix;
  std::map<std::string, jobs::NamedSpec, std::less<>> specs;  ///< by the name in the file
  std::vector<std::string_view> unused;                       ///< of those, the names that have not come
};

ImportQuery read_import_query(const Request& request) {
  static constexpr std::string_view kMore[] = {"prefix", "spec_for", "format"};
  ImportQuery out;
  out.common = read_upload_query(request, kMore);
  out.prefix = std::string(request.query.get("prefix").value_or(""));
  core::Diagnostics wrong;
  for (const std::string_view field : {"dtype", "shape"}) {
    if (request.query.has(field)) wrong.add("/" + std::string(field), "the file says it itself");
  }
  wrong.throw_if_any("invalid_query");
  for (const std::string_view entry : request.query.all("spec_for")) {
    const size_t equals = entry.rfind('=');
    if (equals == std::string_view::npos)
      throw core::Error("invalid_query", "spec_for: '" + std::string(entry) + "' is not name=x,,y.z");
    if (out.common.mesh.empty()) throw core::Error("invalid_query", "spec_for: needs mesh=mesh_... beside it");
    const auto [at, is_new] =
        out.specs.emplace(std::string(entry.substr(0, equals)), parse_spec_query(entry.substr(equals + 1)));
    if (!is_new) throw core::Error("invalid_query", "spec_for: " + quote(at->first) + " comes twice");
    out.unused.emplace_back(at->first);
  }
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
                        "stands before them");
    }
    wanted.name = query_.prefix + (given.empty() ? name : given);
    if (const auto own = query_.specs.find(name); own != query_.specs.end()) {
      wanted.spec = own->second;
      std::erase(query_.unused, name);
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
      throw core::Error("invalid_query", "spec_for: the file has no " + quote(query_.unused.front()));
    std::vector<arrays::ArrayRef> made;
    for (const auto& [array, shards] : made_) made.push_back(array);
    store_key(made);
    services_.arrays.publish(std::move(made_));
    return listed(made);
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
};

Response import_safetensors(Request& request, Services& services, const std::optional<storage::IdempotencyRow>& key) {
  Import import(request, services, key);
  BodyReader& body = request.body();
  const SafetensorsHead head = read_safetensors_head([&](std::span<std::byte> to) { body.read_exactly(to); });
  services.arrays.require_quota(head.data_bytes, "a file of arrays");
  const auto length = body.content_length();
  if (length && *length != head.head_bytes + head.data_bytes) {
    throw core::Error("malformed_body", fmt::format("safetensors: the head says {} bytes of data, the body has {}",
                                                    head.data_bytes, *length - head.head_bytes));
  }
  for (const NamedTensor& tensor : head.tensors) {
    const auto [array, shards] = import.begin(tensor.name, tensor.type);
    fill_shards(body, array, shards, ElementOrder::kC);
  }
  body.expect_end();
  return import.finish();
}

// A member of a .npz as the body of one array.
class MemberBody final : public BodyReader {
 public:
  MemberBody(ZipReader& zip, int64_t bytes) : zip_(zip), left_(bytes), size_(bytes) {}
  [[nodiscard]] std::optional<int64_t> content_length() const override { return size_; }
  size_t read_some(std::span<std::byte> destination) override {
    const size_t count = static_cast<size_t>(std::min<int64_t>(left_, static_cast<int64_t>(destination.size())));
    zip_.read_exactly(destination.first(count));
    left_ -= static_cast<int64_t>(count);
    return count;
  }
  void set_limit(int64_t) override {}
  [[nodiscard]] int64_t bytes_read() const override { return size_ - left_; }

 private:
  ZipReader& zip_;
  int64_t left_, size_;
};

Response import_npz(Request& request, Services& services, const std::optional<storage::IdempotencyRow>& key) {
  Import import(request, services, key);
  BodyReader& body = request.body();
  ZipReader zip([&](std::span<std::byte> to) { return body.read_some(to); });
  ZipReader::Member member;
  std::vector<std::string> names;
  while (zip.next(member)) {
    if (!member.name.ends_with(kSuffix))
      throw core::Error("malformed_body", "npz: member " + quote(member.name) + " is no .npy file");
    const std::string name = member.name.substr(0, member.name.size() - kSuffix.size());
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw core::Error("malformed_body", "npz: two members are named " + quote(member.name));
    names.push_back(name);
    NpyHead head;
    try {
      head = read_npy_head([&](std::span<std::byte> to) { zip.read_exactly(to); });
    } catch (const core::Error& error) {
      throw core::Error(error.code(), "member " + quote(member.name) + ": " + error.detail(), error.diagnostics());
    }
    const auto [array, shards] = import.begin(name, head.type);
    MemberBody data(zip, array.byte_count());
    fill_shards(data, array, shards, head.order);
    zip.end_member();
  }
  return import.finish();
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

bool is_archive(const Request& request) {
  return is_one_of(media_type_of(request.headers), {"application/zip", "application/npz", "application/x-npz",
                                                    "application/safetensors", "application/x-safetensors"});
}

Response import_arrays(Request& request, Services& services) {
  const std::string media = media_type_of(request.headers);
  std::string form(request.query.get("format").value_or(""));
  if (!form.empty() && form != "safetensors" && form != "npz")
    throw core::Error("invalid_query", "format: expected safetensors or npz");
  if (form.empty() && is_one_of(media, {"application/zip", "application/npz", "application/x-npz"})) form = "npz";
  if (form.empty() && is_one_of(media, {"application/safetensors", "application/x-safetensors"})) form = "safetensors";
  if (form.empty()) {
    throw core::Error("unsupported_media_type",
                      "'" + media +
                          "' says not what the file is; add ?format=safetensors or ?format=npz, or -H 'Content-Type: "
                          "application/x-safetensors' or 'application/zip'");
  }
  const RepeatedRequest repeated(request, services, content_facts(request));
  if (repeated.made()) {
    return repeated.again([&] {
      std::vector<arrays::ArrayRef> made;
      for (const std::string& id : core::split_ids(*repeated.made()))
        made.push_back(services.arrays.find(id, request.principal));
      return Import::listed(made);
    });
  }
  return form == "npz" ? import_npz(request, services, repeated.key())
                       : import_safetensors(request, services, repeated.key());
}

namespace {

Response export_archive(Request& request, Services& services) {
  request.query.require_known({"id", "as", "format", "compression"});
  const std::string_view word = request.query.get("format").value_or("safetensors");
  if (word != "safetensors" && word != "npz") throw core::Error("invalid_query", "format: expected safetensors or npz");
  const DataForm form = word == "npz" ? DataForm::kNpz : DataForm::kSafetensors;
  const ZipMethod method = zip_method_of(request, form);
  const std::vector<std::string_view> ids = request.query.all("id"), names = request.query.all("as");
  if (ids.empty()) throw core::Error("invalid_query", "id: name at least one array, as id=arr_...&id=arr_...");
  if (!names.empty() && names.size() != ids.size()) {
    throw core::Error("invalid_query",
                      fmt::format("as: {} names for {} arrays; name all or none", names.size(), ids.size()));
  }
  const PageMemory pages = page_memory(services);
  std::vector<FileEntry> entries;
  std::string identity = std::string(word) + (method == ZipMethod::kDeflated ? " deflate" : "");
  for (size_t i = 0; i < ids.size(); ++i) {
    const arrays::ArrayRef array = services.arrays.find(ids[i], request.principal);
    arrays::ArrayStore::Opened now = services.arrays.open(array);
    const arrays::ArrayInfo& info = array->info();
    const std::string own = info.name.empty() ? info.id : info.name;
    const std::string name = names.empty() ? own : std::string(names[i]);
    if (std::any_of(entries.begin(), entries.end(), [&](const FileEntry& other) { return other.name == name; }))
      throw core::Error("invalid_query",
                        "id: two arrays are named " + quote(name) + "; give each a name of its own by as=");
    identity += "\n" + array_etag(info.id, now.version) + " " + name;
    auto region = counted_reader(pages, {array, &array->layout()}, info.type.dtype, std::move(now.shards),
                                 arrays::whole_slices(info.type.dims));
    entries.push_back({name, info.type, std::move(region)});
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
