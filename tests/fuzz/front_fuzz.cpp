// Any bytes as what a client sends. The head is read or refused with core::Error, both readers agree on it, and its
// body, path, query and range are walked within their bounds. Seeds: any request; tests/http/attack_cases.cpp shows
// some.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "api/fields/ranges.h"
#include "api/fields/site_policy.h"
#include "api/http/head.h"
#include "api/http/httplib_bridge.h"
#include "api/http/router.h"
#include "api/server/body_pipeline.h"
#include "service/core/error.h"
#include "tests/fuzz/format.h"

namespace meshd::fuzz {
namespace {

using namespace api;

constexpr int64_t kBodyLimit = 1 << 20;
constexpr int64_t kRangeSize = 10;

struct Front {
  HttplibBridge bridge;
  Router router;
  SitePolicy site{"127.0.0.1", {{"meshd.example.org"}, {"https://app.example.org"}, false}};
  Front() {
    for (const char* path : {"/", "/a/{id}", "/a/{id}:verb", "/a/v{n}/{rest...}"}) {
      router.add({"GET", path, path, BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
                  [](Request&) { return no_content(); }});
    }
  }
};

void walk(const Front& front, std::string_view bytes) {
  HeadScanner scanner{HeadLimits()};
  const std::optional<size_t> end = scanner.find_end(bytes);
  if (!end) return;
  const Head head = parse_head(bytes.substr(0, *end), {});
  if (head.content_length < 0 || head.path.empty()) std::abort();
  front.bridge.understand(head);
  (void)front.router.match(head.method, head.path);
  try {
    // Whoever is named an origin is one, and nobody else.
    const std::string origin = front.site.admit(head);
    if (!origin.empty() && parse_origin(origin) != parse_origin("https://app.example.org")) std::abort();
  } catch (const core::Error&) {
  }
  (void)Query::parse(head.raw_query);
  Request request;
  request.method = "GET";
  request.headers = head.headers;
  try {
    const auto range = requested_range(request, kRangeSize, "\"e\"");
    if (range && (range->first < 0 || range->count < 1 || range->first + range->count > kRangeSize)) std::abort();
  } catch (const core::Error&) {
  }
  BodyPipeline body(head, make_content_decoder(head.headers.joined("Content-Encoding")), kBodyLimit);
  std::string_view raw = bytes.substr(*end);
  std::string room(1000, '\0');
  while (!body.done()) {
    const BodyPipeline::Step step = body.pump(raw, std::as_writable_bytes(std::span(room)));
    if (step.consumed > raw.size() || step.produced > room.size()) std::abort();
    raw.remove_prefix(step.consumed);
    if (step.produced == 0 && !body.done()) return;
  }
}

void read_request(std::string_view bytes) {
  static const Front front;  // built once: it does not change
  walk(front, bytes);
}

constexpr Format kFormats[] = {{"request", read_request}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

}  // namespace meshd::fuzz
