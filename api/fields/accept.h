// Content negotiation: Accept and Accept-Encoding with their quality values (RFC 9110 12.4.2). Pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "api/http/http.h"

namespace meshd::api {

/// One entry of such a list: "text/html;q=0.8" is text/html of weight 800.
struct Weighted {
  std::string_view name;  ///< without parameters
  int weight = 1000;      ///< thousandths; 0: refused
};

/// Takes the next entry off the front of `list`; false when it is used up. A weight that is none counts as 0.
bool next_weighted(std::string_view& list, Weighted& entry);

/// Content negotiation: which of the media types `offered` the request's Accept prefers, by the most specific entry
/// that matches each (RFC 9110 12.5.1); of several, the one that the client names first, then the one offered first.
/// The first without Accept, and where only problem documents are accepted, as generated clients send it. Nothing: none
/// is.
std::optional<size_t> preferred_media(const Request& request, std::span<const std::string_view> offered);

}  // namespace meshd::api
