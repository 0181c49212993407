// What clients feed to infeeds, in bodies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/codecs/json.h"
#include "service/arrays/array_store.h"
#include "service/effects/infeed_entry.h"

namespace meshd::api {

/// What is wrong with the name of a queue, which has at most 255 characters; nothing where it is one.
std::optional<std::string> mistake_of_queue(std::string_view name);

/// Where the arrays that an entry names are looked up.
struct InfeedSource {
  arrays::ArrayStore& arrays;
  const std::string& principal;
  std::vector<arrays::ArrayRef>* copied = nullptr;  ///< takes those that the entry was copied from
};

/// An entry: {"queue": "", "values": [VALUE]} or {"queue": "", "parts": [{"device": 0, "values": [VALUE]}]}. A VALUE
/// has a dtype, a shape and data or base64, or names a stored array that the principal sees, which is copied. Notes
/// every mistake under the reader's pointer; the caller reads other fields and finishes. Throws not_found for arrays.
effects::InfeedEntry read_infeed_entry(ObjectReader& reader, const InfeedSource& source, core::Diagnostics& wrong);

}  // namespace meshd::api
