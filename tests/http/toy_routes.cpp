#include "tests/http/toy_routes.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "api/fields/ranges.h"
#include "api/http/problem.h"
#include "service/core/error.h"
#include "service/core/ids.h"

namespace meshd::http_test {

namespace {

using api::Access;
using api::BodyPolicy;
using api::Request;
using api::Response;
using api::Route;
using api::RunOn;

std::string describe(Request& request, const std::string& body) {
  std::string out = request.method + " " + request.path + "\n";
  for (const auto& [name, value] : request.captures) out += "capture " + name + "=" + value + "\n";
  for (const auto& [name, value] : request.query.parameters()) out += "query " + name + "=" + value + "\n";
  for (const auto& [name, value] : request.headers.fields()) out += "header " + name + "=" + value + "\n";
  return out + "body " + body + "\n";
}

Response show(Request& request) {
  return api::text(200, describe(request, request.body().read_all(INT64_MAX, request.memory)));
}

/// Reads the whole body into one buffer, as an upload into an array does, and tells its size and digest.
Response upload(Request& request) {
  const int64_t expected = request.query.integer("size", -1, 0, INT64_C(1) << 40);
  std::vector<std::byte> bytes;
  if (expected >= 0) {
    request.body().set_limit(expected);
    bytes.resize(static_cast<size_t>(expected));
    request.body().read_exactly(bytes);
    request.body().expect_end();
  } else {
    const std::string all = request.body().read_all(INT64_C(1) << 30, request.memory);
    bytes.resize(all.size());
    if (!all.empty()) std::memcpy(bytes.data(), all.data(), all.size());
  }
  const std::string digest =
      request.query.has("digest") ? core::sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) : "-";
  return api::json(201, R"({"size":)" + std::to_string(bytes.size()) + R"(,"digest":")" + digest + R"("})");
}

api::MemoryPieces pieces_of(const std::shared_ptr<std::vector<std::byte>>& bytes) {
  // Three uneven pieces, as the shards of an array are.
  const std::span<const std::byte> all(*bytes);
  const size_t third = all.size() / 3;
  return {{all.first(third), all.subspan(third, 1), all.subspan(third + 1)}, bytes};
}

Response generate(Request& request) {
  const int64_t size = request.query.integer("size", 0, 0, INT64_C(1) << 34);
  auto made = std::make_shared<size_t>(0);
  api::BodySource source;
  if (!request.query.has("chunked")) source.length = size;
  const int64_t stop_at = request.query.integer("stop", size, 0, size);
  source.pull = [made, stop_at](std::span<std::byte> destination) {
    const size_t count = std::min(destination.size(), static_cast<size_t>(stop_at) - *made);
    for (size_t i = 0; i < count; ++i) destination[i] = pattern(*made + i);
    *made += count;
    return count;
  };
  Response response = api::generated(200, "application/octet-stream", std::move(source));
  response.held_bytes = request.query.integer("held", 0, 0, INT64_MAX);
  return response;
}

Response wait_for(Request& request) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(request.query.integer("ms", 100, 0, 60'000));
  while (std::chrono::steady_clock::now() < end) {
    if (request.client_gone()) throw core::Error("cancelled", "the client is gone");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return api::text(200, "waited");
}

// As handlers wait: without a thread, until somebody notifies, the client leaves, the server drains or the time is up.
Response await(Request& request) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(request.query.integer("ms", 100, 0, 60'000));
  while (std::chrono::steady_clock::now() < end && !request.waiter->is_abandoned() && !request.draining())
    request.waiter->wait(end);
  return api::text(200, request.waiter->is_abandoned() ? "left" : request.draining() ? "drained" : "waited");
}

}  // namespace

api::Router toy_router(const std::shared_ptr<ToyState>& state, size_t large_bytes) {
  state->large = std::make_shared<std::vector<std::byte>>(large_bytes);
  for (size_t i = 0; i < large_bytes; ++i) (*state->large)[i] = pattern(i);

  api::Router router;
  const std::string info = R"({"status":"ok","version":"0.1.0","devices":8,"note":"88 bytes, as in the limits' page"})";
  const auto health = [info](Request&) { return api::json(200, info); };
  router.add({"GET", "/", "home", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, health});
  router.add({"GET", "/health", "getHealth", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, health});
  router.add({"GET", "/worker", "getWorker", BodyPolicy::kNone, RunOn::kWorker, Access::kOpen, health});
  router.add({"GET", "/secret", "getSecret", BodyPolicy::kNone, RunOn::kReactor, Access::kReader, show});
  router.add({"GET", "/wait", "wait", BodyPolicy::kNone, RunOn::kWorker, Access::kOpen, wait_for});
  router.add({"GET", "/await", "await", BodyPolicy::kNone, RunOn::kWorker, Access::kOpen, await});
  router.add({"GET", "/show", "show", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, show});
  router.add({"POST", "/show", "postShow", BodyPolicy::kJson, RunOn::kReactor, Access::kOpen, show});
  router.add({"POST", "/worker", "postWorker", BodyPolicy::kJson, RunOn::kWorker, Access::kOpen, show});
  router.add({"POST", "/program", "postProgram", BodyPolicy::kProgram, RunOn::kWorker, Access::kOpen, show});
  router.add({"POST", "/plain", "postPlain", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, show});
  router.add({"PUT", "/bulk", "putBulk", BodyPolicy::kBulk, RunOn::kWorker, Access::kOpen, upload});
  router.add({"POST", "/bulk", "postBulk", BodyPolicy::kBulk, RunOn::kWorker, Access::kOpen, upload});
  router.add({"PUT", "/deaf", "putDeaf", BodyPolicy::kBulk, RunOn::kWorker, Access::kOpen,
              [](Request&) { return api::text(200, "read nothing"); }});
  router.add({"PUT", "/refuse", "putRefuse", BodyPolicy::kBulk, RunOn::kWorker, Access::kOpen,
              [](Request&) -> Response { throw core::Error("quota_exceeded", "no room"); }});
  router.add({"GET", "/busy", "getBusy", BodyPolicy::kNone, RunOn::kWorker, Access::kOpen, [](Request& request) {
                const core::Error error = core::Error("queue_full", "too many wait").with_retry_after(1);
                if (request.query.get("answers")) return api::problem(error, request);
                throw error;
              }});
  router.add(
      {"GET", "/large", "getLarge", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, [state](Request& request) {
         return api::ranged(request, "application/octet-stream", pieces_of(state->large), "\"v1\"");
       }});
  router.add({"GET", "/small", "getSmall", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, [](Request& request) {
                auto ten = std::make_shared<std::string>("0123456789");
                return api::ranged(request, "text/plain", {{std::as_bytes(std::span(*ten))}, ten}, "\"ten\"");
              }});
  router.add({"GET", "/text", "getText", BodyPolicy::kNone, RunOn::kReactor, Access::kReader, [](Request& request) {
                std::string text;
                const auto size = static_cast<size_t>(request.query.integer("size", 0, 0, INT64_MAX));
                text.reserve(size + 1);  // the line's end that is put behind it
                text.assign(size, 'x');
                return api::text(200, std::move(text));
              }});
  router.add({"GET", "/generated", "generate", BodyPolicy::kNone, RunOn::kWorker, Access::kOpen, generate});
  router.add({"GET", "/generated-here", "generateHere", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, generate});
  router.add({"GET", "/events", "events", BodyPolicy::kNone, RunOn::kWorker, Access::kOpen, [state](Request&) {
                auto stream = std::make_shared<api::EventStream>();
                std::lock_guard held(state->mutex);
                state->streams.push_back(stream);
                return api::events(stream);
              }});
  router.add({"GET", "/log", "log", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, [](Request& request) {
                auto stream = std::make_shared<api::EventStream>(core::MemoryReservation(), 64 * 1024);
                const int64_t last = request.query.integer("count", 10, 0, 1'000'000);
                stream->set_refill([next = int64_t{1}, last](api::EventStream& out) mutable {
                  while (out.has_room() && next <= last) {
                    out.send(api::format_event(std::to_string(next), "line", "{\"n\":" + std::to_string(next) + "}"));
                    ++next;
                  }
                  if (next > last) out.finish();
                });
                return api::events(stream);
              }});
  // A number each time that it is refilled, at the start and now and then.
  router.add({"GET", "/polled", "getPolled", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, [](Request& request) {
                auto stream = std::make_shared<api::EventStream>();
                const int64_t times = request.query.integer("times", 1, 1, 100);
                stream->set_refill([next = int64_t{1}, times](api::EventStream& out) mutable {
                  out.send(api::format_event({}, {}, std::to_string(next)));
                  if (next++ == times) out.finish();
                });
                stream->set_poll(std::chrono::milliseconds(1), [] { return true; });
                return api::events(stream);
              }});
  router.add({"GET", "/broken", "getBroken", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
              [](Request&) -> Response { throw std::runtime_error("secret text\r\nX-Injected: 1"); }});
  router.add({"GET", "/inject", "inject", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, [](Request& request) {
                return api::text(200, "x").with("X-Echo", request.query.get("v").value_or(""));
              }});
  router.add({"GET", "/things/{id}", "getThing", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, show});
  router.add({"DELETE", "/things/{id}", "deleteThing", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
              [](Request&) { return api::no_content(); }});
  router.add({"POST", "/things/{id}:move", "moveThing", BodyPolicy::kJson, RunOn::kReactor, Access::kOpen, show});
  router.add({"GET", "/things/{id}/data", "getData", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, show});
  router.add({"GET", "/tree/v{n}/{rest...}", "getTree", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen, show});
  return router;
}

}  // namespace meshd::http_test
