// Decodes infeed entries of request bodies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/codecs/files/form_files.h"
#include "api/json/schema.h"
#include "service/arrays/array_store.h"
#include "service/effects/infeed_entry.h"
#include "service/jobs/job_request.h"

namespace meshd::api {

/// What is wrong with the name of a queue, which has at most 255 characters; nothing where it is one.
std::optional<std::string> mistake_of_queue(std::string_view name);

/// Where the arrays that an entry names are looked up, and where values go.
struct InfeedSource {
  arrays::ArrayStore& arrays;
  tensor::BufferPool& pool;
  const std::string& principal;
  std::vector<jobs::FedArray>* copied = nullptr;  ///< takes those that the entry was copied from
  size_t entry = 0;                               ///< the number of the entry in there
  bool was_accepted = false;                      ///< as in JobContext
  FormFiles* files = nullptr;                     ///< likewise
};

/// An entry: {"queue": "", "values": [Argument]} or {"queue": "", "parts": [{"device": 0, "values": [Argument]}]}.
/// Stored arrays that it names are copied.
struct InfeedEntryInput {
  std::optional<std::string> queue;
  const Json* values = nullptr;
  const Json* parts = nullptr;
};
/// One for a queue of a session.
struct InfeedInput : InfeedEntryInput {
  std::optional<int64_t> number;
};
template <>
Schema<InfeedEntryInput> make_schema();
template <>
Schema<InfeedInput> make_schema();

/// The entry that was read at `pointer`. Notes every mistake. Throws not_found for arrays that the principal does not
/// see.
effects::InfeedEntry infeed_entry(const InfeedEntryInput& in, const std::string& pointer, const InfeedSource& source,
                                  core::Diagnostics& wrong);

}  // namespace meshd::api
