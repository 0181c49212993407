#include "api/codecs/runs/decoded_runs.h"

#include <algorithm>
#include <utility>

namespace meshd::api {
namespace {

constexpr size_t kShortDocument = size_t{16} << 10;
constexpr size_t kLongestDocument = size_t{2} << 20;
// What of a long document is in its key: ends and samples. Most documents are told apart by them without a look at all
// that they have.
constexpr size_t kKeyEnd = size_t{4} << 10;
constexpr size_t kKeySamples = 256;
constexpr size_t kKeySampleBytes = 8;

}  // namespace

bool DecodedRuns::may_come_again(size_t bytes, size_t text_bytes) {
  if (bytes <= kShortDocument) return true;
  const size_t escaped = text_bytes + text_bytes / 8;  // quotes and line ends are written as two characters
  return bytes <= kLongestDocument && bytes <= escaped + kShortDocument;
}

std::string DecodedRuns::key_of(const std::string& principal, std::string_view document) {
  std::string out(principal);
  out.append(1, '\0');
  if (document.size() <= kShortDocument) return out.append(document);
  out.append(std::to_string(document.size())).append(1, '\0');
  out.append(document.substr(0, kKeyEnd)).append(document.substr(document.size() - kKeyEnd));
  for (size_t i = 0; i < kKeySamples; ++i)
    out.append(document.substr(document.size() / kKeySamples * i, kKeySampleBytes));
  return out;
}

std::shared_ptr<DecodedRuns::Entry> DecodedRuns::find(const std::string& principal, std::string_view document) {
  if (document.size() > kLongestDocument) return nullptr;
  const std::string key = key_of(principal, document);
  std::shared_ptr<Entry> found = cache_.with([&](auto& cache) {
    const std::shared_ptr<Entry>* const known = cache.find(key);
    return known == nullptr ? nullptr : *known;
  });
  if (found == nullptr) return nullptr;
  const bool is_long = document.size() > kShortDocument;
  const bool is_it = is_long ? found->document == document : found->document.empty();
  return is_it ? found : nullptr;
}

std::shared_ptr<DecodedRuns::Entry> DecodedRuns::keep(const std::string& principal, std::string_view document,
                                                      std::shared_ptr<const DecodedRun> run) {
  std::string key = key_of(principal, document);
  auto entry = std::make_shared<Entry>();
  entry->run = std::move(run);
  if (document.size() > kShortDocument) entry->document = document;
  // What was decoded is about as large as the document, but for the text of its program: values are base64 or text
  // there. Of a long document they are an eighth at most, and what a short one may have.
  const size_t decoded = 3 * std::min(document.size(), kShortDocument + document.size() / 8);
  const auto bytes =
      static_cast<int64_t>(sizeof(Entry) + sizeof(DecodedRun) + key.size() + entry->document.size() + decoded);
  // An entry that is there is of a program that has left the compiler's cache.
  return cache_.with([&](auto& cache) { return cache.replace(std::move(key), std::move(entry), bytes); });
}

}  // namespace meshd::api
