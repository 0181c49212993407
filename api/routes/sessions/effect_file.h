// Effects, values of outgoing queues and callback requests as files, for clients that accept one rather than JSON.
//
// Value I of entry N is the array "N.I". Example: a page of the log with entries 7 (two values) and 9 (one) as .npz:
// numpy.load(f) has "7.0", "7.1" and "9.0". What the entries are besides is the page as JSON without elements: in the
// field Meshd-Answer where it has at most 4 KiB, and with ?encoding=none in any case.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/codecs/runs/effect_codec.h"
#include "api/routes/answer_file.h"
#include "api/routes/routes.h"

namespace meshd::api {

/// What a stored byte of values takes while they are shown so.
inline int64_t memory_per_byte_of(ValueEncoding encoding) {
  if (encoding == ValueEncoding::kNone) return kMemoryPerShownByte;
  return encoding == ValueEncoding::kBase64 ? kMemoryPerBase64Byte : kMemoryPerStoredByte;
}

/// How a request wants values: as a file, or in JSON of this encoding. Throws invalid_query, and not_acceptable for a
/// file of values that come without elements.
struct WantedValues {
  explicit WantedValues(const Request& request);
  const FormRow* file = nullptr;  ///< null: JSON
  ValueEncoding encoding;         ///< kNone beside a file
  /// For PageBudget.
  [[nodiscard]] int64_t memory_per_byte() const { return memory_per_byte_of(encoding); }
};

/// The values of an entry, which outlive the response's making.
struct NumberedValues {
  int64_t number = 0;
  std::span<const tensor::DenseValue> values;
};

/// One file of the entries' values, with `answer` beside it. Copies of the values keep their bytes until it is sent,
/// which count as an answer's. Throws not_acceptable for a .npy file of other than one value, for dtypes that
/// safetensors has no name for, and memory_full.
Response send_values(const Request& request, Services& services, std::span<const NumberedValues> entries,
                     const FormRow& file, const std::string& answer);

/// A page as JSON, or as a file. `number_of` gives an item's number, `values_of` its values.
template <typename T, typename NumberOf, typename ValuesOf>
Response send_page(const Request& request, Services& services, const Page<T>& page, const WantedValues& wanted,
                   const NumberOf& number_of, const ValuesOf& values_of) {
  if (wanted.file == nullptr) return list_response(request, page, "after").with("Vary", kVaryByAccept);
  std::vector<NumberedValues> entries;
  for (const T& item : page.items) entries.push_back({number_of(item), values_of(item)});
  Response response = send_values(request, services, entries, *wanted.file, to_json(page));
  note_next(response, request, page.next, "after");
  return response;
}

}  // namespace meshd::api
