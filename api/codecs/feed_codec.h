// What clients feed to infeeds, in bodies.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/codecs/json.h"
#include "service/arrays/array_store.h"
#include "service/effects/feed.h"

namespace meshd::api {

/// What is wrong with the name of a queue, which has at most 255 characters; nothing where it is one.
std::optional<std::string> mistake_of_queue(std::string_view name);

/// An entry: {"queue": "", "values": [VALUE]} or {"queue": "", "parts": [{"device": 0, "values": [VALUE]}]}. A VALUE
/// has a dtype, a shape and data or base64, or names a stored array that `principal` sees, which is copied. Notes every
/// mistake under the reader's pointer; the caller reads other fields and finishes. Throws not_found for arrays.
effects::Feed read_feed(ObjectReader& reader, arrays::ArrayStore& arrays, const std::string& principal,
                        core::Diagnostics& wrong);

}  // namespace meshd::api
