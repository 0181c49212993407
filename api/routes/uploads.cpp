// Resumable uploads (draft-ietf-httpbis-resumable-upload, interop version 8), for every operation whose body is array
// bytes. The protocol:
//   1. A request with Upload-Complete: ?0 begins an upload: its method, path and fields are kept, 201 and Location name
//      the upload. With ?1 and Upload-Draft-Interop-Version: 8 a 104 response names it while the body comes.
//   2. HEAD says how far it is, PATCH appends, DELETE cancels. What has come counts when it is durable.
//   3. The request with Upload-Complete: ?1 ends it: the operation runs with all bytes as its body, and its response is
//      the response. An error that may pass leaves the upload as it is; PATCH without a body tries again.
#include "api/routes/uploads.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>

#include "api/codecs/value.h"
#include "api/fields/digests.h"
#include "api/fields/media_type.h"
#include "api/fields/partial_upload.h"
#include "api/http/problem.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "service/uploads/append.h"
#include "service/uploads/upload_reader.h"

namespace meshd::api {
namespace {

using uploads::Append;
using uploads::UploadRef;

constexpr size_t kReceiveBytes = size_t{1} << 20;
constexpr int64_t kProgressBytes = int64_t{64} << 20;
constexpr std::chrono::seconds kLongestInterrupt{10};
constexpr std::string_view kPath = "/v1/uploads/";

// What an upload shows.
struct UploadDocument {
  std::string id;
  int64_t offset = 0;
  std::optional<int64_t> length;
  bool complete = false;
  std::optional<std::string> result;
  core::WallTime expires;
};

struct NamedText {
  std::string name, value;
};

// The request that an upload ends with, as its row keeps it.
struct KeptRequest {
  std::string operation, method, target, path;
  std::vector<NamedText> captures, fields;
};

}  // namespace

template <>
Schema<UploadDocument> make_schema() {
  using Doc = UploadDocument;
  return {"Upload",
          {{"id", &Doc::id},
           {"offset", &Doc::offset, {.low = 0}},
           {"length", &Doc::length, {.low = 0}},
           {"complete", &Doc::complete},
           {"result", &Doc::result},
           {"expires", &Doc::expires}}};
}

template <>
Schema<NamedText> make_schema() {
  return {"NamedText", {{"name", &NamedText::name}, {"value", &NamedText::value}}};
}

template <>
Schema<KeptRequest> make_schema() {
  using Kept = KeptRequest;
  return {"KeptRequest",
          {{"operation", &Kept::operation},
           {"method", &Kept::method},
           {"target", &Kept::target},
           {"path", &Kept::path},
           {"captures", &Kept::captures},
           {"fields", &Kept::fields}}};
}

std::vector<const SchemaBase*> upload_schemas() { return {&schema<UploadDocument>()}; }

namespace {

// Fields of the first request that say what its operation does with the body.
constexpr std::array<std::string_view, 8> kKeptFields = {"Content-Type", "If-Match",        "If-None-Match",
                                                         "Prefer",       "Idempotency-Key", "Accept",
                                                         "Repr-Digest",  "Want-Repr-Digest"};

KeptRequest kept_request(const Request& request) {
  KeptRequest out{request.route->operation_id, request.method, request.target, request.path, {}, {}};
  for (const auto& [name, value] : request.captures) out.captures.push_back({name, value});
  for (const std::string_view name : kKeptFields) {
    if (request.headers.has(name)) out.fields.push_back({std::string(name), request.headers.joined(name)});
  }
  return out;
}

// The bytes of a complete upload as a request's body. Its digest is compared before the last of them is given.
class UploadBody final : public BodyReader {
 public:
  UploadBody(uploads::UploadStore& store, const uploads::Upload& upload, const Headers& fields)
      : reader_(store, upload), digest_(BodyDigest::announced(fields)) {}

  [[nodiscard]] std::optional<int64_t> content_length() const override { return reader_.total_bytes(); }
  size_t read_some(std::span<std::byte> destination) override {
    if (reader_.total_bytes() > limit_)
      throw core::Error("body_too_large", fmt::format("the body is larger than {} bytes", limit_));
    const size_t count = reader_.read_some(destination);
    if (digest_ != nullptr) digest_->update(destination.first(count));
    if (digest_ != nullptr && reader_.bytes_read() == reader_.total_bytes()) {
      digest_->check();
      digest_.reset();
    }
    return count;
  }
  void set_limit(int64_t bytes) override { limit_ = std::min(limit_, bytes); }
  [[nodiscard]] int64_t bytes_read() const override { return reader_.bytes_read(); }

 private:
  uploads::UploadReader reader_;
  std::unique_ptr<BodyDigest> digest_;
  int64_t limit_ = INT64_MAX;
};

// A request that is the one an upload began with, for as long as this lives; then what it was.
class Replayed {
 public:
  Replayed(Request& request, const KeptRequest& kept, const Route& route, uploads::UploadStore& store,
           const uploads::Upload& upload)
      : request_(request) {
    method_ = kept.method;
    target_ = kept.target;
    path_ = kept.path;
    route_ = &route;
    for (const NamedText& each : kept.captures) captures_.emplace_back(each.name, each.value);
    for (const NamedText& each : kept.fields) headers_.add(each.name, each.value);
    const size_t query = kept.target.find('?');
    if (query != std::string::npos) query_ = Query::parse(std::string_view(kept.target).substr(query + 1));
    query_.take("pretty");
    auto body = std::make_shared<UploadBody>(store, upload, headers_);
    headers_.set("Content-Length", std::to_string(*body->content_length()));
    // Should the server end between what this makes and the row that says so, what was made is found again.
    if (method_ == "POST" && !headers_.has("Idempotency-Key")) headers_.set("Idempotency-Key", upload.id);
    body_ = std::move(body);
    exchange();
  }
  ~Replayed() { exchange(); }
  Replayed(const Replayed&) = delete;
  Replayed& operator=(const Replayed&) = delete;

 private:
  void exchange() {
    std::swap(request_.method, method_);
    std::swap(request_.target, target_);
    std::swap(request_.path, path_);
    std::swap(request_.route, route_);
    std::swap(request_.captures, captures_);
    std::swap(request_.headers, headers_);
    std::swap(request_.query, query_);
    std::swap(request_.body_reader, body_);
  }

  Request& request_;
  std::string method_, target_, path_;
  const Route* route_;
  std::vector<std::pair<std::string, std::string>> captures_;
  Headers headers_;
  Query query_;
  std::shared_ptr<BodyReader> body_;
};

// The client takes 104 responses, and its connection has a way to send them.
bool takes_104(const Request& request) { return takes_upload_interim(request) && request.send_interim != nullptr; }

// `fields`: lines of them, each with its end.
void send_104(Request& request, std::string_view fields) {
  request.send_interim(
      fmt::format("HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: {}\r\n{}\r\n",
                  kUploadInterop, fields));
}

// The same request after a pause may be answered otherwise.
bool may_pass(int status) { return status == 409 || status == 412 || status == 429 || status >= 500; }

class UploadRoutes {
 public:
  explicit UploadRoutes(Services& services) : services_(services) {}

  /// A row whose body may come in several requests from here on.
  void take(Route& route) {
    targets_.push_back({&route, route.handler});
    const size_t number = targets_.size() - 1;
    route.options_fields = {{"Accept-Patch", std::string(kPartialUpload)}, {"Upload-Limit", limit(std::nullopt)}};
    route.handler = [this, number](Request& request) {
      const Target& target = targets_[number];
      return is_part_of_upload(request) ? begin(request) : target.handler(request);
    };
  }

  Response show(Request& request) {
    request.query.require_known({});
    const UploadRef upload = services_.uploads.find(request.capture("id"), request.principal);
    services_.uploads.interrupt(upload, request.waiter, services_.clock.steady() + kLongestInterrupt);
    return described(upload, 200).with("Cache-Control", "no-store");
  }

  Response append(Request& request) {
    request.query.require_known({});
    const UploadRef upload = services_.uploads.find(request.capture("id"), request.principal);
    if (media_type_of(request.headers) != kPartialUpload) {
      throw core::Error("unsupported_media_type",
                        "add -H 'Content-Type: application/partial-upload' to what continues an upload");
    }
    require_plain(request);
    const auto is_last = upload_complete_of(request.headers);
    const auto offset = upload_integer(request.headers, "Upload-Offset");
    core::Diagnostics wrong;
    if (!is_last) wrong.add("/Upload-Complete", "expected ?1 where the body ends with this request, else ?0");
    if (!offset) wrong.add("/Upload-Offset", "expected the number of bytes that have come before these");
    wrong.throw_if_any("invalid_request");
    std::optional<Append> append;
    try {
      append.emplace(services_.uploads, upload, request.waiter, sealing_of(request), offset);
    } catch (const core::Error& error) {
      if (error.code() != core::ErrorCode("upload_offset_mismatch")) throw;
      return problem(error, request).with("Upload-Offset", std::to_string(services_.uploads.status(upload).offset));
    }
    note_length(request, upload, *is_last, *offset);
    receive(request, *append);
    if (*is_last) return finish(request, *append);
    return no_content()
        .with("Upload-Complete", "?0")
        .with("Upload-Offset", std::to_string(services_.uploads.status(upload).offset))
        .with("Upload-Limit", limit(services_.uploads.status(upload).time_left));
  }

  Response cancel(Request& request) {
    request.query.require_known({});
    const UploadRef upload = services_.uploads.find(request.capture("id"), request.principal);
    services_.uploads.interrupt(upload, request.waiter, services_.clock.steady() + kLongestInterrupt);
    services_.uploads.remove(upload);
    return no_content();
  }

 private:
  struct Target {
    const Route* route;
    std::function<Response(Request&)> handler;
  };

  [[nodiscard]] std::string limit(std::optional<std::chrono::seconds> left) const {
    const uploads::UploadLimits& limits = services_.uploads.limits();
    return fmt::format("max-size={}, max-age={}", limits.most_bytes, left.value_or(limits.max_age).count());
  }

  Response described(const UploadRef& upload, int status) {
    const uploads::UploadStatus now = services_.uploads.status(upload);
    UploadDocument document{upload->id,  now.offset,   now.length,
                            now.is_done, std::nullopt, services_.clock.wall() + now.time_left};
    if (!now.result.empty()) document.result = now.result;
    Response response = json_of(status, document);
    response.headers.set("Upload-Complete", now.is_done ? "?1" : "?0");
    response.headers.set("Upload-Offset", std::to_string(now.offset));
    if (now.length) response.headers.set("Upload-Length", std::to_string(*now.length));
    response.headers.set("Upload-Limit", limit(now.time_left));
    if (!now.result.empty()) response.headers.set("Content-Location", now.result);
    return response;
  }

  static uploads::Sealing sealing_of(const Request& request) {
    return request.headers.has("Content-Digest") ? uploads::Sealing::kAtTheEnd : uploads::Sealing::kAsTheyFill;
  }

  // The front takes content codings off, and offsets count coded bytes.
  static void require_plain(const Request& request) {
    const std::string coding = request.headers.joined("Content-Encoding");
    if (coding.empty() || coding == "identity") return;
    throw core::Error("unsupported_media_type",
                      fmt::format("an upload that may be resumed takes no Content-Encoding ('{}'): "
                                  "send the body without it, or in one request without Upload-Complete",
                                  coding));
  }

  void note_length(const Request& request, const UploadRef& upload, bool is_last, int64_t offset) {
    if (const auto length = upload_integer(request.headers, "Upload-Length"))
      services_.uploads.set_length(upload, *length);
    const auto content = request.body().content_length();
    if (is_last && content) services_.uploads.set_length(upload, core::checked_add(offset, *content));
  }

  Response begin(Request& request) {
    require_plain(request);
    const bool is_last = *upload_complete_of(request.headers);
    std::optional<int64_t> length = upload_integer(request.headers, "Upload-Length");
    const auto content = request.body().content_length();
    if (is_last && content) {
      if (length && *length != *content) {
        throw core::Error(
            "upload_length_mismatch",
            fmt::format("Upload-Length is {}, and the body, which is all, has {} bytes", *length, *content));
      }
      length = content;
    }
    // Its operation reads it when all bytes are there, and would refuse it only then.
    if (request.method == "POST") static_cast<void>(idempotency_key_of(request));
    const UploadRef upload = services_.uploads.create(request.principal, to_json(kept_request(request)), length);
    const std::string where = std::string(kPath) + upload->id;
    const bool is_told = takes_104(request);
    if (is_told) send_104(request, fmt::format("Location: {}\r\nUpload-Limit: {}\r\n", where, limit(std::nullopt)));
    try {
      Append append(services_.uploads, upload, request.waiter, sealing_of(request));
      receive(request, append);
      if (is_last) return finish(request, append);
    } catch (...) {
      // Nobody knows where it is.
      if (!is_told) services_.uploads.remove(upload);
      throw;
    }
    return described(upload, 201).with("Location", where);
  }

  void receive(Request& request, Append& append) {
    request.memory.grow(static_cast<int64_t>(kReceiveBytes));
    const auto piece = std::make_unique_for_overwrite<std::byte[]>(kReceiveBytes);
    int64_t told = 0;
    for (;;) {
      const size_t count = request.body().read_some({piece.get(), kReceiveBytes});
      if (count == 0) break;
      append.write({piece.get(), count});
      if (append.sealed_bytes() - told < kProgressBytes || !takes_104(request)) continue;
      told = append.sealed_bytes();
      send_104(request, fmt::format("Upload-Offset: {}\r\n", services_.uploads.status(append.upload()).offset));
    }
    append.seal();
  }

  Response finish(Request& request, Append& append) {
    append.stop_receiving();
    const UploadRef& upload = append.upload();
    const uploads::UploadStatus now = services_.uploads.status(upload);
    if (now.length && *now.length != now.offset) {
      throw core::Error(
          "upload_length_mismatch",
          fmt::format("a length of {} bytes was declared for the upload; {} have come", *now.length, now.offset));
    }
    const KeptRequest kept = read_json<KeptRequest>(Json::parse(upload->request), "internal");
    const auto target = std::find_if(targets_.begin(), targets_.end(),
                                     [&](const Target& each) { return each.route->operation_id == kept.operation; });
    if (target == targets_.end()) throw core::Error("internal", "an upload is for an operation that there is not");
    Response response;
    services_.uploads.give_charge(upload);
    try {
      {
        const Replayed replayed(request, kept, *target->route, services_.uploads, *upload);
        try {
          response = target->handler(request);
        } catch (const core::Error& error) {
          response = problem(error, request);
          if (may_pass(response.status)) throw;
        }
      }
      services_.uploads.finish(upload, std::string(response.headers.get("Location").value_or("")));
    } catch (...) {
      services_.uploads.take_charge_back(upload);
      throw;
    }
    response.headers.set("Upload-Complete", "?1");
    return response;
  }

  Services& services_;
  std::vector<Target> targets_;
};

std::vector<Route> upload_rows(const std::shared_ptr<UploadRoutes>& routes) {
  return {
      {"GET", "/v1/uploads/{id}", "getUpload", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [routes](Request& request) { return routes->show(request); }},
      {"PATCH", "/v1/uploads/{id}", "appendToUpload", BodyPolicy::kBulk, RunOn::kWorker, Access::kUser,
       [routes](Request& request) { return routes->append(request); }},
      {"DELETE", "/v1/uploads/{id}", "cancelUpload", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [routes](Request& request) { return routes->cancel(request); }},
  };
}

}  // namespace

void add_upload_routes(Router& router, Services& services) {
  const auto routes = std::make_shared<UploadRoutes>(services);
  for (const std::unique_ptr<Route>& row : router.routes()) {
    if (row->body == BodyPolicy::kBulk) routes->take(*row);
  }
  router.add(upload_rows(routes));
}

}  // namespace meshd::api
