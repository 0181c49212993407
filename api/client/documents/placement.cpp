#include "api/client/documents/placement.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

namespace meshd::client {
namespace {

constexpr int64_t kMostDevices = 1 << 20;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t end = std::min(text.find(separator), text.size());
    out.push_back(text.substr(0, end));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

std::optional<int64_t> size_in(std::string_view text) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool fits = error == std::errc() && end == text.data() + text.size() && out >= 0 && !text.empty();
  return fits ? std::optional(out) : std::nullopt;
}

[[noreturn]] void refuse_mesh(std::string_view text) {
  throw Failure(kUsage, fmt::format("'{}' is no mesh: expected sizes and names of axes such as 4x2:x,y, or an id "
                                    "mesh_... (meshd meshes lists them)",
                                    text));
}

}  // namespace

Json mesh_document(std::string_view text, bool has_devices) {
  if (text.starts_with("mesh_")) return {{"id", text}};
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) refuse_mesh(text);
  const std::vector<std::string_view> sizes = split(text.substr(0, colon), 'x');
  const std::vector<std::string_view> names = split(text.substr(colon + 1), ',');
  if (sizes.size() != names.size()) refuse_mesh(text);
  Json axes = Json::array();
  int64_t count = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::optional<int64_t> size = size_in(sizes[i]);
    if (!size || names[i].empty() || *size > kMostDevices || count * *size > kMostDevices) refuse_mesh(text);
    count *= *size;
    axes.push_back({{"name", names[i]}, {"size", *size}});
  }
  Json out = {{"axes", std::move(axes)}};
  if (has_devices) {
    std::vector<int64_t> devices(static_cast<size_t>(count));
    std::iota(devices.begin(), devices.end(), 0);
    out["devices"] = devices;
  }
  return out;
}

std::string mesh_id(Connection& connection, std::string_view text) {
  if (text.empty() || text.starts_with("mesh_")) return std::string(text);
  Ask ask{.method = "POST", .target = "/v1/meshes", .content_type = "application/json"};
  ask.body.push_back(text_part(mesh_document(text, true).dump()));
  return Json::parse(connection.send(ask).body).at("id").get<std::string>();
}

Json sharding_document(std::string_view text) {
  if (text == "-") return nullptr;
  Json spec = Json::array();
  if (!text.empty()) {
    for (const std::string_view dim : split(text, ',')) {
      Json axes = Json::array();
      if (!dim.empty()) {
        for (const std::string_view axis : split(dim, '.')) axes.push_back(axis);
      }
      spec.push_back(std::move(axes));
    }
  }
  return {{"spec", std::move(spec)}};
}

std::string spec_text(const Json& sharding) {
  if (!sharding.is_object()) return "";
  if (sharding.contains("sdy")) return sharding["sdy"].get<std::string>();
  std::string out;
  const Json spec = sharding.value("spec", Json::array());
  for (size_t dim = 0; dim < spec.size(); ++dim) {
    if (dim > 0) out += ',';
    for (size_t axis = 0; axis < spec[dim].size(); ++axis) {
      out += (axis > 0 ? "." : "") + spec[dim][axis].get<std::string>();
    }
  }
  const bool is_unsharded = out.find_first_not_of(',') == std::string::npos;
  return is_unsharded ? "" : out;
}

Json type_document(std::string_view text) {
  const size_t open = text.find('[');
  const bool is_type = open != std::string_view::npos && open > 0 && text.ends_with(']');
  if (!is_type) return json_argument(std::string(text), "an argument");
  Json shape = Json::array();
  const std::string_view sizes = text.substr(open + 1, text.size() - open - 2);
  if (!sizes.empty()) {
    for (const std::string_view size : split(sizes, ',')) {
      const std::optional<int64_t> value = size_in(size);
      if (!value) throw Failure(kUsage, fmt::format("'{}' is no type: expected one such as float32[5,2]", text));
      shape.push_back(*value);
    }
  }
  return {{"dtype", text.substr(0, open)}, {"shape", std::move(shape)}};
}

std::string type_text(const Json& document) {
  std::string out = document.value("dtype", "");
  out += '[';
  const Json shape = document.value("shape", Json::array());
  for (size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? "," : "") + shape[i].dump();
  return out + ']';
}

Json json_argument(const std::string& text, const std::string& what) {
  Json out = Json::parse(text, nullptr, false);
  if (out.is_discarded()) throw Failure(kUsage, fmt::format("'{}' is no JSON, which {} has to be", text, what));
  return out;
}

}  // namespace meshd::client
