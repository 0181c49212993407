#include "api/client/documents/effect_text.h"

#include <fmt/core.h>

#include "api/client/documents/listing.h"
#include "api/client/documents/placement.h"
#include "api/client/text/value_text.h"

namespace meshd::client {

std::string effect_text(const Json& effect) {
  const std::string kind = field_text(effect, "effect");
  std::string name = field_text(effect, "name");
  if (kind == "failed" || kind == "cancelled") {
    return fmt::format("job {} {}: {}", field_text(effect, "job"), kind, name);
  }
  size_t from = 0;
  bool has_places = false;
  std::string behind;
  for (const Json& value : effect.value("values", Json::array())) {
    const std::string text = value.contains("data") ? value_text(shortened(value["data"])) : type_text(value);
    const size_t place = name.find("{}", from);
    if (place == std::string::npos) {
      behind += " " + text;
      continue;
    }
    has_places = true;
    name.replace(place, 2, text);
    from = place + text.size();
  }
  if (!has_places && !name.empty() && !behind.empty()) name += ':';
  if (name.empty()) name = kind + ":";
  return name + behind;
}

std::string progress_text(const Json& progress) {
  std::string out;
  const auto add = [&out](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  const Json loop = progress.value("loop", Json());
  if (loop.is_object()) {
    const std::string done = field_text(loop, "iterations_done");
    const std::string all = field_text(loop, "iterations");
    add(all.empty() ? fmt::format("{} iterations", done) : fmt::format("{} of {} iterations", done, all));
  } else {
    add(fmt::format("{} steps", field_text(progress, "steps_done")));
  }
  if (!field_text(progress, "op").empty()) {
    add(fmt::format("{} in line {}", field_text(progress, "op"), field_text(progress, "line")));
  }
  if (progress.contains("remaining_seconds")) {
    const auto left = static_cast<int64_t>(progress["remaining_seconds"].get<double>());
    add(fmt::format("{}:{:02} left", left / 60, left % 60));
  }
  if (progress.contains("waits_for")) add("waits for its client");
  return out;
}

}  // namespace meshd::client
