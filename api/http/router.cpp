#include "api/http/router.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include "api/http/characters.h"
#include "service/core/error.h"

namespace meshd::api {

/// A segment of a template. The order of the kinds is the order of precedence.
struct RouteSegment {
  enum class Kind { kLiteral, kAffixed, kCapture, kRest };
  Kind kind = Kind::kLiteral;
  std::string prefix;  ///< of kLiteral: the segment
  std::string name;
  std::string suffix;
};

namespace {

constexpr size_t kPathBytes = 2048;
constexpr std::array<std::string_view, 5> kMethods = {"GET", "POST", "PUT", "PATCH", "DELETE"};

core::Error broken(std::string_view path, std::string_view why) {
  return core::Error("internal", "the route table is wrong")
      .with_internal("route template '" + std::string(path) + "': " + std::string(why));
}

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> out;
  if (path == "/") return out;
  path.remove_prefix(1);
  while (true) {
    const size_t slash = path.find('/');
    out.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    path.remove_prefix(slash + 1);
  }
}

RouteSegment parse_segment(std::string_view text, std::string_view path) {
  const size_t open = text.find('{');
  if (open == std::string_view::npos) {
    if (text.empty() || text.find('}') != std::string_view::npos) throw broken(path, "empty segment or stray '}'");
    return {RouteSegment::Kind::kLiteral, std::string(text), {}, {}};
  }
  const size_t close = text.find('}', open);
  if (close == std::string_view::npos || text.find('{', open + 1) != std::string_view::npos) {
    throw broken(path, "one '{name}' a segment");
  }
  std::string_view name = text.substr(open + 1, close - open - 1);
  const bool rest = name.ends_with("...");
  if (rest) name.remove_suffix(3);
  if (name.empty()) throw broken(path, "a capture needs a name");
  RouteSegment segment{RouteSegment::Kind::kCapture, std::string(text.substr(0, open)), std::string(name),
                       std::string(text.substr(close + 1))};
  const bool affixed = !segment.prefix.empty() || !segment.suffix.empty();
  if (rest && !segment.prefix.empty()) throw broken(path, "'{name...}' must begin its segment");
  if (rest && affixed && !path.ends_with(text)) throw broken(path, "'{name...}:verb' must end the template");
  if (rest) segment.kind = RouteSegment::Kind::kRest;
  if (affixed && !rest) segment.kind = RouteSegment::Kind::kAffixed;
  return segment;
}

/// What one segment of a template makes of one segment of a path; nothing when it does not match.
std::optional<std::string_view> captured(const RouteSegment& segment, std::string_view text) {
  if (text.empty() || (segment.kind != RouteSegment::Kind::kRest && text.find('/') != std::string_view::npos))
    return std::nullopt;
  switch (segment.kind) {
    case RouteSegment::Kind::kLiteral:
      return text == segment.prefix ? std::optional<std::string_view>("") : std::nullopt;
    case RouteSegment::Kind::kAffixed: {
      if (text.size() <= segment.prefix.size() + segment.suffix.size() || !text.starts_with(segment.prefix) ||
          !text.ends_with(segment.suffix)) {
        return std::nullopt;
      }
      text.remove_prefix(segment.prefix.size());
      text.remove_suffix(segment.suffix.size());
      return text.find(':') == std::string_view::npos ? std::optional(text) : std::nullopt;
    }
    case RouteSegment::Kind::kCapture:
      return text.find(':') == std::string_view::npos ? std::optional(text) : std::nullopt;
    case RouteSegment::Kind::kRest:
      return text;
  }
  return std::nullopt;
}

/// Decodes the segments of a raw path; throws for what no path of ours may hold.
std::vector<std::string> decode(std::string_view path) {
  std::vector<std::string> out;
  for (const std::string_view raw : split(path)) {
    std::string segment = percent_decode(raw);
    if (segment == "." || segment == "..") {
      throw core::Error("malformed_request", "the path has a '.' or '..' segment: write it without");
    }
    for (const char c : segment) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        throw core::Error("malformed_request", "the path, decoded, has a control character");
      }
    }
    out.push_back(std::move(segment));
  }
  return out;
}

}  // namespace

struct Router::Table {
  /// One template and its rows.
  struct Path {
    std::string path_template;
    std::vector<RouteSegment> segments;
    std::vector<const Route*> rows;
    std::string allow;
    bool has_rest = false;  ///< a segment of it is "{name...}"

    [[nodiscard]] const Route* row(std::string_view method) const {
      for (const Route* candidate : rows) {
        if (candidate->method == method) return candidate;
      }
      return nullptr;
    }
    void refresh_allow() {
      allow.clear();
      for (const std::string_view method : kMethods) {
        if (row(method) == nullptr) continue;
        if (!allow.empty()) allow += ", ";
        allow += method;
        if (method == "GET") allow += ", HEAD";
      }
      allow += ", OPTIONS";
    }
    /// Precedence: segment by segment the more literal one first, then the longer affixes, then by text to be total.
    [[nodiscard]] bool before(const Path& other) const {
      for (size_t i = 0; i < std::min(segments.size(), other.segments.size()); ++i) {
        const RouteSegment& a = segments[i];
        const RouteSegment& b = other.segments[i];
        if (a.kind != b.kind) return a.kind < b.kind;
        const size_t a_size = a.prefix.size() + a.suffix.size();
        const size_t b_size = b.prefix.size() + b.suffix.size();
        const bool has_affix = a.kind == RouteSegment::Kind::kAffixed || a.kind == RouteSegment::Kind::kRest;
        if (has_affix && a_size != b_size) return a_size > b_size;
      }
      // Behind "{name...}" a template goes on with literals.
      if (segments.size() != other.segments.size()) return segments.size() > other.segments.size();
      return path_template < other.path_template;
    }
  };

  std::vector<std::unique_ptr<Route>> routes;
  std::vector<std::unique_ptr<Path>> paths;                   ///< in order of precedence
  std::unordered_map<std::string_view, const Path*> literal;  ///< templates without captures

  [[nodiscard]] const Path* find(std::string_view path,
                                 std::vector<std::pair<std::string, std::string>>& captures) const {
    if (const auto exact = literal.find(path); exact != literal.end()) return exact->second;
    const std::vector<std::string> segments = decode(path);
    for (const auto& candidate : paths) {
      if (matches(*candidate, segments, captures)) return candidate.get();
      captures.clear();
    }
    return nullptr;
  }

  static bool matches(const Path& path, const std::vector<std::string>& segments,
                      std::vector<std::pair<std::string, std::string>>& captures) {
    const size_t size = path.segments.size();
    if (path.has_rest ? segments.size() < size : segments.size() != size) return false;
    const size_t more = segments.size() - size;  // segments that "{name...}" takes beyond its first
    size_t at = 0;
    for (const RouteSegment& segment : path.segments) {
      const std::optional<std::string_view> value = captured(segment, segments[at++]);
      if (!value) return false;
      if (segment.kind == RouteSegment::Kind::kLiteral) continue;
      captures.emplace_back(segment.name, *value);
      if (segment.kind != RouteSegment::Kind::kRest) continue;
      for (size_t i = 0; i < more; ++i) {
        const std::optional<std::string_view> next = captured(segment, segments[at++]);
        if (!next) return false;
        captures.back().second.append("/").append(*next);
      }
      std::string& all = captures.back().second;
      if (segment.suffix.empty()) continue;
      if (all.size() <= segment.suffix.size() || !all.ends_with(segment.suffix)) return false;
      all.resize(all.size() - segment.suffix.size());
    }
    return true;
  }
};

Router::Router() : table_(std::make_unique<Table>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::add(Route route) {
  if (std::find(kMethods.begin(), kMethods.end(), route.method) == kMethods.end())
    throw broken(route.path, "unknown method");
  if (route.path.empty() || route.path.front() != '/' || !route.handler)
    throw broken(route.path, "no path or no handler");
  auto row = std::make_unique<Route>(std::move(route));
  auto path = std::find_if(table_->paths.begin(), table_->paths.end(),
                           [&](const auto& known) { return known->path_template == row->path; });
  if (path == table_->paths.end()) {
    auto fresh = std::make_unique<Table::Path>();
    fresh->path_template = row->path;
    const std::vector<std::string_view> segments = split(fresh->path_template);
    bool literal = true;
    for (size_t i = 0; i < segments.size(); ++i) {
      const bool is_slash = literal && i > 0 && i + 1 == segments.size() && segments[i].empty();
      if (is_slash) {
        // "/v2/" is a path of its own, which the literal paths have.
        fresh->segments.push_back({RouteSegment::Kind::kLiteral, {}, {}, {}});
        continue;
      }
      fresh->segments.push_back(parse_segment(segments[i], row->path));
      const RouteSegment::Kind kind = fresh->segments.back().kind;
      literal = literal && kind == RouteSegment::Kind::kLiteral;
      if (kind != RouteSegment::Kind::kRest) continue;
      if (fresh->has_rest) throw broken(row->path, "one '{name...}' a template");
      fresh->has_rest = true;
    }
    if (literal) table_->literal.emplace(fresh->path_template, fresh.get());
    path = table_->paths.insert(std::upper_bound(table_->paths.begin(), table_->paths.end(), fresh,
                                                 [](const auto& a, const auto& b) { return a->before(*b); }),
                                std::move(fresh));
  }
  if ((*path)->row(row->method) != nullptr) throw broken(row->path, "two rows for " + row->method);
  (*path)->rows.push_back(row.get());
  (*path)->refresh_allow();
  table_->routes.push_back(std::move(row));
}

void Router::add(std::vector<Route> routes) {
  for (Route& route : routes) add(std::move(route));
}

RouteMatch Router::match(std::string_view method, std::string_view path) const {
  if (path.size() > kPathBytes) {
    throw core::Error("uri_too_long",
                      fmt::format("the path has {} bytes, at most {} are taken", path.size(), kPathBytes));
  }
  RouteMatch out;
  const Table::Path* found = path.empty() ? nullptr : table_->find(path, out.captures);
  if (found == nullptr) return out;
  out.route = found->row(method == "HEAD" ? "GET" : method);
  out.allow = out.route == nullptr ? found->allow : std::string();
  out.path_template = found->path_template;
  return out;
}

const std::vector<std::unique_ptr<Route>>& Router::routes() const { return table_->routes; }

int64_t body_limit(BodyPolicy policy) {
  switch (policy) {
    case BodyPolicy::kNone:
      return 0;
    case BodyPolicy::kJson:
      return 4LL << 20;
    case BodyPolicy::kProgram:
      return 64LL << 20;
    case BodyPolicy::kInline:
    case BodyPolicy::kForm:
    case BodyPolicy::kValues:
    case BodyPolicy::kInference:
      return 256LL << 20;
    case BodyPolicy::kBulk:
      return INT64_MAX;
  }
  return 0;
}

}  // namespace meshd::api
