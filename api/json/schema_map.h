// Fields of documents that are objects with any names (schema.h).
#pragma once

#include <map>
#include <string>

#include "api/json/schema.h"

namespace meshd::api {

template <typename X>
struct JsonCodec<std::map<std::string, X>> {
  static JsonType type() { return map_of<X>(); }
  static void append(std::string& out, const std::map<std::string, X>& map) {
    out += '{';
    for (bool is_first = true; const auto& [name, value] : map) {
      if (!is_first) out += ',';
      is_first = false;
      append_string(out, name);
      out += ':';
      JsonCodec<X>::append(out, value);
    }
    out += '}';
  }
  static bool read(const Json& json, const Place& place, std::map<std::string, X>& out) {
    const JsonObject* object = expect_object(json, place.pointer, place.wrong);
    if (object == nullptr) return false;
    bool is_good = true;
    for (const auto& [name, value] : *object) {
      const std::string pointer = place.pointer + "/" + pointer_token(name);
      if (!has_room(place.wrong)) return false;
      is_good &= JsonCodec<X>::read(value, {place.type.items.front(), pointer, place.wrong}, out[name]);
    }
    return is_good;
  }
};

}  // namespace meshd::api
